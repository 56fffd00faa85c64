"""A plain power law: one product of powers and factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._base import BaseTimeRegressor
from paceline.estimators._columns import Array, columns_of
from paceline.estimators._expression import not_negative
from paceline.estimators._marks import level_marks

# share of the variance of a column: decides between collinear ones, hardly shrinks the others
_RIDGE = 1e-10
_MAX_LOG = 700.0  # exp of it is still finite


class PowerLawRegressor(BaseTimeRegressor):
    """Fit ``t = c * prod_i x_i^p_i * prod_g factor_g`` by least squares in logarithms.

    Parameters
    ----------
    extrinsic
        Columns (names or positions) that scale the run. They are powers like all other
        numbers; the names are only checked.
    categorical
        Columns of numbers that are labels; text columns are categorical anyway.

    Attributes
    ----------
    constant_s_
        c, in seconds.
    powers_
        The power of every numeric parameter.
    factors_
        For every categorical parameter, the factor of each level; their geometric mean is 1, and
        an unseen level has the factor 1.
    zero_factors_
        For every numeric parameter, the factor that stands in place of ``x^p`` where the
        parameter is 0; when no 0 was measured, that of the parameter's geometric mean.

    Notes
    -----
    Parameters that the data cannot tell apart share their effect. Negative numbers are refused.

    Examples
    --------
    >>> X = pd.DataFrame({"layers": [1.0, 2, 4, 8], "n_devices": [1.0, 4, 1, 4]})
    >>> model = PowerLawRegressor().fit(X, 3.0 * X["layers"] / X["n_devices"])
    >>> {name: round(power, 3) for name, power in model.powers_.items()}
    {'layers': 1.0, 'n_devices': -1.0}
    """

    def __init__(
        self, extrinsic: Sequence[Any] | None = None, categorical: Sequence[Any] | None = None
    ) -> None:
        self.extrinsic = extrinsic
        self.categorical = categorical

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the constants to measured times `y` in seconds."""
        frame, times, weights = _drop_weightless(*self._read_fit(X, y, sample_weight))
        columns = columns_of(frame, self.extrinsic, self.categorical)
        self.layout_ = _layout_of(frame, columns.levels, weights)
        coef, intercept = _least_squares(self.layout_.design(frame), np.log(times), weights)
        self.coef_, shift = self.layout_.centre(coef)
        self.intercept_ = intercept + shift
        self._name_constants()
        return self

    def predict(self, X: Any) -> Array:
        """Return the time in seconds of every row of `X`."""
        frame = self._read_predict(X)
        return _exp(self.layout_.design(frame) @ self.coef_ + self.intercept_)

    def _name_constants(self) -> None:
        means = self.layout_.log_means
        powers, zeros, levels = self.layout_.split(self.coef_)
        self.powers_ = dict(zip(means, powers.tolist(), strict=True))
        offsets = {name: self.powers_[name] * mean for name, mean in means.items()}
        self.zero_factors_ = {
            name: float(_exp(zero + offsets[name]))
            for name, zero in zip(means, zeros, strict=True)
        }
        factors = iter(_exp(levels).tolist())
        self.factors_ = {
            name: {level: next(factors) for level in known}
            for name, known in self.layout_.levels.items()
        }
        self.constant_s_ = float(_exp(self.intercept_ - sum(offsets.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The columns of the least-squares problem: logarithms, zeros, levels."""

    log_means: Mapping[str, float]  # of the values that are not 0
    levels: Mapping[str, tuple[str, ...]]

    def design(self, X: pd.DataFrame) -> Array:
        """Return logarithms less their mean (0 of a 0), marks of the zeros, marks of levels."""
        values = {name: not_negative(X[name]) for name in self.log_means}
        logs = [_log_or(values[n], mean) - mean for n, mean in self.log_means.items()]
        zeros = [(x == 0).astype(float) for x in values.values()]
        marks = [level_marks(X[name], known) for name, known in self.levels.items()]
        return np.column_stack([np.empty((len(X), 0)), *logs, *zeros, *marks])

    def split(self, coef: Array) -> tuple[Array, Array, Array]:
        """Return the powers, the logarithms of the zeros' factors and those of the levels."""
        n = len(self.log_means)
        return coef[:n], coef[n : 2 * n], coef[2 * n :]

    def centre(self, coef: Array) -> tuple[Array, float]:
        """Return `coef` with a mean of 0 over the levels of each group, and what it lost."""
        coef, shift, start = coef.copy(), 0.0, 2 * len(self.log_means)
        for known in self.levels.values():
            group = slice(start, start + len(known))
            mean = float(coef[group].mean())
            coef[group] -= mean
            shift, start = shift + mean, group.stop
        return coef, shift


def _layout_of(
    frame: pd.DataFrame, levels: Mapping[str, tuple[str, ...]], weights: Array
) -> _Layout:
    means = {}
    for name in frame.columns:
        if str(name) not in levels:
            x = not_negative(frame[name])
            total = weights[x > 0].sum()
            means[str(name)] = float(weights @ _log_or(x, 0.0) / total) if total else 0.0
    return _Layout(log_means=means, levels=levels)


def _least_squares(design: Array, target: Array, weights: Array) -> tuple[Array, float]:
    """Return coefficients and intercept of the weighted least squares with a tiny ridge."""
    share = weights / weights.sum()
    means, middle = share @ design, float(share @ target)
    centred = design - means
    widths = np.sqrt(share @ centred**2)
    widths[widths < 1e-9] = 1.0  # a constant column says nothing, and gets 0
    root = np.sqrt(share)[:, None]
    ridge = np.sqrt(_RIDGE) * np.eye(design.shape[1])
    rows = np.vstack([root * centred / widths, ridge])
    right = np.concatenate([root[:, 0] * (target - middle), np.zeros(design.shape[1])])
    coef = np.linalg.lstsq(rows, right, rcond=None)[0] / widths
    return coef, middle - float(means @ coef)


def _drop_weightless(
    frame: pd.DataFrame, times: Array, weights: Array | None
) -> tuple[pd.DataFrame, Array, Array]:
    if weights is None:
        return frame, times, np.ones(len(times))
    kept = weights > 0
    if not kept.any():
        raise InvalidInputError("At least one `sample_weight` must be positive, but all are 0.")
    return frame[kept], times[kept], weights[kept]


def _log_or(values: Array, instead: float) -> Array:
    """Return logarithms, and `instead` where a value is 0."""
    return np.where(values > 0, np.log(np.where(values > 0, values, 1.0)), instead)


def _exp(values: Any) -> Array:
    return np.exp(np.clip(values, -_MAX_LOG, _MAX_LOG))
