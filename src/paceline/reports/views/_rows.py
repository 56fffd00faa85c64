"""Measured rows beside what a model predicts of them, and how residuals go with parameters."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.dataset import Dataset, level_name
from paceline.estimators import FitResult, MeasuredRange, Scores, score
from paceline.units import format_number

Array = NDArray[np.float64]

MOST_POINTS = 3000  # more cannot be told apart in a picture, and only make the file larger
_MOST_GROUPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Predicted against measured times.

    Parameters
    ----------
    measured_s, predicted_s
        Of the rows that are shown, at most `MOST_POINTS` of them.
    n_rows
        Rows in all; `scores`, line and `covered` are of all.
    is_fitted
        Whether these seem to be the rows that the model was fitted to.
    scores
        Errors on these rows.
    held_out
        Errors on rows that the fit had not seen; None when unknown.
    noise_floor
        What repeats differ by, as a share; None without repeats.
    factor, power
        The line ``predicted = factor * measured ^ power``, fitted in logarithms.
    covered
        Share of the measured times within the 90 % intervals; None without intervals.
    """

    measured_s: tuple[float, ...]
    predicted_s: tuple[float, ...]
    n_rows: int
    is_fitted: bool
    scores: Scores
    held_out: Scores | None
    noise_floor: float | None
    factor: float
    power: float
    covered: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        scores = {"scores": self.scores.to_dict()}
        held_out = None if self.held_out is None else self.held_out.to_dict()
        return {**asdict(self), **scores, "held_out": held_out}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualGroup:
    """Residuals ``measured / predicted - 1`` of the rows with like values of a parameter.

    `low` and `high` hold 90 % of them between them, `lower` and `upper` half.
    """

    label: str
    n_rows: int
    low: float
    lower: float
    median: float
    upper: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Residuals along one parameter."""

    name: str
    groups: tuple[ResidualGroup, ...]

    @property
    def reach(self) -> float:
        """How far the medians of the groups lie apart: what the model has missed."""
        medians = [group.median for group in self.groups]
        return max(medians) - min(medians)

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


def predict_rows(dataset: Dataset, fit: FitResult) -> pd.DataFrame:
    """Return ``measured_s`` and what the model predicts of every row, as `FitResult.predict`."""
    predicted = fit.predict(dataset.X).reset_index(drop=True)
    predicted.insert(0, "measured_s", np.asarray(dataset.y, dtype=float))
    return predicted


def view_agreement(
    dataset: Dataset, fit: FitResult, rows: pd.DataFrame | None = None
) -> Agreement:
    """Return predicted against measured times.

    Parameters
    ----------
    dataset, fit
        What was measured, and the model.
    rows
        What `predict_rows` gave; None: predict them.
    """
    rows = predict_rows(dataset, fit) if rows is None else rows
    measured, predicted = (rows[n].to_numpy() for n in ("measured_s", "predicted_s"))
    power, shift = _line(np.log(measured), np.log(np.maximum(predicted, 1e-300)))
    shown = _thinned(len(rows))
    inside = (rows["measured_s"] >= rows["lower_s"]) & (rows["measured_s"] <= rows["upper_s"])
    return Agreement(
        measured_s=tuple(measured[shown].tolist()),
        predicted_s=tuple(predicted[shown].tolist()),
        n_rows=len(rows),
        is_fitted=_is_fitted(dataset, fit),
        scores=score(measured, predicted),
        held_out=fit.scores,
        noise_floor=fit.noise_floor,
        factor=math.exp(shift),
        power=power,
        covered=None if rows["lower_s"].isna().any() else float(inside.mean()),
    )


def view_residuals(
    dataset: Dataset, fit: FitResult, rows: pd.DataFrame | None = None
) -> tuple[Residuals, ...]:
    """Return the residuals along every parameter of the model, what it misses most first."""
    rows = predict_rows(dataset, fit) if rows is None else rows
    residuals = (rows["measured_s"] / rows["predicted_s"] - 1.0).to_numpy()
    X = fit.measured.read(dataset.X)
    found = [
        Residuals(name=name, groups=_groups(X[name], residuals, name in fit.measured.levels))
        for name in fit.measured.names
    ]
    return tuple(sorted(found, key=lambda view: -view.reach))


def _line(x: Array, y: Array) -> tuple[float, float]:
    """Return slope and shift of the least-squares line."""
    spread = x - x.mean()
    square = float(spread @ spread)
    slope = float(spread @ y) / square if square > 1e-12 else 1.0
    return slope, float(y.mean() - slope * x.mean())


def _thinned(n_rows: int) -> Any:
    if n_rows <= MOST_POINTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, MOST_POINTS, replace=False))


def _is_fitted(dataset: Dataset, fit: FitResult) -> bool:
    if dataset.n_rows != fit.n_rows:
        return False
    ranges = {n: MeasuredRange.of(dataset).ranges.get(n) for n in fit.measured.ranges}
    return ranges == dict(fit.measured.ranges)


def _groups(values: pd.Series[Any], residuals: Array, is_level: bool) -> tuple[ResidualGroup, ...]:
    labels = (values.map(level_name) if is_level else _bins(values)).reset_index(drop=True)
    order = labels.value_counts().index[:_MOST_GROUPS]
    names = order if is_level else labels[np.argsort(values.to_numpy())].drop_duplicates()
    return tuple(_group(str(n), residuals[(labels == n).to_numpy()]) for n in names)


def _bins(values: pd.Series[Any]) -> pd.Series[Any]:
    """Return the value of every row, or the range it lies in where there are many values."""
    if values.nunique() <= _MOST_GROUPS:
        return values.map(lambda value: format_number(float(value), 4))
    cut = pd.qcut(values, 6, duplicates="drop")
    ends = values.groupby(cut, observed=True).agg(["min", "max"])
    names = {
        place: f"{format_number(float(low), 3)}–{format_number(float(high), 3)}"
        for place, (low, high) in zip(ends.index, ends.to_numpy(), strict=True)
    }
    return cut.astype(object).map(names)


def _group(label: str, residuals: Array) -> ResidualGroup:
    low, lower, median, upper, high = np.quantile(residuals, [0.05, 0.25, 0.5, 0.75, 0.95])
    return ResidualGroup(
        label=label,
        n_rows=len(residuals),
        low=float(low),
        lower=float(lower),
        median=float(median),
        upper=float(upper),
        high=float(high),
    )
