"""Thousands of scenarios at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.clusters import Cluster
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle._block import Block
from paceline.oracle._columns import Columns, columns_of
from paceline.oracle._compute import ComputeModel
from paceline.oracle._keys import distinct
from paceline.oracle._layer_costs import LayerQuestion, cost_layers
from paceline.oracle._limits import find_rules
from paceline.oracle._precision import Numbers, numbers_of
from paceline.oracle._result import FIGURES, SweepResult
from paceline.oracle._step import step_figures
from paceline.oracle.strategies import DIVISIONS
from paceline.oracle.strategies.data import SCHEMES
from paceline.scenario import DEGREES, Strategy, StrategyTable
from paceline.workloads import LayerGraph

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

OVERLAPS = ("ddp", "best", "none")
_MOST_KEYS = 2048  # distinct scenarios whose layers are costed at once
_MOST_ROWS = 16384


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is the same for all rows of a sweep.

    Parameters
    ----------
    columns, cluster
        The network and the machine.
    model
        Of compute.
    numbers, optimizer
        Bytes by number, and what updates weights.
    scheme
        ``all_reduce`` or ``parameter_server``.
    overlap
        One of `OVERLAPS`.
    """

    columns: Columns
    cluster: Cluster
    model: ComputeModel
    numbers: Numbers
    optimizer: str
    scheme: str
    overlap: str = "ddp"


def sweep(
    graph: LayerGraph,
    cluster: Cluster,
    strategies: StrategyTable | Iterable[Strategy],
    *,
    global_batch: ArrayLike,
    optimizer: str = "adam",
    precision: str = "float32",
    compute: str = "roofline",
    sample_s: float | None = None,
    gradients: str = "all_reduce",
    overlap: str = "ddp",
) -> SweepResult:
    """Return time, traffic and memory of a step under every strategy.

    Parameters
    ----------
    graph, cluster
        What is trained, and on what.
    strategies
        One row each.
    global_batch
        Samples of a step: one number, or one per strategy.
    optimizer
        ``sgd``, ``momentum``, ``adam`` or ``adamw``.
    precision
        One that the device has.
    compute
        ``roofline``, ``profiled`` (with `sample_s`, measured seconds of one sample) or ``paleo``.
    gradients
        ``all_reduce``, or ``parameter_server``: synchronous (asynchronous training, in which
        nobody waits, is not modelled).
    overlap
        How gradients go out beside the backward pass: ``ddp`` (in buckets), ``best`` (the least of
        buckets, layer by layer, and all at once) or ``none`` (when it has ended).

    Notes
    -----
    Rows that the network or the batch does not allow have no time; `SweepResult.why` says why.
    """
    table = _table(strategies)
    batch = _batches(global_batch, len(table))
    question = make_question(graph, cluster, optimizer, precision, compute, sample_s, gradients)
    if overlap not in OVERLAPS:
        raise UnknownNameError("overlap of gradients", overlap, OVERLAPS)
    question = replace(question, overlap=overlap)
    _check_devices(cluster, table)
    rules = find_rules(question.columns, table, batch)
    possible = ~np.logical_or.reduce(
        [np.zeros(len(table), dtype=bool), *(r.broken for r in rules)]
    )
    figures = {name: np.full(len(table), np.nan) for name in FIGURES}
    _fill(question, table, batch, np.flatnonzero(possible), figures)
    return SweepResult(
        graph=graph,
        cluster=cluster,
        table=table,
        global_batch=batch,
        figures=figures,
        rules=tuple(rules),
    )


def _table(strategies: StrategyTable | Iterable[Strategy]) -> StrategyTable:
    if isinstance(strategies, StrategyTable):
        return strategies
    return StrategyTable.from_strategies(strategies)


def _batches(global_batch: ArrayLike, n: int) -> Integers:
    batch = np.asarray(global_batch)
    if batch.size == 0 or (batch < 1).any() or (batch % 1 != 0).any():
        raise InvalidInputError(
            f"`global_batch` must be a positive whole number, but got {global_batch!r}."
        )
    if batch.ndim and batch.shape != (n,):
        raise InvalidInputError(
            f"`global_batch` must be one number or one per strategy ({n}), but got {batch.size}."
        )
    return np.broadcast_to(batch, (n,)).astype(np.int64)


def make_question(
    graph: LayerGraph,
    cluster: Cluster,
    optimizer: str,
    precision: str,
    compute: str = "roofline",
    sample_s: float | None = None,
    gradients: str = "all_reduce",
) -> Question:
    """Return what is the same for all rows of a sweep."""
    if gradients not in SCHEMES:
        raise UnknownNameError("scheme of exchanging gradients", gradients, SCHEMES)
    model = ComputeModel(
        device=cluster.device, precision=precision, name=compute, sample_s=sample_s
    )
    return Question(
        columns=columns_of(graph),
        cluster=cluster,
        model=model,
        numbers=numbers_of(precision, optimizer),
        optimizer=optimizer,
        scheme=gradients,
    )


def _check_devices(cluster: Cluster, table: StrategyTable) -> None:
    wanted, here = int(table.n_devices.max(initial=0)), cluster.capacity
    if here and wanted > here:
        raise InvalidInputError(
            f"A strategy must not need more devices than {cluster.name} has ({here}), but one "
            f"needs {wanted}. Try: --devices {'1..' if here > 1 else ''}{here}"
        )


def _fill(
    question: Question,
    table: StrategyTable,
    batch: Integers,
    rows: Integers,
    figures: dict[str, Array],
) -> None:
    """Work out the figures of some rows, in blocks that are alike."""
    if not len(rows):
        return
    chosen, samples = table.take(rows), batch[rows]
    micro_batch = samples / (chosen["data"] * chosen["micro_batches"])
    keys = distinct([micro_batch, *(chosen[d.degree] for d in DIVISIONS)])
    for low in range(0, len(keys), _MOST_KEYS):
        first = keys.first[low : low + _MOST_KEYS]
        costs = cost_layers(
            LayerQuestion(
                columns=question.columns,
                cluster=question.cluster,
                model=question.model,
                degrees={name: chosen[name][first] for name in DEGREES},
                micro_batch=micro_batch[first],
                scale=question.numbers.scale,
            )
        )
        inside = np.flatnonzero((keys.which >= low) & (keys.which < low + len(first)))
        for part in _alike(chosen, inside):
            block = Block(
                columns=question.columns,
                cluster=question.cluster,
                numbers=question.numbers,
                costs=costs,
                key=keys.which[part] - low,
                table=chosen.take(part),
                n_parts=int(chosen["pipeline"][part[0]] * chosen["virtual_stages"][part[0]]),
                overlap=question.overlap,
            )
            found = step_figures(
                block, question.model, question.optimizer, question.scheme, samples[part]
            )
            for name, values in found.items():
                figures[name][rows[part]] = values


def _alike(table: StrategyTable, rows: Integers) -> Iterator[Integers]:
    """Yield rows with as many stages and pieces per stage as each other."""
    groups = distinct([table["pipeline"][rows], table["virtual_stages"][rows]])
    order = np.argsort(groups.which, kind="stable")
    ends = np.cumsum(np.bincount(groups.which, minlength=len(groups)))
    for low, high in zip([0, *ends[:-1]], ends, strict=True):
        for start in range(low, high, _MOST_ROWS):
            yield rows[order[start : min(start + _MOST_ROWS, high)]]
