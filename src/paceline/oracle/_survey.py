"""The best of every strategy on every number of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.clusters import Cluster
from paceline.errors import InfeasibleError, InvalidInputError
from paceline.oracle._columns import columns_of
from paceline.oracle._enumerate import ALL, PARTS, SPARING, Row, named_rows, table_of
from paceline.oracle._limits import limits_of
from paceline.oracle._result import SweepResult
from paceline.oracle._sweep import sweep
from paceline.scenario import DEGREES, SCHEDULES, Strategy
from paceline.units import format_count
from paceline.workloads import LayerGraph

Integers = NDArray[np.int64]
Label = tuple[str, int]  # name of a strategy, and number of devices
_Found = list[tuple[Label, list[Row]]]


@dataclass(frozen=True, kw_only=True)
class Survey:
    """One row per strategy's name and number of devices: the best that fits, or comes nearest.

    Parameters
    ----------
    names
        Of the strategies, by row.
    n_devices
        Asked for, by row.
    result
        What the sweep found of them.
    n_scenarios
        How many were looked at.
    optimizer, precision
        What was asked about.
    """

    names: tuple[str, ...]
    n_devices: Integers
    result: SweepResult
    n_scenarios: int
    optimizer: str
    precision: str

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def best(self) -> dict[int, int]:
        """Row of the fastest strategy that fits, by number of devices."""
        found: dict[int, int] = {}
        for n in np.unique(self.n_devices):
            rows = np.flatnonzero((self.n_devices == n) & self.result.fits)
            if len(rows):
                rates = self.result.global_batch[rows] / self.result.step_s[rows]
                found[int(n)] = int(rows[np.argmax(rates)])
        return found

    @property
    def limits(self) -> dict[str, str]:
        """Largest degree of every strategy here, with the layer that sets it."""
        asked = [name.split("+") for name in self.names]
        used = {PARTS[part][0] for parts in asked for part in parts if part in PARTS}
        table = self.result.table
        used |= {degree for degree in DEGREES if (table[degree] > 1).any()}
        known = limits_of(columns_of(self.result.graph))
        found = {
            name: f"at most {limit.largest}: {limit}"
            for name, limit in known.items()
            if name in used
        }
        batches = set(self.result.global_batch.tolist())
        if "data" in used and len(batches) == 1 < len(set(self.n_devices.tolist())):
            found["data"] = f"at most {batches.pop()}: a device needs a sample of the batch"
        return found

    def frame(self, n_samples: int | None = None) -> pd.DataFrame:
        """Return all figures, one row per strategy and number of devices.

        Parameters
        ----------
        n_samples
            Of an epoch: adds its time, device-hours and money.
        """
        table = self.result.frame.copy()
        best = set(self.best.values())
        table.insert(0, "strategy", list(self.names))
        table["n_devices"] = self.n_devices
        table["best"] = [row in best for row in range(len(self))]
        table["why"] = [self.result.why(row) for row in range(len(self))]
        table["optimizer"], table["precision"] = self.optimizer, self.precision
        if n_samples is not None:
            epoch_s = self.result.epoch_s(n_samples)
            table["epoch_s"] = epoch_s
            table["device_hours"] = self.n_devices * epoch_s / 3600
            price = self.result.cluster.price_per_device_hour
            if price is not None:
                table["money"] = table["device_hours"] * price
        return table

    def require_fit(self) -> None:
        """Refuse a survey in which nothing fits.

        Raises
        ------
        InvalidInputError
            When no strategy is possible with these batches and degrees.
        InfeasibleError
            When some are, but none fits in memory; says what is short by how much.
        """
        result = self.result
        if not result.is_possible.any():
            raise InvalidInputError(f"No strategy is possible. {self.names[0]}: {result.why(0)}.")
        if not result.fits.any():
            raise InfeasibleError(self._shortage())

    def _shortage(self) -> str:
        """Say what is short of memory by how much, of the strategy that comes nearest."""
        result, need = self.result, self.result.memory_bytes
        row = int(np.argmin(np.where(result.is_possible, need - result.memory_limits, np.inf)))
        n, cluster = int(self.n_devices[row]), result.cluster
        whose = f"a {cluster.device.name}" if cluster.is_even else "the smallest device in use"
        return (
            f"No strategy fits in the {result.memory_limits[row] / 2**30:.1f} GiB of {whose}: the "
            f"nearest is {self.names[row]} on {format_count(n, 'device')} "
            f"({result.table.strategy(row)}), which needs {need[row] / 2**30:.1f} GiB, "
            f"{result.why(row)}."
        )


def survey(
    graph: LayerGraph,
    cluster: Cluster,
    n_devices: Sequence[int],
    *,
    names: Sequence[str] = ALL,
    strategies: Sequence[Strategy] = (),
    global_batch: int | None = None,
    device_batch: int | None = None,
    optimizer: str = "adam",
    precision: str = "float32",
) -> Survey:
    """Return the best of every named strategy on every number of devices.

    Parameters
    ----------
    graph, cluster
        What is trained, and on what.
    n_devices
        Numbers of devices.
    names
        As `enumerate_strategies` takes them. Where nothing of all of them fits, what needs less
        memory is tried too: micro-batches of few samples, activations computed again.
    strategies
        Instead of names: strategies whose degrees multiply to one of `n_devices`.
    global_batch, device_batch
        Samples of a step: in all (strong scaling), or by device (weak scaling).
    optimizer, precision
        As `sweep` takes them.
    """
    if (global_batch is None) == (device_batch is None):
        raise InvalidInputError("Give either `global_batch` or `device_batch`, not both.")

    numbers: dict[str, Any] = {"optimizer": optimizer, "precision": precision}

    def batch_of(n: int) -> int:
        return device_batch * n if device_batch is not None else int(global_batch or 0)

    def swept(found: _Found) -> _Swept:
        labels = [label for label, rows in found for _ in rows]
        batches = np.array([batch_of(n) for _, n in labels])
        rows = [row for _, rows in found for row in rows]
        result = sweep(graph, cluster, table_of(rows), global_batch=batches, **numbers)
        return _Swept(labels, rows, result.at_slowest(), numbers)

    first = swept(
        _given(strategies, n_devices) if strategies else _named(names, n_devices, batch_of)
    )
    if strategies or tuple(names) != ALL:
        return first.survey(first.nearest)
    short = [n for n in n_devices if not first.fits_on(n)]
    more = _named(SPARING, short, batch_of, sparing=True) if short else []
    if not more:
        return first.survey(first.nearest)
    second = swept(more)
    chosen = [first.part(row) for row in first.nearest]
    chosen += [second.part(row) for n in short for row in second.sparing_rows(n)]
    both = swept(sorted(chosen, key=lambda part: list(n_devices).index(part[0][1])))
    n_scenarios = len(first.labels) + len(second.labels)
    return replace(both.survey(range(len(both.labels))), n_scenarios=n_scenarios)


@dataclass(frozen=True)
class _Swept:
    """Strategies with what a sweep says of each."""

    labels: Sequence[Label]
    rows: Sequence[Row]
    result: SweepResult
    numbers: Mapping[str, str]  # optimizer and precision

    @cached_property
    def nearest(self) -> list[int]:
        """The fastest row of every label that fits, else the smallest, else the first."""
        best: dict[Label, tuple[int, float, int]] = {}
        fits, possible = self.result.fits, self.result.is_possible
        memory, step = self.result.memory_bytes, self.result.step_s
        for row, label in enumerate(self.labels):
            rank = 0 if fits[row] else 1 if possible[row] else 2
            figure = float(step[row] if rank == 0 else memory[row] if rank == 1 else row)
            if label not in best or (rank, figure, row) < best[label]:
                best[label] = (rank, figure, row)
        return [row for _, _, row in best.values()]

    def fits_on(self, n: int) -> bool:
        """Return whether anything fits on so many devices."""
        return any(self.result.fits[row] for row in self.nearest if self.labels[row][1] == n)

    def sparing_rows(self, n: int) -> list[int]:
        """Return what fits on so many devices, else what comes nearest to it."""
        rows = [row for row in self.nearest if self.labels[row][1] == n]
        possible = [row for row in rows if self.result.is_possible[row]]
        nearest = sorted(possible, key=lambda row: float(self.result.memory_bytes[row]))[:1]
        return [row for row in rows if self.result.fits[row]] or nearest

    def part(self, row: int) -> tuple[Label, list[Row]]:
        """Return one of the strategies as it was asked for."""
        return self.labels[row], [self.rows[row]]

    def survey(self, rows: Sequence[int]) -> Survey:
        """Return the survey of some rows."""
        return Survey(
            names=tuple(self.labels[row][0] for row in rows),
            n_devices=np.array([self.labels[row][1] for row in rows]),
            result=self.result.take(np.array(rows)),
            n_scenarios=len(self.labels),
            **self.numbers,
        )


def _named(
    names: Sequence[str],
    n_devices: Sequence[int],
    batch_of: Callable[[int], int],
    *,
    sparing: bool = False,
) -> _Found:
    """Return the strategies of every name and number of devices; one device is always serial."""
    found = []
    for n in n_devices:
        for name in names if n > 1 or sparing else dict.fromkeys(["serial", *names]):
            rows = named_rows(name, n, batch_of(n), sparing)
            if rows:
                found.append(((name, n), rows))
    if not found and not sparing:
        raise InvalidInputError(
            f"A strategy of {', '.join(names)} must have degrees above one that multiply to the "
            f"number of devices, but none has for {', '.join(map(str, n_devices))}. Try: data"
        )
    return found


def _given(strategies: Sequence[Strategy], n_devices: Sequence[int]) -> _Found:
    """Return the user's own strategies; degrees must multiply to a number asked for."""
    found = []
    for strategy in strategies:
        n = strategy.n_devices
        if n not in n_devices:
            product = " * ".join(str(getattr(strategy, d)) for d in DEGREES if _used(strategy, d))
            raise InvalidInputError(
                "The degrees of a strategy must multiply to a number of devices asked for "
                f"({', '.join(map(str, n_devices))}), but got {product or 1} = {n}."
            )
        parts = {**strategy.to_dict(), "schedule": SCHEDULES.index(strategy.schedule)}
        found.append(((str(strategy), n), [{name: int(v) for name, v in parts.items()}]))
    return found


def _used(strategy: Strategy, degree: str) -> bool:
    return bool(getattr(strategy, degree) > 1)
