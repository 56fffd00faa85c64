"""What was measured: the range, the levels and the typical value of every parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import BLANK, Dataset, level_name
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators._columns import Array
from paceline.units import format_number


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRange:
    """The part of the space that the measurements cover.

    Parameters
    ----------
    ranges
        Smallest and largest value of every numeric parameter.
    levels
        Levels of every categorical parameter, the commonest first.
    medians
        Median of every numeric parameter. Where columns are derived, medians and first levels
        are those of a row that can be built, the nearest to them.
    """

    ranges: Mapping[str, tuple[float, float]]
    levels: Mapping[str, tuple[str, ...]]
    medians: Mapping[str, float]

    @classmethod
    def of(cls, dataset: Dataset) -> MeasuredRange:
        """Return the range of a dataset."""
        X, numeric = dataset.X, dataset.numeric
        measured = cls(
            ranges={n: (float(X[n].min()), float(X[n].max())) for n in numeric},
            levels={n: _by_frequency(X[n]) for n in dataset.categorical},
            medians={n: float(X[n].median()) for n in numeric},
        )
        is_derived = dataset.features is not None and bool(dataset.features.names)
        return measured._around(_typical_row(measured, X)) if is_derived else measured

    def _around(self, row: pd.Series[Any]) -> MeasuredRange:
        """Return the range with a measured row as its typical point."""
        first = {name: level_name(row[name]) for name in self.levels}
        return MeasuredRange(
            ranges=self.ranges,
            levels={
                n: (first[n], *(k for k in v if k != first[n])) for n, v in self.levels.items()
            },
            medians={n: float(row[n]) for n in self.medians},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return (*self.ranges, *self.levels)

    def typical(self) -> dict[str, float | str]:
        """Return the median or the commonest level of every parameter."""
        return {**self.medians, **{name: known[0] for name, known in self.levels.items()}}

    def complete(self, point: Mapping[str, Any]) -> tuple[pd.DataFrame, dict[str, float | str]]:
        """Return a point as one row, and the values that had to be filled in.

        Raises
        ------
        UnknownNameError
            The point names something that is not a parameter of the model.
        """
        for name in point:
            if name not in self.names:
                raise UnknownNameError("parameter", name, self.names)
        filled = {n: v for n, v in self.typical().items() if n not in point}
        return self.read(pd.DataFrame([{**filled, **point}])), filled

    def read(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the parameters of `rows`, numbers as numbers and levels as names.

        A level that is known in other letters, ``true`` for ``True``, is that one.
        """
        columns: dict[str, pd.Series[Any]] = {}
        for name in self.names:
            if name not in rows.columns:
                raise UnknownNameError("column", name, map(str, rows.columns))
            if name in self.levels:
                columns[name] = _labels(rows[name], self.levels[name])
            else:
                columns[name] = _numbers(rows[name])
        return pd.DataFrame(columns, index=rows.index)

    def outside(self, X: pd.DataFrame) -> dict[str, Array]:
        """Return how far outside every parameter is, 0 inside; one measured span is 1.

        Distances are in logarithms. An unseen level counts 1.
        """
        far = {name: _log_distance(X[name], *limits) for name, limits in self.ranges.items()}
        for name, known in self.levels.items():
            far[name] = np.where(X[name].isin(known), 0.0, 1.0)
        return far

    def describe(self, name: str) -> str:
        """Return the measured range or the known levels of one parameter in words."""
        if name in self.levels:
            return f"known levels: {', '.join(self.levels[name])}"
        low, high = self.ranges[name]
        return f"measured from {format_number(low, 6)} to {format_number(high, 6)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the range as plain data."""
        return {
            "ranges": {n: list(pair) for n, pair in self.ranges.items()},
            "levels": {n: list(known) for n, known in self.levels.items()},
            "medians": dict(self.medians),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuredRange:
        """Return the range that `to_dict` wrote."""
        return cls(
            ranges={
                str(n): (float(low), float(high)) for n, (low, high) in data["ranges"].items()
            },
            levels={str(n): tuple(map(str, known)) for n, known in data["levels"].items()},
            medians={str(n): float(v) for n, v in data["medians"].items()},
        )


def _by_frequency(values: pd.Series[Any]) -> tuple[str, ...]:
    counts = values.map(level_name).value_counts()
    # ties by name, so that the order of the rows does not matter
    return tuple(sorted(map(str, counts.index), key=lambda level: (-int(counts[level]), level)))


def _typical_row(measured: MeasuredRange, X: pd.DataFrame) -> pd.Series[Any]:
    """Return the row nearest to all medians and commonest levels; a level counts one span."""
    far = np.zeros(len(X))
    for name, known in measured.levels.items():
        far += (X[name].map(level_name) != known[0]).to_numpy(dtype=float)
    for name, (low, high) in measured.ranges.items():
        far += np.abs(X[name].to_numpy() - measured.medians[name]) / ((high - low) or 1.0)
    return X.iloc[int(np.argmin(far))]


def _labels(values: pd.Series[Any], known: Sequence[str]) -> pd.Series[str]:
    missing = (values.isna() | (values.astype(str).str.strip() == "")).to_numpy(dtype=bool)
    if BLANK in known:
        values = values.where(~missing, BLANK)
    elif missing.any():
        raise InvalidInputError(
            f"`{values.name}` must have a level in every row, but row {int(missing.argmax()) + 1} "
            f"is blank. Fill it, or leave the row out."
        )
    names = values.map(level_name)
    return names.map({name: _as_known(name, known) for name in names.unique()})


def _as_known(name: str, known: Sequence[str]) -> str:
    alike = [level for level in known if level.casefold() == name.casefold()]
    return name if name in known or len(alike) != 1 else alike[0]


def _numbers(values: pd.Series[Any]) -> pd.Series[float]:
    numbers = pd.to_numeric(values, errors="coerce")
    bad = ~np.isfinite(numbers.to_numpy(dtype=float))
    if bad.any():
        row = int(np.argmax(bad))
        got = "nothing" if pd.isna(values.iloc[row]) else f"{str(values.iloc[row])!r}"
        raise InvalidInputError(
            f"`{values.name}` must be a finite number, but row {row + 1} has {got}. "
            f"Correct it, or leave the row out."
        )
    return numbers.astype(float)


def _log_distance(values: pd.Series[Any], low: float, high: float) -> Array:
    x = values.to_numpy(dtype=float)
    # zero and below have no logarithm: inside the range they are at no distance, outside at one
    inside = (x >= low) & (x <= high)
    tiny = np.finfo(float).tiny
    log, bottom, top = (np.log(np.maximum(v, tiny)) for v in (x, low, high))
    span = max(float(top - bottom), np.log(2.0)) if low > 0 else np.log(2.0)
    distance = np.maximum(bottom - log, log - top) / span
    return np.where(inside, 0.0, np.where(x > 0, distance, 1.0))
