"""Prediction intervals from rows that the model has not seen.

Split-conformal in spirit: the log-ratios of measured to predicted time on held-out rows say
how far a prediction may be off, whatever the shape of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._folds import Fold, Rows

COVERAGE = 0.9
MIN_RESIDUALS = 9  # fewer cannot bound 90 %: ceil(0.9 (n + 1)) would exceed n
WIDENING = 3.0  # at least: one measured span outside, an interval is four times as wide
_MAX_STORED = 999


def held_out_predictions(
    fit_predict: Callable[[Rows, Rows], Array], folds: Sequence[Fold], n_rows: int
) -> Array:
    """Return the prediction of every row by a model that was fitted without it."""
    predicted = np.full(n_rows, np.nan)
    for train, test in folds:
        predicted[test] = fit_predict(train, test)
    return predicted


def log_residuals(measured: Array, predicted: Array) -> Array:
    """Return the sizes of the log-ratios measured / predicted."""
    smallest = np.finfo(float).tiny
    return np.abs(np.log(measured / np.maximum(predicted, smallest)))


def thin_sorted(scores: Array) -> Array:
    """Return scores sorted, and fewer of them when they are many."""
    ratios = np.sort(scores)
    if len(ratios) <= _MAX_STORED:
        return ratios
    # the largest of each of equally many equal parts: thinning never narrows the interval
    ends = np.ceil(np.arange(1, _MAX_STORED + 1) * len(ratios) / _MAX_STORED).astype(int) - 1
    return ratios[ends]


def half_width(residuals: Sequence[float], coverage: float = COVERAGE) -> float | None:
    """Return the log half-width that covers, or None with too few residuals."""
    n = len(residuals)
    if n < MIN_RESIDUALS:
        return None
    rank = math.ceil(coverage * (n + 1))
    return float(residuals[min(rank, n) - 1])
