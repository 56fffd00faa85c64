"""Many strategies at once, as one array of whole numbers per part."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.scenario._strategy import DEGREES, SCHEDULES, Strategy

Integers = NDArray[np.int64]

_DEFAULTS = {
    **dict.fromkeys(DEGREES, 1),
    "shard": 0,
    "micro_batches": 1,
    "schedule": SCHEDULES.index("1f1b"),
    "virtual_stages": 1,
    "recompute": 0,
}


@dataclass(frozen=True, kw_only=True)
class StrategyTable:
    """Strategies as columns.

    Parameters
    ----------
    columns
        By the names of a `Strategy`'s parts, whole numbers of equal length: ``schedule`` is the
        place in `SCHEDULES`, ``recompute`` 0 or 1.
    """

    columns: Mapping[str, Integers]

    @classmethod
    def from_columns(cls, **columns: ArrayLike) -> StrategyTable:
        """Return a table of these columns; parts that are not named are at their default.

        Examples
        --------
        >>> len(StrategyTable.from_columns(data=[1, 2, 4]))
        3
        """
        for name in columns:
            if name not in _DEFAULTS:
                raise UnknownNameError("part of a strategy", name, _DEFAULTS)
        given = np.broadcast_arrays(*(np.atleast_1d(c) for c in columns.values()))
        n = len(given[0]) if given else 1
        full = {name: np.full(n, value, dtype=np.int64) for name, value in _DEFAULTS.items()}
        full |= {
            name: np.ascontiguousarray(array, dtype=np.int64)
            for name, array in zip(columns, given, strict=True)
        }
        _check(full)
        return cls(columns=full)

    @classmethod
    def from_strategies(cls, strategies: Iterable[Strategy]) -> StrategyTable:
        """Return one row per strategy."""
        rows = list(strategies)
        if not rows:
            raise InvalidInputError("A table must have at least one strategy, but got none.")
        columns: dict[str, Any] = {name: [getattr(s, name) for s in rows] for name in _DEFAULTS}
        columns["schedule"] = [SCHEDULES.index(name) for name in columns["schedule"]]
        return cls.from_columns(**columns)

    @classmethod
    def product(cls, **choices: Sequence[int]) -> StrategyTable:
        """Return every combination of the values given.

        Examples
        --------
        >>> len(StrategyTable.product(data=[1, 2, 4], tensor=[1, 2]))
        6
        """
        rows = np.array(list(itertools.product(*choices.values())), dtype=np.int64)
        return cls.from_columns(**{name: rows[:, i] for i, name in enumerate(choices)})

    @classmethod
    def concatenate(cls, tables: Sequence[StrategyTable]) -> StrategyTable:
        """Return the rows of several tables, one table after another."""
        return cls(columns={name: np.concatenate([t[name] for t in tables]) for name in _DEFAULTS})

    def __len__(self) -> int:
        return len(self.columns["data"])

    def __getitem__(self, name: str) -> Integers:
        return self.columns[name]

    @property
    def n_devices(self) -> Integers:
        """Product of all degrees, by row."""
        found = np.ones(len(self), dtype=np.int64)
        for name in DEGREES:
            found = found * self[name]
        return found

    def take(self, rows: ArrayLike) -> StrategyTable:
        """Return some rows: their places, or a mask."""
        which = np.asarray(rows)
        return StrategyTable(columns={name: self[name][which] for name in _DEFAULTS})

    def repeat(self, n: int) -> StrategyTable:
        """Return every row `n` times in a row."""
        return self.take(np.repeat(np.arange(len(self)), n))

    def strategy(self, row: int) -> Strategy:
        """Return one row as a strategy."""
        values: dict[str, Any] = {name: int(self[name][row]) for name in _DEFAULTS}
        values["schedule"] = SCHEDULES[values["schedule"]]
        values["recompute"] = bool(values["recompute"])
        return Strategy(**values)


def _check(columns: Mapping[str, Integers]) -> None:
    for name in (*DEGREES, "micro_batches", "virtual_stages"):
        if columns[name].min(initial=1) < 1:
            raise InvalidInputError(
                f"`{name}` must be positive everywhere, but got {columns[name].min()}."
            )
    for name, highest in {"shard": 3, "schedule": len(SCHEDULES) - 1, "recompute": 1}.items():
        low, high = columns[name].min(initial=0), columns[name].max(initial=0)
        if low < 0 or high > highest:
            raise InvalidInputError(
                f"`{name}` must lie in 0..{highest}, but got {low if low < 0 else high}."
            )
