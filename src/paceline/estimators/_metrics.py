"""How far predicted times are from measured ones."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._base import check_times
from paceline.estimators._columns import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Errors of predicted times.

    Parameters
    ----------
    mape
        Mean absolute percentage error, as a share of the measured time.
    median_ape
        Median of the same.
    mae_s
        Mean absolute error, in seconds.
    rmse_s
        Root mean square error, in seconds.
    r2
        Coefficient of determination; of constant times 1 when they are met, else 0.
    """

    mape: float
    median_ape: float
    mae_s: float
    rmse_s: float
    r2: float

    def to_dict(self) -> dict[str, float | None]:
        """Return the scores by name; one that overflowed is None, which JSON can say."""
        return {k: v if math.isfinite(v) else None for k, v in asdict(self).items()}


def score(measured: Any, predicted: Any) -> Scores:
    """Return the errors of `predicted` times, in seconds, against `measured` ones.

    The percentage error is ``|measured - predicted| / measured`` (journal version, eq. 12;
    eq. 4.13 of the thesis prints the predicted time in the denominator).

    Examples
    --------
    >>> score([1.0, 2.0], [1.25, 1.5]).mape
    0.25
    """
    actual, expected = _check_pair(measured, predicted)
    with np.errstate(over="ignore"):
        error = np.abs(expected - actual)
        share = error / actual
        squares = float(np.sum(error**2))
        return Scores(
            mape=float(share.mean()),
            median_ape=float(np.median(share)),
            mae_s=float(error.mean()),
            rmse_s=math.sqrt(squares / len(actual)),
            r2=_explained(squares, actual),
        )


FEW_REPEATS = 5  # with fewer, what they differ by is chance


def noise_floor(times: Any, groups: Any, n_least: int = 1) -> float | None:
    """Return the error that repeats of one configuration leave even to a perfect model.

    The mean absolute deviation of repeats from their mean, relative to it. The mean of n
    repeats has moved towards them, hence the factor sqrt(n / (n - 1)). None where fewer than
    `n_least` rows repeat an earlier one: a floor of so few would be chance.

    Examples
    --------
    >>> round(noise_floor([0.9, 1.1, 5.0], ["a", "a", "b"]), 4)
    0.1414
    """
    values = np.asarray(times, dtype=float)
    codes, _ = pd.factorize(np.asarray(groups), use_na_sentinel=False)
    grouped = pd.Series(values).groupby(codes)
    centre = grouped.transform("mean").to_numpy()
    n_repeats = grouped.transform("size").to_numpy()
    repeated = n_repeats > 1
    if len(values) - len(grouped) < n_least:
        return None
    n = n_repeats[repeated]
    deviation = np.abs(values - centre)[repeated] / centre[repeated]
    return float(np.mean(deviation * np.sqrt(n / (n - 1))))


def _explained(squares: float, actual: Array) -> float:
    total = float(np.sum((actual - actual.mean()) ** 2))
    if total == 0:
        return 1.0 if squares == 0 else 0.0
    return 1.0 - squares / total


def _check_pair(measured: Any, predicted: Any) -> tuple[Array, Array]:
    actual = np.asarray(measured, dtype=float).ravel()
    expected = np.asarray(predicted, dtype=float).ravel()
    if not len(actual):
        raise InvalidInputError("At least one measured time is needed for a score, but got none.")
    check_times(actual, len(expected))
    if np.isnan(expected).any():
        row = int(np.argmax(np.isnan(expected)))
        raise InvalidInputError(f"Predicted times must be numbers, but row {row + 1} has none.")
    return actual, expected
