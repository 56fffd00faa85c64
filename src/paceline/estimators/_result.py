"""The result of a fit: an expression with everything needed to predict and to explain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import TimeBasis, html_card
from paceline.estimators._columns import Array
from paceline.estimators._difficulty import Difficulty
from paceline.estimators._expression import positive
from paceline.estimators._features import Features
from paceline.estimators._intervals import WIDENING, half_width
from paceline.estimators._measured import MeasuredRange
from paceline.estimators._metrics import Scores
from paceline.estimators._posynomial import PosynomialExpression
from paceline.estimators._stability import Stability
from paceline.units import format_percent

SCHEMA = "paceline/model/1"


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """A fitted estimator with its range, its errors and its candid notes.

    Parameters
    ----------
    form
        Which family of expressions was fitted.
    estimator
        The fitted estimator.
    measured
        The range that the measurements cover.
    basis
        What the times are of.
    scores
        Errors on rows that the fit had not seen; None when there were too few.
    residuals
        Sorted sizes of the held-out log-ratios measured / predicted, in units of what
        `difficulty` expects at each place.
    difficulty
        Where errors are large; None when all places are alike.
    covers
        What the held-out rows stand for, in words.
    shares
        Mean share of the time of every summand.
    stability
        Spread of every constant, or None when not studied.
    n_rows
        Number of rows fitted.
    noise_floor
        What repeats of one configuration differ by, as a share; None without repeats.
    widening
        How many times its width an interval gains one measured span outside what was measured.
    notes
        What a reader should know.
    features
        Columns that are derived from the parameters and join them; None when there are none.
    """

    form: str
    estimator: Any
    measured: MeasuredRange
    basis: TimeBasis
    scores: Scores | None
    residuals: tuple[float, ...]
    covers: str
    shares: Mapping[str, float]
    stability: Stability | None
    n_rows: int
    difficulty: Difficulty | None = None
    noise_floor: float | None = None
    widening: float = WIDENING
    notes: tuple[str, ...] = field(default=())
    features: Features | None = None

    def _repr_html_(self) -> str:
        facts = {"form": self.form, "rows": str(self.n_rows), "time": str(self.basis)}
        if self.scores is not None:
            facts["held-out error"] = f"{format_percent(self.scores.mape)} ({self.covers})"
        if self.noise_floor is not None:
            facts["noise floor"] = format_percent(self.noise_floor)
        largest = sorted(self.shares, key=lambda name: -self.shares[name])[:5]
        facts |= {f"share of {name}": format_percent(self.shares[name]) for name in largest}
        return html_card("Model of the time", facts, text=self.estimator.expression_.to_latex())

    def widen(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the parameters and what is derived from them, as the estimator takes them.

        Raises
        ------
        InvalidInputError
            When a row cannot be built, so that nothing can be derived; names the row.
        """
        return X if self.features is None else X.join(self.features.derive(X))

    def predict(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return time, 90 % interval and whether each row lies outside the measured range.

        The columns are ``predicted_s``, ``lower_s``, ``upper_s`` and ``extrapolates``; the
        interval is NaN when fewer than nine held-out residuals are known.
        """
        X = self.measured.read(rows)
        for name in self.estimator.extrinsic or ():
            if name in X:  # some are derived from the others
                positive(X, name)
        predicted = self.estimator.predict(self.widen(X))
        distance = np.sum(list(self.outside(X).values()), axis=0)
        below, above = self._half_widths(X, predicted, distance)
        return pd.DataFrame(
            {
                "predicted_s": predicted,
                "lower_s": predicted * np.exp(-below),
                "upper_s": np.minimum(predicted * np.exp(above), np.finfo(float).max),
                "extrapolates": (distance > 0).astype(int),
            },
            index=rows.index,
        )

    def outside(self, X: pd.DataFrame) -> dict[str, Array]:
        """Return how far outside every parameter is, as `MeasuredRange.outside` does.

        Two levels that the formula takes together count 1 where they were not measured together.
        """
        far, expression = self.measured.outside(X), self.estimator.expression_
        if isinstance(expression, PosynomialExpression) and expression.composed:
            far |= expression.unmeasured(self.widen(X))
        return far

    def _half_widths(
        self, X: pd.DataFrame, predicted: Array, distance: Array
    ) -> tuple[Array, Array]:
        """Return the log half-widths; they grow with the distance from what was measured."""
        width = half_width(self.residuals)
        if width is None:
            return (np.full(len(X), np.nan),) * 2
        unit = 1.0 if self.difficulty is None else self.difficulty.at(X)
        wide = np.minimum(width * unit * (1.0 + self.widening * distance), 300.0)
        cheapest, dearest = self._level_range(X, predicted)
        floor = np.maximum(predicted, np.finfo(float).tiny)
        return (
            wide + np.log(np.maximum(floor / np.maximum(cheapest, 1e-300), 1.0)),
            wide + np.log(np.maximum(dearest / floor, 1.0)),
        )

    def _level_range(self, X: pd.DataFrame, predicted: Array) -> tuple[Array, Array]:
        """Return the times with unseen levels replaced by the cheapest and the dearest known.

        Which these are may differ from row to row, so that all are tried.
        """
        cheapest, dearest = predicted.copy(), predicted.copy()
        for name, known in self.measured.levels.items():
            unseen = ~X[name].isin(known).to_numpy(dtype=bool)
            if not unseen.any():
                continue
            rows = X[unseen]
            times = np.array(
                [self.estimator.predict(self.widen(rows.assign(**{name: k}))) for k in known]
            )
            cheapest[unseen] *= times.min(axis=0) / predicted[unseen]
            dearest[unseen] *= times.max(axis=0) / predicted[unseen]
        for pair in getattr(self.estimator.expression_, "composed", ()):
            self._span_pair(X, predicted, pair, cheapest, dearest)
        return cheapest, dearest

    def _span_pair(
        self, X: pd.DataFrame, predicted: Array, pair: Any, cheapest: Array, dearest: Array
    ) -> None:
        """Widen to what the known pairs do where two levels were not measured together."""
        expression = self.estimator.expression_
        apart = expression.unmeasured(self.widen(X))[pair.name] > 0
        if apart.any():
            logs = expression.composed_range(pair)
            cheapest[apart] *= np.exp(logs[0])
            dearest[apart] *= np.exp(logs[1])
