"""The power law whose residuals are corrected: drawn to the powers that names let one expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._expected import expected_powers
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial import Layout
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._front import path_logs
from paceline.estimators._posynomial._problem import PosynomialProblem
from paceline.estimators._posynomial._simplify import express
from paceline.estimators._posynomial._solve import Solution, grow_path

_FIRMNESS = 100.0  # of an expected power, in strengths of the ridge on one that is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A power law that is fitted to what is left when every power is the expected one.

    Parameters
    ----------
    problem
        Rows with their times.
    layout
        What their columns are.
    seed
        Of the fit.
    """

    problem: PosynomialProblem
    layout: Layout
    seed: int

    def expression(self) -> PosynomialExpression:
        """Return the law of all rows."""
        solution = self._fit(self._left())
        c = solution.constants
        whole = replace(c, powers=c.powers + self._expected())
        return express(replace(solution, constants=whole), self.layout)

    def fold_logs(self, folds: Sequence[Fold]) -> Array:
        """Return log predictions (folds, rows) of all rows by laws fitted without a fold."""
        left, shift = self._left(), self.problem.rows.logs @ self._expected()
        paths = [[self._fit(left.take(train))] for train, _ in folds]
        return np.array([path_logs(left, path)[0] + shift for path in paths])

    def _fit(self, problem: PosynomialProblem) -> Solution:
        return grow_path(problem, 1, self.seed)[0]

    def _expected(self) -> Array:
        known = expected_powers(self.layout.stand_ins)
        return np.array([known.get(name, 0.0) for name in self.layout.stand_ins])

    def _left(self) -> PosynomialProblem:
        """Return what expected powers leave to fit; to change them is dear."""
        known = expected_powers(self.layout.stand_ins)
        firmness = [_FIRMNESS if name in known else 1.0 for name in self.layout.stand_ins]
        return replace(
            self.problem,
            target=self.problem.target - self.problem.rows.logs @ self._expected(),
            firmness=np.array(firmness),
        )
