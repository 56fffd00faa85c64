"""Whether a difference that was seen again and again is more than chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

MIN_STEPS = 6  # fewer leave no degrees of freedom after trimming
_TRIM = 0.1  # cut at either end: single disturbed steps must not decide


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A trimmed mean of differences, with its standard error and degrees of freedom."""

    mean: float
    error: float
    degrees_of_freedom: int
    share_positive: float

    def is_beyond_chance(self, level: float) -> bool:
        """Return whether the mean is above 0 beyond a two-sided test at `level`."""
        if self.error == 0:
            return self.mean > 0
        limit = float(stats.t.ppf(1 - level / 2, self.degrees_of_freedom))
        return self.mean / self.error > limit


def lasting_difference(differences: np.ndarray) -> Difference:
    """Return the trimmed mean of step-wise differences with Yuen's standard error.

    Yuen (1974): the winsorised variance over the kept share. Neighbouring steps resemble each
    other on a busy machine, so the error is widened by sqrt((1 + r) / (1 - r)), with r the
    correlation of neighbours where it is positive.
    """
    n = len(differences)
    n_cut = int(_TRIM * n)
    ordered = np.sort(differences)
    n_kept = n - 2 * n_cut
    winsorised = np.clip(differences, ordered[n_cut], ordered[n - n_cut - 1])
    spread = float(np.std(winsorised, ddof=1))
    error = spread * np.sqrt((n - 1) / (n_kept * (n_kept - 1)))
    r = min(max(_correlation(winsorised), 0.0), 0.9)
    return Difference(
        mean=float(ordered[n_cut : n - n_cut].mean()),
        error=float(error * np.sqrt((1 + r) / (1 - r))),
        degrees_of_freedom=n_kept - 1,
        share_positive=float(np.mean(differences > 0)),
    )


def _correlation(values: np.ndarray) -> float:
    centred = values - values.mean()
    total = float(centred @ centred)
    return float(centred[1:] @ centred[:-1]) / total if total > 0 else 0.0
