"""Epoch time over the number of workers and their imbalance: the thesis' linear regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paceline.errors import InvalidInputError

_N_CONSTANTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRegression:
    """t = b0 + b1 * N + b2 * LIF, with t the time of an epoch in seconds: thesis (3.9).

    Parameters
    ----------
    b0, b1, b2
        Coefficients in seconds, each with its standard error ``*_se``.
    r2, adjusted_r2
        (3.10) to (3.12), and the same with degrees of freedom counted.
    n_rows, degrees_of_freedom
        Runs, and what is left of them after three constants.
    residual_sd_s
        Standard deviation of what is not explained.
    """

    b0: float
    b1: float
    b2: float
    b0_se: float
    b1_se: float
    b2_se: float
    r2: float
    adjusted_r2: float
    n_rows: int
    degrees_of_freedom: int
    residual_sd_s: float

    def __str__(self) -> str:
        return (
            f"t = {self.b0:.4g} + {self.b1:.4g} * N + {self.b2:.4g} * LIF s, "
            f"R2 {self.r2:.4f}, adjusted {self.adjusted_r2:.4f}, "
            f"{self.degrees_of_freedom} degrees of freedom"
        )

    def predict_s(self, n_workers: float, lif: float) -> float:
        """Return the epoch time at N workers with a load imbalance factor."""
        return self.b0 + self.b1 * n_workers + self.b2 * lif

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as plain data."""
        return asdict(self)


def fit_epoch_regression(
    n_workers: Sequence[float], lif: Sequence[float], epoch_s: Sequence[float]
) -> EpochRegression:
    """Fit epoch times over repeated runs by least squares.

    Raises
    ------
    InvalidInputError
        When the fit would be saturated (three runs or fewer: any data fit exactly), or when
        N and LIF cannot be told apart.
    """
    X = np.column_stack([np.ones(len(epoch_s)), n_workers, lif]).astype(float)
    t = np.asarray(epoch_s, dtype=float)
    _check_determined(X, t)
    beta, *_ = np.linalg.lstsq(X, t, rcond=None)
    residuals = t - X @ beta
    degrees = len(t) - _N_CONSTANTS
    rss, tss = float(residuals @ residuals), float(((t - t.mean()) ** 2).sum())
    errors = np.sqrt(np.diag(np.linalg.inv(X.T @ X)) * rss / degrees)
    return EpochRegression(
        b0=float(beta[0]),
        b1=float(beta[1]),
        b2=float(beta[2]),
        b0_se=float(errors[0]),
        b1_se=float(errors[1]),
        b2_se=float(errors[2]),
        r2=1 - rss / tss,
        adjusted_r2=1 - (rss / degrees) / (tss / (len(t) - 1)),
        n_rows=len(t),
        degrees_of_freedom=degrees,
        residual_sd_s=float(np.sqrt(rss / degrees)),
    )


def _check_determined(X: np.ndarray, t: np.ndarray) -> None:
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(t))):
        raise InvalidInputError("Numbers of workers, LIF and epoch times must be finite.")
    if len(t) <= _N_CONSTANTS:
        raise InvalidInputError(
            f"A regression with three constants must have more than three runs, but got "
            f"{len(t)}: it is saturated, any data would fit. Repeat the runs."
        )
    spread = X[:, 1:] - X[:, 1:].mean(axis=0)
    sizes = np.linalg.norm(spread, axis=0)
    flat = sizes <= 1e-9 * np.abs(X[:, 1:]).max(axis=0)
    if flat.any() or np.linalg.matrix_rank(spread / sizes, tol=1e-6) < 2:
        raise InvalidInputError(
            "N and LIF must both vary, and not together, but these runs cannot tell their "
            "effects apart: repeat runs at several numbers of workers."
        )
    if np.ptp(t) == 0:
        raise InvalidInputError("Epoch times must differ between runs, but all are the same.")
