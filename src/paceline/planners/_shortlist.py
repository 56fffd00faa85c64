"""Which of thousands of scenarios are worth working out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InvalidInputError
from paceline.executors import why_not_run
from paceline.oracle import ALL, SPARING, SweepResult, enumerate_strategies, sweep
from paceline.planners._objectives import scores
from paceline.planners._task import Task
from paceline.scenario import DEGREES, Strategy, StrategyTable
from paceline.units import format_count

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# what an executor runs (paceline run); replicas of all of them
PLANNED = (
    "serial",
    "accumulation",
    "data",
    "data+accumulation",
    "zero2",
    "zero2+accumulation",
    "zero3",
    "zero3+accumulation",
    "spatial",
    "data+spatial",
    "filter",
    "data+filter",
    "channel",
    "data+channel",
    "tensor",
    "data+tensor",
    "pipeline",
    "gpipe",
    "interleaved",
    "data+pipeline",
    "data+gpipe",
    "data+interleaved",
    "recompute",
    "accumulation+recompute",
    "data+recompute",
    "data+accumulation+recompute",
    "zero2+recompute",
    "zero2+accumulation+recompute",
    "zero3+recompute",
    "zero3+accumulation+recompute",
    "pipeline+recompute",
    "data+pipeline+recompute",
)
EVERYTHING = tuple(dict.fromkeys((*PLANNED, *ALL, *SPARING, "zero1+accumulation")))
_INSIDE = ("spatial", "filter", "channel", "tensor")  # not of a module of the user's own
_MOST_BEST = 12  # rows worked out because they are among the best
_MOST_NEAR = 6  # and because a better cut may make them fit
_NEAR = 1.5  # times the memory that there is


@dataclass(frozen=True, kw_only=True)
class Sifted:
    """All scenarios, and the places of those to work out.

    Parameters
    ----------
    result
        Of the oracle's sweep.
    step_s
        What a step takes, as the predictor says or as devices of different speed allow.
    fits
        Whether a scenario fits in the memory of the largest devices.
    rows
        To be worked out, best first.
    """

    result: SweepResult
    step_s: Array
    fits: NDArray[np.bool_]
    rows: tuple[int, ...]


def sift(
    task: Task, names: Sequence[str] | None, strategies: Sequence[Strategy], use_all: bool
) -> Sifted:
    """Return all scenarios of these names, or these strategies, and the most promising."""
    memory = task.cluster.memories(task.cluster.n_devices or task.n_devices).max()
    result = _swept(task, _table(task, names, strategies, use_all))
    fits = result.is_possible & (result.memory_bytes <= memory)
    if not fits.any() and not strategies:
        result = _swept(task, _table(task, names, strategies, use_all, sparing=True))
        fits = result.is_possible & (result.memory_bytes <= memory)
    step_s = _steps(task, result, fits)
    rows = _promising(task, result, step_s, fits, float(memory))
    return Sifted(result=result, step_s=step_s, fits=fits, rows=rows)


def _swept(task: Task, table: StrategyTable) -> SweepResult:
    result = sweep(
        task.graph,
        task.cluster,
        _runnable(task, table) if task.runnable_only else table,
        global_batch=task.global_batch,
        optimizer=task.optimizer,
        precision=task.precision,
    )
    _require_possible(result)
    return result


def _table(
    task: Task,
    names: Sequence[str] | None,
    strategies: Sequence[Strategy],
    use_all: bool,
    sparing: bool = False,
) -> StrategyTable:
    if strategies:
        for strategy in strategies:
            if strategy.n_devices > task.n_devices:
                raise InvalidInputError(
                    f"A strategy must need at most {format_count(task.n_devices, 'device')}, "
                    f"but {strategy} needs "
                    f"{strategy.n_devices}. Try: --devices {strategy.n_devices}"
                )
        return StrategyTable.from_strategies(strategies)
    wanted = names or (PLANNED if task.runnable_only else EVERYTHING)
    counts = [task.n_devices] if use_all else counts_up_to(task.n_devices)
    tables = [
        enumerate_strategies(
            task.graph,
            task.cluster,
            n,
            names=taking,
            global_batch=task.global_batch,
            sparing=sparing,
        )
        for n in counts
        if (taking := [name for name in wanted if _takes(name, n)])
    ]
    if not tables:  # refused there, with the rule that the names break
        return enumerate_strategies(task.graph, task.cluster, task.n_devices, names=wanted)
    return StrategyTable.concatenate(tables)


def _runnable(task: Task, table: StrategyTable) -> StrategyTable:
    """Leave out what no worker runs.

    Raises
    ------
    InvalidInputError
        When nothing is left; says why.
    """
    codes = family_codes(table)
    _, first = np.unique(codes, return_index=True)
    reasons = np.array([_why_not(task, table.strategy(int(row))) for row in first])
    if reasons.all():
        raise InvalidInputError(
            f"A plan must be one that can be run, but {reasons[0]}. To plan it all the same, add: "
            "--unrunnable"
        )
    return table.take(reasons[codes] == "")


def _why_not(task: Task, strategy: Strategy) -> str:
    used = [name for name in _INSIDE if getattr(strategy, name) > 1]
    if "module" in task.workload and used:
        return f"no worker divides your own module by {used[0]}"
    return why_not_run(strategy)


def _takes(name: str, n: int) -> bool:
    """Return whether so many devices are a product of as many factors as a name has degrees."""
    wanted = sum(part not in ("serial", "accumulation", "recompute") for part in name.split("+"))
    return n == 1 if not wanted else _n_factors(n) >= wanted


def _n_factors(n: int) -> int:
    """Return how many primes a number is a product of.

    Examples
    --------
    >>> [_n_factors(n) for n in (1, 2, 12, 97)]
    [0, 1, 3, 1]
    """
    count, prime = 0, 2
    while prime * prime <= n:
        if n % prime:
            prime += 1
        else:
            n, count = n // prime, count + 1
    return count + (n > 1)


def counts_up_to(n: int) -> list[int]:
    """Return the numbers of devices to look at: divisors and powers of two.

    Examples
    --------
    >>> counts_up_to(12)
    [1, 2, 3, 4, 6, 8, 12]
    """
    small = [i for i in range(1, int(n**0.5) + 1) if n % i == 0]
    powers = {2**i for i in range(n.bit_length()) if 2**i <= n}
    return sorted({*small, *(n // i for i in small), *powers})


def _require_possible(result: SweepResult) -> None:
    if not result.is_possible.any():
        last = len(result) - 1
        raise InvalidInputError(
            f"No strategy is possible. {result.table.strategy(last)}: {result.why(last)}."
        )


def _steps(task: Task, result: SweepResult, fits: NDArray[np.bool_]) -> Array:
    if task.predictor is not None:
        step_s = np.full(len(result), np.nan)
        rows = np.flatnonzero(fits)
        asked = [task.scenario(result.table.strategy(int(row))) for row in rows]
        step_s[rows] = task.predictor.predict(asked)
        return step_s
    if task.cluster.is_even:
        return result.step_s
    speeds = np.sort(task.cluster.speeds(task.cluster.n_devices))[::-1]
    shared = np.arange(1, len(speeds) + 1) / np.cumsum(speeds)  # of the fastest n
    n = np.minimum(result.table.n_devices, len(speeds))
    return np.asarray(result.step_s + result.compute_s * (shared[n - 1] - 1))


def _promising(
    task: Task, result: SweepResult, step_s: Array, fits: NDArray[np.bool_], memory: float
) -> tuple[int, ...]:
    """Return the best rows, the best of every kind, and those that a better cut may make fit."""
    n_devices = result.table.n_devices
    values = np.where(fits, scores(task, step_s, n_devices), np.inf)
    order = [int(i) for i in np.argsort(values, kind="stable") if fits[i]]
    chosen = order[:_MOST_BEST] + _first_of_each(order, family_codes(result.table))
    least = float(np.nanmin(step_s[fits])) if order else np.inf
    near = result.is_possible & ~fits & (result.table["pipeline"] > 1)
    if order:
        near &= (result.memory_bytes < _NEAR * memory) & (result.step_s < least)
    small = np.flatnonzero(near if near.any() or order else result.is_possible)
    chosen += [int(i) for i in small[np.argsort(result.memory_bytes[small])][:_MOST_NEAR]]
    if not order:  # nothing fits: what comes nearest says what is short
        possible = np.flatnonzero(result.is_possible)
        chosen.append(int(possible[np.argmin(result.memory_bytes[possible])]))
    return tuple(dict.fromkeys(chosen))


def _first_of_each(order: Sequence[int], codes: Integers) -> list[int]:
    first: dict[int, int] = {}
    for row in order:
        first.setdefault(int(codes[row]), row)
    return list(first.values())


def family_codes(table: StrategyTable) -> Integers:
    """Return by row the kind of strategy: which degrees are used, sharding and schedule.

    Kinds count from 0 without gaps.
    """
    deep = table["pipeline"] > 1
    columns = [(table[name] > 1).astype(np.int64) for name in DEGREES]
    columns += [table["shard"], np.where(deep, table["schedule"], 0), table["recompute"]]
    _, codes = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return np.asarray(codes).ravel()
