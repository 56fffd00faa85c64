"""Extra-P's family of expressions: the performance model normal form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._base import BaseTimeRegressor
from paceline.estimators._columns import Array, Columns, Index, columns_of
from paceline.estimators._expression import not_negative
from paceline.estimators._extra_p_search import MIN_POINTS, search_form
from paceline.estimators._extra_p_terms import NormalForm, Values, smape
from paceline.estimators._marks import level_marks
from paceline.estimators._power_law import PowerLawRegressor

Levels = tuple[str, ...]


class ExtraPRegressor(BaseTimeRegressor):
    """Fit ``t = c_0 + sum_k c_k * prod_l p_l^i_kl * log2(p_l)^j_kl``, as Extra-P does.

    One factor ``p^i * log2(p)^j`` of 42 is chosen for every parameter along lines of points that
    differ in that parameter alone; the factors are then combined by + and x. Every hypothesis is
    fitted by least squares and judged by its leave-one-out symmetric error (SMAPE); it must beat
    a constant, and each of its terms must somewhere be at least 0.05 % of the time. Rows of the
    same configuration are one point, their mean.

    Parameters
    ----------
    extrinsic
        Columns (names or positions) that scale the run; the names are only checked.
    categorical
        Columns of numbers that are labels; text columns are categorical anyway.
    negative
        Whether exponents may be negative (Extra-P's option for strong scaling); None: for those
        parameters that shrink the times.

    Attributes
    ----------
    form_
        The normal form of all points, each divided by the factors of its levels.
    factors_
        For every categorical parameter, the factor of each level, from a power law; an unseen
        level has the factor 1.
    forms_
        Normal forms of single combinations of levels, used in place of `form_`.

    Notes
    -----
    Where Extra-P has no rule, these are our own: (1) Without lines of five points (or of all
    values of a parameter with fewer) the factor is sought in all points, what the other
    parameters do divided out by a power law. (2) Four and five parameters are combined in the
    same ways as three; Extra-P has only their product and their sum. (3) Combinations are judged
    by leaving one out too; Extra-P judges them on the points they were fitted to. (4) Extra-P
    knows no categorical parameters. A combination of levels has its own form when it has at
    least five points for every numeric parameter and predicts better than `form_` times the
    factors of its levels. (5) Fewer than five points give a constant; a parameter with two values
    enters linearly or inversely. (6) No prediction is below a thousandth of the least time.
    A `sample_weight` weighs rows within their point; points count alike.

    References
    ----------
    A. Calotoiu, T. Hoefler, M. Poke, F. Wolf: Using automated performance modeling to find
    scalability bugs in complex codes, SC 2013 (normal form); the exponents and the choice are
    those of Extra-P 4.

    Examples
    --------
    >>> X = pd.DataFrame({"n_devices": [2.0, 4, 8, 16, 32]})
    >>> model = ExtraPRegressor().fit(X, 1 + 0.5 * X["n_devices"] * np.log2(X["n_devices"]))
    >>> str(model.form_)
    '1 + 0.5 * n_devices * log2(n_devices)'
    """

    def __init__(
        self,
        extrinsic: Sequence[Any] | None = None,
        categorical: Sequence[Any] | None = None,
        negative: bool | None = None,
    ) -> None:
        self.extrinsic = extrinsic
        self.categorical = categorical
        self.negative = negative

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the expression to measured times `y` in seconds."""
        frame, times, weights = self._read_fit(X, y, sample_weight)
        self.columns_ = columns_of(frame, self.extrinsic, self.categorical)
        weights = np.ones(len(times)) if weights is None else weights
        if not weights.any():
            raise InvalidInputError(
                "At least one `sample_weight` must be positive, but all are 0."
            )
        used = weights > 0
        frame, times, weights = frame[used], times[used], weights[used]
        self.factors_ = self._level_factors(frame, times, weights)
        points = _points_of(self._values(frame), self._codes(frame), times, weights)
        self.form_ = self._pool(points)
        self.forms_ = dict(self._own_forms(points))
        return self

    def predict(self, X: Any) -> Array:
        """Return the time in seconds of every row of `X`."""
        frame = self._read_predict(X)
        values, codes = self._values(frame), self._codes(frame)
        predicted = self.form_.evaluate(values, len(frame)) * self._scale(codes)
        known = list(self.columns_.levels.values())
        for levels, form in self.forms_.items():
            code = [names.index(level) for names, level in zip(known, levels, strict=True)]
            rows = (codes == code).all(axis=1)
            if rows.any():
                chosen = {name: column[rows] for name, column in values.items()}
                predicted[rows] = form.evaluate(chosen, int(rows.sum()))
        return np.clip(predicted, np.finfo(float).tiny, np.finfo(float).max)

    def _pool(self, points: _Points) -> NormalForm:
        """Return the form of all points, levels divided out."""
        bare = points.times / self._scale(points.codes)
        n_points = len(points.times)
        nothing = np.zeros((n_points, 0), dtype=np.intp)
        merged = _points_of(points.values, nothing, bare, np.ones(n_points))
        return search_form(merged.values, merged.times, self.negative)

    def _own_forms(self, points: _Points) -> Any:
        """Yield the combinations of levels that are better off with a form of their own."""
        if not self.columns_.levels:
            return
        known = list(self.columns_.levels.values())
        pooled = self.form_.evaluate(points.values, len(points.times)) * self._scale(points.codes)
        for code in np.unique(points.codes, axis=0):
            rows = (points.codes == code).all(axis=1)
            if rows.sum() < MIN_POINTS * max(1, len(points.values)):
                continue
            values = {name: column[rows] for name, column in points.values.items()}
            form = search_form(values, points.times[rows], self.negative)
            if form.smape < smape(points.times[rows], pooled[rows]):
                yield tuple(n[i] for n, i in zip(known, code.tolist(), strict=True)), form

    def _level_factors(
        self, frame: pd.DataFrame, times: Array, weights: Array
    ) -> dict[str, dict[str, float]]:
        if not self.columns_.levels:
            return {}
        law = PowerLawRegressor(categorical=list(self.columns_.levels))
        return law.fit(frame, times, sample_weight=weights).factors_

    def _scale(self, codes: Index) -> Array:
        """Return the product of the factors of each row's levels; the last one is of unseen."""
        scale = np.ones(len(codes))
        for column, factors in enumerate(self.factors_.values()):
            scale = scale * np.array([*factors.values(), 1.0])[codes[:, column]]
        return scale

    def _values(self, frame: pd.DataFrame) -> Values:
        columns: Columns = self.columns_
        return {
            str(name): not_negative(frame[name])
            for name in frame.columns
            if str(name) not in columns.levels
        }

    def _codes(self, frame: pd.DataFrame) -> Index:
        """Return the number of each row's level, an unseen one after the last."""
        codes = np.zeros((len(frame), len(self.columns_.levels)), dtype=np.intp)
        for column, (name, known) in enumerate(self.columns_.levels.items()):
            marks = np.column_stack([level_marks(frame[name], known), np.full(len(frame), 0.5)])
            codes[:, column] = np.argmax(marks, axis=1)
        return codes


@dataclass(frozen=True, slots=True)
class _Points:
    """Configurations, each once, with their mean times."""

    values: Values
    codes: Index
    times: Array


def _points_of(values: Values, codes: Index, times: Array, weights: Array) -> _Points:
    ranks = [np.unique(column, return_inverse=True)[1] for column in values.values()]
    rows = np.column_stack([np.zeros(len(times), dtype=np.intp), codes, *ranks])
    _, first, point = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    point = point.reshape(-1)
    means = np.bincount(point, weights=weights * times) / np.bincount(point, weights=weights)
    return _Points({name: column[first] for name, column in values.items()}, codes[first], means)
