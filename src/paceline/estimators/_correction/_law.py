"""The power law whose residuals are corrected: drawn to the powers that names let one expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial import Layout
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._front import path_logs
from paceline.estimators._posynomial._problem import Expected, PosynomialProblem
from paceline.estimators._posynomial._simplify import express
from paceline.estimators._posynomial._solve import (
    N_POLISH_ROWS,
    Solution,
    first_term,
    polish,
    thin,
)

_FIRMNESS = 100.0  # of an expected power, in strengths of the ridge on one that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A power law that leaves the expected powers only where many rows ask for it.

    Parameters
    ----------
    problem
        Rows with their times.
    layout
        What their columns are.
    seed
        Of the fit.
    believes_names
        Whether powers are drawn to those that names let one expect.
    """

    problem: PosynomialProblem
    layout: Layout
    seed: int
    believes_names: bool = True

    def expression(self) -> PosynomialExpression:
        """Return the law of all rows."""
        return express(self._fit(self._firm()), self.layout)

    def fold_logs(self, folds: Sequence[Fold]) -> Array:
        """Return log predictions (folds, rows) of all rows by laws fitted without a fold."""
        problem = self._firm()
        return np.array([path_logs(problem, [self._fit(problem.take(t))])[0] for t, _ in folds])

    def _fit(self, problem: PosynomialProblem) -> Solution:
        some = thin(problem, N_POLISH_ROWS, np.random.default_rng(self.seed))
        return polish(some, first_term(problem))

    def _firm(self) -> PosynomialProblem:
        """Return the problem in which to change an expected power is dear."""
        names = self.layout.stand_ins if self.believes_names else ()
        return replace(self.problem, expected=Expected.by_names(names, _FIRMNESS))
