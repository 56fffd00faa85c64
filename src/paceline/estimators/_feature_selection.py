"""Which of many derived columns a formula gets, where several say nearly the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from paceline.dataset import Dataset
from paceline.estimators._columns import Array

_SAME = 1e-6  # of a logarithm that other columns give too
_MANY_ROWS = 5  # by column: enough to tell what each parameter does besides


def distinct_columns(
    dataset: Dataset, derived: pd.DataFrame, replaces: Sequence[str]
) -> list[str]:
    """Return the derived columns that no other columns of the formula give in logarithms."""
    kept = [name for name in dataset.numeric if name not in replaces]
    logs = [np.log(dataset.X[n].to_numpy()) for n in kept if (dataset.X[n] > 0).all()]
    useful = []
    for name in derived.columns:
        values = derived[name].to_numpy(dtype=float)
        if name in dataset.X or not (values > 0).all():
            continue
        log = np.log(values)
        known = np.column_stack([np.ones(len(log)), *logs])
        left = log - known @ np.linalg.lstsq(known, log, rcond=None)[0]
        if np.abs(left).max() > _SAME:
            useful.append(str(name))
            logs.append(log)
    return useful


def select_columns(
    dataset: Dataset, derived: pd.DataFrame, replaces: tuple[str, ...]
) -> tuple[list[str], tuple[str, ...]]:
    """Return the derived columns that the times ask for, and the parameters to do without.

    The first derived column is always there. Others join one by one as long as a power law of
    them gains by Schwarz's criterion: columns that say nearly the same would share one power
    among them, which no reader understands and no extrapolation survives. With five rows for each
    column the parameters stay besides, since there is enough to tell what else they do.
    """
    if dataset.n_rows >= _MANY_ROWS * (len(dataset.X.columns) + len(derived.columns)):
        replaces = ()
    useful = distinct_columns(dataset, derived, replaces)
    if not useful:
        return [], replaces
    choices = {name: _log(derived[name]) for name in useful}
    y = np.log(dataset.y.to_numpy(dtype=float))
    chosen = _forward(y, _fixed_columns(dataset, replaces), choices, useful[0])
    return [name for name in useful if name in chosen], replaces


def _log(values: pd.Series[float]) -> Array:
    return np.log(values.to_numpy(dtype=float))


def _has_log(dataset: Dataset, name: str) -> bool:
    return name in dataset.numeric and bool((dataset.X[name] > 0).all())


def _fixed_columns(dataset: Dataset, replaces: Sequence[str]) -> Array:
    """Return what a formula has anyway: a constant, other numbers, and marks of levels."""
    kept = [str(n) for n in dataset.X if n not in replaces]
    numbers = [_log(dataset.X[n]) for n in kept if _has_log(dataset, n)]
    marks = [
        pd.get_dummies(dataset.X[n].astype(str), drop_first=True, dtype=float).to_numpy()
        for n in kept
        if n in dataset.categorical
    ]
    return np.column_stack([np.ones(dataset.n_rows), *numbers, *marks])


def _forward(y: Array, fixed: Array, choices: Mapping[str, Array], first: str) -> list[str]:
    """Return the choices that join, one by one, while the criterion falls."""
    chosen = [first]
    best = _criterion(y, np.column_stack([fixed, choices[first]]))
    while len(chosen) < len(choices):
        known = np.column_stack([fixed, *(choices[n] for n in chosen)])
        scores = {
            name: _criterion(y, np.column_stack([known, log]))
            for name, log in choices.items()
            if name not in chosen
        }
        name = min(scores, key=scores.__getitem__)
        if not scores[name] < best:
            break
        best = scores[name]
        chosen.append(name)
    return chosen


def _criterion(y: Array, X: Array) -> float:
    """Return Schwarz's criterion of least squares."""
    n, rank = len(y), int(np.linalg.matrix_rank(X))
    if rank >= n - 1:
        return np.inf
    left = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return float(n * np.log(max(float(left @ left) / n, 1e-12)) + rank * np.log(n))
