"""The regularisation path: errors and constants against the strength of the penalty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from paceline.errors import InvalidInputError, PacelineWarning
from paceline.estimators._columns import Array
from paceline.estimators._folds import folds_of
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._metrics import score
from paceline.estimators._stability import Progress

DEFAULT_STRENGTHS = tuple(float(s) for s in np.logspace(-5, 0, 11))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegularizationPath:
    """What a growing penalty does.

    Parameters
    ----------
    table
        One row per strength: ``strength``, ``r2``, ``mape`` and ``mae_s`` of the fitted rows,
        ``cv_mape`` with its standard error ``cv_mape_se``, then every constant.
    best
        The strength of smallest cross-validated error.
    one_standard_error
        The largest strength whose error is within one standard error of the best.
    """

    table: pd.DataFrame
    best: float
    one_standard_error: float


def regularization_path(
    estimator: GenericRegressor,
    X: pd.DataFrame,
    y: Any,
    strengths: Sequence[float] = DEFAULT_STRENGTHS,
    *,
    groups: Any = None,
    n_folds: int = 5,
    progress: Progress | None = None,
) -> RegularizationPath:
    """Fit with every strength and choose among them by cross-validation.

    Parameters
    ----------
    estimator
        Settings with ``penalty="l1"`` or ``"l2"``; a `power_strength` of None follows `strength`.
    X, y
        Parameters and times in seconds.
    strengths
        Values of lambda.
    groups
        One label per row; rows of a label stay together. None: every row by itself.
    n_folds
        Number of folds.
    progress
        Called as ``progress(done, total, label)``.
    """
    if estimator.penalty == "none":
        raise InvalidInputError(
            "`penalty` must be 'l1' or 'l2' for a path, but got 'none'. Set it first."
        )
    if not len(strengths):
        raise InvalidInputError("At least one strength is needed for a path, but got none.")
    labels = np.arange(len(X)) if groups is None else groups
    folds = folds_of(labels, n_folds, estimator.random_state)
    times = np.asarray(y, dtype=float)
    rows = []
    for i, strength in enumerate(strengths):
        settings = clone(estimator).set_params(strength=strength)
        rows.append(_row(settings, X, times, folds))
        if progress is not None:
            progress(i + 1, len(strengths), f"strength {strength:g}")
    return _choose(pd.DataFrame(rows))


def _row(
    settings: GenericRegressor, X: pd.DataFrame, times: Array, folds: Sequence[tuple[Any, Any]]
) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        model = clone(settings).fit(X, times)
        errors = [
            score(
                times[test], clone(settings).fit(X.iloc[train], times[train]).predict(X.iloc[test])
            ).mape
            for train, test in folds
        ]
    fitted = score(times, model.predict(X))
    return {
        "strength": settings.strength,
        "r2": fitted.r2,
        "mape": fitted.mape,
        "mae_s": fitted.mae_s,
        "cv_mape": float(np.mean(errors)),
        "cv_mape_se": float(np.std(errors, ddof=1) / np.sqrt(len(errors))),
        **model.expression_.constants(),
    }


def _choose(table: pd.DataFrame) -> RegularizationPath:
    best = table.iloc[int(table["cv_mape"].to_numpy().argmin())]
    near = table[table["cv_mape"] <= best["cv_mape"] + best["cv_mape_se"]]
    return RegularizationPath(
        table=table,
        best=float(best["strength"]),
        one_standard_error=float(near["strength"].max()),
    )
