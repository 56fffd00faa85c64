"""Every path of expressions that is tried, and what unseen rows say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._front import (
    FrontMember,
    held_out_logs,
    percentage_errors,
    standard_error,
)
from paceline.estimators._posynomial._problem import PosynomialProblem, Strengths
from paceline.estimators._posynomial._prune import prune
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._simplify import express
from paceline.estimators._posynomial._solve import Solution, grow_path

_LEVEL_SHARE = 0.1  # of the strength of the powers
_OWN_SHARE = 0.2


class Candidates:
    """Paths grown with shared levels, and with levels of their own for every term.

    Parameters
    ----------
    problem
        The rows to choose with.
    layout
        What their columns are.
    labels
        Rows of one label count as one draw.
    folds
        Rows to fit and rows to test; none when there are too few rows.
    n_terms
        Most terms.
    strength
        Of the ridge on powers.
    random_state
        Seed of the starts.
    """

    def __init__(
        self,
        problem: PosynomialProblem,
        layout: Layout,
        labels: Any,
        folds: Sequence[Fold],
        n_terms: int,
        strength: float,
        random_state: int,
    ) -> None:
        self._problem, self._layout, self._labels = problem, layout, labels
        self._strength = strength
        self._logs: dict[bool, Array] = {}
        self._solutions: dict[tuple[bool, int], Solution] = {}
        for owns in _ways(problem, bool(folds)):
            own = self.with_strengths(problem, owns)
            path = grow_path(own, n_terms, random_state)
            for k in range(int(owns), n_terms):  # the levels of one term are its own anyway
                self._solutions[owns, k] = prune(own, path[k], layout)
            nothing = np.full((n_terms, len(problem.rows)), np.nan)
            self._logs[owns] = (
                held_out_logs(own, folds, n_terms, random_state) if folds else nothing
            )
        self._keys = sorted(self._solutions, key=lambda key: self._express(key).n_constants)
        self.members = tuple(self._member(key) for key in self._keys)

    def with_strengths(self, problem: PosynomialProblem, owns_levels: bool) -> PosynomialProblem:
        """Return a problem with the ridges of one way to treat levels."""
        strengths = Strengths(
            power=self._strength,
            level=_LEVEL_SHARE * self._strength,
            own_level=_OWN_SHARE * self._strength if owns_levels else None,
        )
        return replace(problem, strengths=strengths)

    def whole_problem(self, problem: PosynomialProblem, place: int) -> PosynomialProblem:
        """Return a problem of other rows with the ridges of a member."""
        return self.with_strengths(problem, self._keys[place][0])

    def solution(self, place: int) -> Solution:
        """Return the constants of a member."""
        return self._solutions[self._keys[place]]

    def held_out_logs(self, place: int) -> Array:
        """Return the log predictions of every row by a path grown without it."""
        owns, k = self._keys[place]
        return self._logs[owns][k]

    def power_law(self) -> tuple[PosynomialProblem, PosynomialExpression]:
        """Return the problem and the expression of one term."""
        return self.with_strengths(self._problem, False), self._express((False, 0))

    def _express(self, key: tuple[bool, int]) -> PosynomialExpression:
        return express(self._solutions[key], self._layout)

    def _member(self, key: tuple[bool, int]) -> FrontMember:
        owns, k = key
        errors = percentage_errors(self._logs[owns][k], self._problem.target)
        return FrontMember(
            n_terms=k + 1,
            owns_levels=owns,
            n_constants=self._express(key).n_constants,
            error=float(errors.mean()),
            standard_error=standard_error(errors, self._labels),
        )


def _ways(problem: PosynomialProblem, can_choose: bool) -> tuple[bool, ...]:
    return (False, True) if can_choose and problem.rows.marks.shape[1] else (False,)
