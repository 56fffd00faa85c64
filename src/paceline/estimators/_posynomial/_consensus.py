"""Rows between the measured ones, with the times that several expressions agree on.

An expression of forty constants follows a few hundred rows further than it should: grown again
without a twentieth of them it says something else in between. The median of such expressions is
more often right than any one of them (Breiman, "Bagging predictors", Machine Learning 24, 1996),
but it is no formula to read. So rows that nobody measured are made of the measured ones, the
median tells their times, and the one expression that is shown is fitted to them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from paceline.estimators._columns import Array
from paceline.estimators._posynomial._front import path_logs
from paceline.estimators._posynomial._problem import PosynomialProblem
from paceline.estimators._posynomial._rows import Layout, Rows
from paceline.estimators._posynomial._solve import Solution

_N_ROWS = 600
_WEIGHT = 0.3  # of all such rows together, beside 1 of the measured ones
_SWAPPED = 0.5  # chance that a number is the other row's
_ALL_LEVELS = 0.3  # chance that all levels are the other row's
_TIE = 0.34  # by how large a share of levels a less similar row may be preferred


def recombine(X: pd.DataFrame, layout: Layout, random_state: int) -> pd.DataFrame:
    """Return rows with numbers of one measured row and of another one much like it.

    Levels occur together as they were measured, and no measured row is among them.
    """
    rng = np.random.default_rng(random_state)
    first = rng.integers(len(X), size=_N_ROWS)
    second = _similar(X, layout, first, rng)
    made, other = (X.iloc[rows].reset_index(drop=True) for rows in (first, second))
    columns: dict[str, Any] = {}
    for name in layout.stand_ins:
        is_swapped = rng.random(_N_ROWS) < _SWAPPED
        columns[name] = other[name].where(is_swapped, made[name])
    is_other = rng.random(_N_ROWS) < _ALL_LEVELS
    for name in _categorical(X, layout):
        columns[name] = other[name].where(is_other, made[name])
    made = made.assign(**columns)
    is_known = pd.concat([X, made], ignore_index=True).duplicated().to_numpy()[len(X) :]
    return made[~is_known].reset_index(drop=True)


def _similar(X: pd.DataFrame, layout: Layout, rows: Any, rng: np.random.Generator) -> Any:
    """Return for every given row another one that shares many levels, at random among those."""
    likeness: Array = _TIE * rng.random((len(rows), len(X)))
    names = _categorical(X, layout)
    for name in names:
        codes = pd.factorize(X[name], use_na_sentinel=False)[0]
        likeness += (codes[rows][:, None] == codes) / len(names)
    likeness[np.arange(len(rows)), rows] = -1.0
    return likeness.argmax(axis=1)


def _categorical(X: pd.DataFrame, layout: Layout) -> list[str]:
    return [name for name in map(str, X.columns) if name not in layout.stand_ins]


def join_consensus(
    problem: PosynomialProblem, between: Rows, solutions: Sequence[Solution]
) -> PosynomialProblem:
    """Return the problem with further rows, whose times are the median of the solutions'."""
    logs = path_logs(replace(problem, rows=between), solutions)
    return problem.join(between, np.median(logs, axis=0), _WEIGHT)
