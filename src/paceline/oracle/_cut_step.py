"""One step whose network is cut where a planner says, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import Cluster
from paceline.oracle._block import Block
from paceline.oracle._columns import Columns
from paceline.oracle._compute import ComputeModel
from paceline.oracle._layer_costs import LayerQuestion, cost_layers
from paceline.oracle._memory import held_by_device
from paceline.oracle._passes import time_passes
from paceline.oracle._step import step_figures
from paceline.oracle._sweep import Question, make_question
from paceline.scenario import DEGREES, Strategy, StrategyTable
from paceline.workloads import LayerGraph

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CutStep:
    """What one step costs, and what every piece of the network adds to it.

    Parameters
    ----------
    figures
        As the columns of a sweep.
    forward_s, backward_s
        Seconds of one micro-batch in every piece, messages included.
    transfer_s
        Of one micro-batch to the next piece, one fewer.
    transfer_bytes
        The same in bytes.
    memory
        By part (weights, gradients, state, activations, buffers), bytes of every stage's device.
    strides
        Distance in devices between the members of every degree's groups.
    """

    figures: Mapping[str, float]
    forward_s: Array
    backward_s: Array
    transfer_s: Array
    transfer_bytes: Array
    memory: Mapping[str, Array]
    strides: Mapping[str, int]

    @property
    def memory_bytes(self) -> Array:
        """Bytes that every stage's device holds."""
        return np.asarray(sum(self.memory.values()), dtype=float)


def cut_step(
    graph: LayerGraph,
    cluster: Cluster,
    strategy: Strategy,
    ends: Sequence[int] | None = None,
    *,
    global_batch: int,
    optimizer: str = "adam",
    precision: str = "float32",
) -> CutStep:
    """Return a step of a network that is cut behind the units `ends`, as a sweep would cost it.

    Parameters
    ----------
    graph, cluster, strategy
        A scenario that a sweep finds possible.
    ends
        Unit behind the last one of every piece; None: as a sweep cuts. As many as there are
        units: every unit by itself, whatever the strategy's stages.
    global_batch, optimizer, precision
        As `sweep` takes them.
    """
    question = make_question(graph, cluster, optimizer, precision)
    n_parts = strategy.pipeline * strategy.virtual_stages
    if ends is not None:
        n_parts = len(ends)
        columns = _CutColumns(**_made_of(question.columns), bounds=(0, *ends))
        question = replace(question, columns=columns)
    if n_parts != strategy.pipeline * strategy.virtual_stages:
        strategy = replace(strategy, virtual_stages=1)
    block = _block(question, strategy, global_batch, n_parts)
    batch = np.array([global_batch])
    found = step_figures(block, question.model, question.optimizer, question.scheme, batch)
    if found["stage_stride"][0] != block.strides["pipeline"][0]:
        block = replace(block, inside=True)
    figures = {name: float(values[0]) for name, values in found.items()}
    return _described(block, question.model, figures)


@dataclass(frozen=True, kw_only=True)
class _CutColumns(Columns):
    """Layers that are cut at given bounds."""

    bounds: tuple[int, ...]

    def stage_bounds(self, n_parts: int) -> NDArray[np.int64]:
        """Return the first unit of every part, and the end."""
        return np.array(self.bounds)


def _made_of(columns: Columns) -> dict[str, Any]:
    """Return what a set of columns is made of."""
    return {n: getattr(columns, n) for n in ("graph", "layers", "roles", "which")}


def _block(question: Question, strategy: Strategy, global_batch: int, n_parts: int) -> Block:
    table = StrategyTable.from_strategies([strategy])
    costs = cost_layers(
        LayerQuestion(
            columns=question.columns,
            cluster=question.cluster,
            model=question.model,
            degrees={name: table[name] for name in DEGREES},
            micro_batch=global_batch / (table["data"] * table["micro_batches"]),
            scale=question.numbers.scale,
        )
    )
    return Block(
        columns=question.columns,
        cluster=question.cluster,
        numbers=question.numbers,
        costs=costs,
        key=np.zeros(1, dtype=np.int64),
        table=table,
        n_parts=n_parts,
    )


def _described(block: Block, model: ComputeModel, figures: Mapping[str, float]) -> CutStep:
    passes = time_passes(block, model)
    forward, backward = (np.broadcast_to(t, (1, block.n_parts))[0] for t in passes.whole)
    held = held_by_device(block)
    return CutStep(
        figures=figures,
        forward_s=forward,
        backward_s=backward,
        transfer_s=passes.sent_s[0],
        transfer_bytes=passes.sent_bytes[0],
        memory={n: np.broadcast_to(part, (1, block.n_stages))[0] for n, part in held.items()},
        strides={name: int(values[0]) for name, values in block.strides.items()},
    )
