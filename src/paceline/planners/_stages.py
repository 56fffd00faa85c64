"""Where a network is cut for a strategy: exact over its units, with the oracle's own times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InvalidInputError
from paceline.planners._chain import Chain, DeviceKind, Partition
from paceline.planners._cut_trial import CutTrial
from paceline.planners._exact import partition_exactly
from paceline.planners._task import Task
from paceline.scenario import Stage, Strategy
from paceline.workloads import LayerGraph

Array = NDArray[np.float64]

# how much of a hand-over counts with its stage: all when nothing hides it, nothing when all is
_HAND_OVERS = (1.0, 0.3, 0.0)
_MOST_PIECES = 32  # of which all those cuts are made
_FIXED = ("weights", "gradients", "state")


def cut_places(graph: LayerGraph, *, with_weights: bool) -> tuple[int, ...]:
    """Return the units behind which a network may be cut, as the number of the next unit.

    Parameters
    ----------
    graph
        What is cut.
    with_weights
        Whether every piece must hold weights: an optimizer has nothing to do without any.
    """
    weights = [sum(x.n_parameters for x in graph.layers[i:j]) for i, j in graph.units]
    n = len(weights)
    if not with_weights or not any(weights):
        return tuple(range(1, n + 1))
    first = next(i for i, weight in enumerate(weights) if weight)
    return (*(i for i in range(first + 1, n) if weights[i]), n)


def chain_of(task: Task, strategy: Strategy) -> tuple[Chain, tuple[int, ...], float]:
    """Return the units of a network as a chain, where it may be cut, and what a device needs.

    The last is memory that every device needs whatever it holds.
    """
    places = cut_places(task.graph, with_weights=task.runnable_only)
    n_units = len(task.graph.units)
    each = task.cost(strategy, range(1, n_units + 1), task.global_batch)
    starts = [0, *places[:-1]]
    # behind the last unit nothing is handed over
    hand_over = np.append(2 * each.transfer_s, 0.0)[np.array(places) - 1]
    buffers = each.memory["buffers"]
    fixed = sum(each.memory[name] for name in _FIXED) + buffers - buffers.min()
    chain = Chain(
        work_s=np.add.reduceat(each.forward_s + each.backward_s, starts),
        cut_s=hand_over,
        fixed_bytes=np.add.reduceat(fixed, starts),
        stored_bytes=np.add.reduceat(_stored(task, strategy), starts),
        micro_batches=strategy.micro_batches,
        schedule="gpipe" if strategy.schedule == "gpipe" else "1f1b",
    )
    return chain, places, float(buffers.min())


def _stored(task: Task, strategy: Strategy) -> Array:
    """Return what one micro-batch leaves behind in every unit of a device's share.

    A share of all places or channels is taken of every layer; when all is known, the oracle's
    own count decides whether a stage fits.
    """
    layers = task.graph.layers
    numbers = 0.5 if task.precision in ("float16", "bfloat16") else 1.0
    samples = task.global_batch / (strategy.data * strategy.micro_batches)
    share = strategy.data * strategy.pipeline / strategy.n_devices
    if strategy.recompute:
        kept = [layers[first].input_bytes for first, _ in task.graph.units]
    else:
        kept = [sum(x.stored_bytes for x in layers[i:j]) for i, j in task.graph.units]
    return np.array(kept, dtype=float) * samples * share * numbers


def cut_stages(
    task: Task,
    strategy: Strategy,
    kinds: Sequence[DeviceKind] | None = None,
    counts: Sequence[int] | None = None,
    order: Sequence[int] | None = None,
) -> tuple[tuple[int, ...], Partition]:
    """Return the units behind which the network is best cut, and the partition itself.

    Exact cuts that count hand-overs wholly, in part and not at all are simulated, and the fastest
    is improved by moving its bounds.

    Parameters
    ----------
    task, strategy
        What is cut, and into how many pieces.
    kinds, counts, order
        Of the devices that hold them, as `partition_exactly` takes them; None: the cluster's.

    Raises
    ------
    InvalidInputError
        When there are more pieces than parts of the network.
    InfeasibleError
        When no cut fits in memory.
    """
    chain, places, needed = chain_of(task, strategy)
    n_pieces = strategy.pipeline * strategy.virtual_stages
    if n_pieces > len(places):
        raise InvalidInputError(
            f"A pipeline of {task.graph.name} must have at most {len(places)} pieces, each with "
            f"weights, but got {n_pieces}."
        )
    if kinds is None:
        memory = task.cluster.device.memory_bytes - needed
        # pieces that share a device also share its memory: looked at when all is known
        limit = float("inf") if strategy.virtual_stages > 1 else max(memory, 1.0)
        kinds, counts = [DeviceKind(memory_bytes=limit)], [n_pieces]
    n_units = len(task.graph.units)
    each = task.cost(strategy, range(1, n_units + 1), task.global_batch)
    trial = CutTrial(each, places, chain, strategy, kinds)
    found = [
        partition_exactly(
            replace(chain, cut_s=w * chain.cut_s), kinds, counts or (1,), order=order
        )
        for w in (_HAND_OVERS if n_pieces <= _MOST_PIECES else _HAND_OVERS[1:2])
    ]
    best = trial.improved(min(found, key=lambda f: trial.seconds(f.ends, f.kinds)))
    return tuple(places[end - 1] for end in best.ends), best


def stages_of(graph: LayerGraph, ends: Sequence[int]) -> tuple[Stage, ...]:
    """Return stages of layers from the units behind which the network is cut."""
    stages, begin = [], 0
    for end in ends:
        first, last = graph.units[begin][0], graph.units[end - 1][1]
        names = (graph.layers[first].name, graph.layers[last - 1].name)
        stages.append(Stage(first=first, end=last, names=names))
        begin = end
    return tuple(stages)


def ends_of(graph: LayerGraph, stages: Sequence[Stage]) -> tuple[int, ...]:
    """Return the units behind which a plan's stages end.

    Raises
    ------
    InvalidInputError
        When a stage ends inside a unit, or the stages are not of this network.
    """
    known = {end: i + 1 for i, (_, end) in enumerate(graph.units)}
    for stage in stages:
        if stage.end not in known:
            raise InvalidInputError(
                f"Every stage must end behind a unit of {graph.name}, but one ends behind layer "
                f"{stage.end}. Make the plan again."
            )
    return tuple(known[stage.end] for stage in stages)
