"""Every path of expressions that is tried, and what unseen rows say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial._exchange import N_ROUNDS, prune_to
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._front import (
    FrontMember,
    fold_logs,
    held_out_logs,
    lowering,
    percentage_errors,
    standard_error,
)
from paceline.estimators._posynomial._problem import PosynomialProblem, Strengths
from paceline.estimators._posynomial._prune import prune, share_levels
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._simplify import express
from paceline.estimators._posynomial._solve import (
    N_POLISH_ROWS,
    Solution,
    add_term,
    first_term,
    polish,
    thin,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shrinkage:
    """How levels are kept from saying more than rows that were not seen bear out.

    Parameters
    ----------
    level_share, own_share
        Strength of the ridges on level factors, in strengths of that on powers.
    price
        Of a constant, as `Strengths` has it.
    """

    level_share: float
    own_share: float
    price: float

    def applied(
        self, problem: PosynomialProblem, strength: float, owns_levels: bool
    ) -> PosynomialProblem:
        """Return a problem with these ridges."""
        strengths = Strengths(
            power=strength,
            level=self.level_share * strength,
            own_level=self.own_share * strength if owns_levels else None,
            price=self.price,
        )
        return replace(problem, strengths=strengths)


_SELECTING = _Shrinkage(level_share=0.1, own_share=0.2, price=1.0)
# few groups cannot say which level matters: better many small factors than few large ones
_SHRINKING = _Shrinkage(level_share=60.0, own_share=120.0, price=0.1)
_GROUPED = 0.5  # independent draws a row: below, levels are shrunk unless that is clearly worse
CLEARLY = 0.95  # of the error on rows not seen
_N_PROMISED_TERMS = 4  # fewer say little of what more will need
_N_PROMISE_ROWS = 300


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
    max_constants
        Most constants of more than one term.
    strength
        Of the ridge on powers.
    random_state
        Seed of the starts.
    must_grow
        Whether there must be an expression with `n_terms` terms.
    """

    def __init__(
        self,
        problem: PosynomialProblem,
        layout: Layout,
        labels: Any,
        folds: Sequence[Fold],
        n_terms: int,
        max_constants: int,
        strength: float,
        random_state: int,
        must_grow: bool = False,
    ) -> None:
        self._problem, self._layout, self._labels = problem, layout, labels
        self._strength, self._folds = strength, folds
        self._grow = partial(_grow, layout=layout, seed=random_state, max_constants=max_constants)
        self._shrinkage = self._choose_shrinkage()
        self._fold_logs: dict[bool, Array] = {}
        self._logs: dict[bool, Array] = {}
        self._lower: dict[bool, Array] = {}
        self._solutions: dict[tuple[bool, int], Solution] = {}
        for owns in _ways(problem, bool(folds)):
            own = self.with_strengths(problem, owns)
            path = self._grow(own, n_terms=n_terms, is_patient=must_grow)
            n_terms = len(path)
            for k in range(n_terms):
                self._solutions[owns, k] = path[k]
            logs: Array = np.full((n_terms, len(problem.rows)), np.nan)
            self._lower[owns] = np.zeros(n_terms)
            if folds:
                every = fold_logs(own, folds, partial(self._grow, n_terms=n_terms))
                self._fold_logs[owns], logs = every, held_out_logs(every, folds)
                self._lower[owns] = np.array([lowering(row, problem.target) for row in logs])
            self._logs[owns] = logs - self._lower[owns][:, None]
        self._keys = sorted(self._solutions, key=lambda key: self._express(key).n_constants)
        self.members = tuple(self._member(key) for key in self._keys)

    def with_strengths(self, problem: PosynomialProblem, owns_levels: bool) -> PosynomialProblem:
        """Return a problem with the ridges of one way to treat levels."""
        return self._shrinkage.applied(problem, self._strength, owns_levels)

    def _choose_shrinkage(self) -> _Shrinkage:
        """Return how levels are treated: by the error of one term on rows not seen."""
        if not self._folds or not self._problem.rows.marks.shape[1]:
            return _SELECTING
        usual, other = _SELECTING, _SHRINKING
        if self._problem.independence < _GROUPED:
            usual, other = other, usual
        is_clear = self._one_term_error(other) < CLEARLY * self._one_term_error(usual)
        return other if is_clear else usual

    def _one_term_error(self, shrinkage: _Shrinkage) -> float:
        problem = shrinkage.applied(self._problem, self._strength, owns_levels=False)
        every = fold_logs(problem, self._folds, partial(self._grow, n_terms=1))
        logs = held_out_logs(every, self._folds)[0]
        return float(percentage_errors(logs, problem.target).mean())

    def promise(self, problem: PosynomialProblem, layout: Layout) -> float:
        """Return Akaike's criterion of the best of few terms, by the rows of another layout."""
        own = self.with_strengths(problem, bool(layout.levels))
        small = thin(own, _N_PROMISE_ROWS, np.random.default_rng(0))
        path = self._grow(small, layout=layout, n_terms=_N_PROMISED_TERMS, n_rounds=0)
        return min(_akaike(small, solution) for solution in path)

    def whole_problem(self, problem: PosynomialProblem, place: int) -> PosynomialProblem:
        """Return a problem of other rows with the ridges of a member."""
        return self.with_strengths(problem, self._keys[place][0])

    def solution(self, place: int) -> Solution:
        """Return the constants of a member."""
        return self._solutions[self._keys[place]]

    def regrow(self, problem: PosynomialProblem, place: int) -> Solution:
        """Return the constants of a member of the same size, grown from other rows."""
        owns, k = self._keys[place]
        return self._grow(self.with_strengths(problem, owns), n_terms=k + 1)[-1]

    def held_out_logs(self, place: int) -> Array:
        """Return the log predictions of every row by a path grown without it."""
        owns, k = self._keys[place]
        return self._logs[owns][k]

    def fold_logs(self, place: int) -> Array:
        """Return the log predictions (folds, rows) of all rows by paths grown without a fold."""
        owns, k = self._keys[place]
        return self._fold_logs[owns][:, k]

    def expression(self, place: int) -> PosynomialExpression:
        """Return a member as it was grown, without rounded powers."""
        return self._express(self._keys[place])

    def power_law(self) -> tuple[PosynomialProblem, PosynomialExpression]:
        """Return the problem and the expression of one term."""
        return self.with_strengths(self._problem, False), self._express(
            min(self._keys, key=lambda key: key[1])
        )

    def lower(self, place: int) -> float:
        """Return what a member's logarithms are lowered by for the least percentage error."""
        owns, k = self._keys[place]
        return float(self._lower[owns][k])

    def errors(self, place: int) -> Array:
        """Return the percentage error of every row by a path grown without it."""
        return percentage_errors(self.held_out_logs(place), self._problem.target)

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


def _grow(
    problem: PosynomialProblem,
    layout: Layout,
    seed: int,
    max_constants: int,
    n_terms: int,
    is_patient: bool = True,
    n_rounds: int = N_ROUNDS,
) -> list[Solution]:
    """Return a path without the constants that are not worth having.

    It ends early, unless one is patient, with the term that the fitted rows do not notice.
    """
    rng = np.random.default_rng(seed)
    problem = thin(problem, N_POLISH_ROWS, rng)
    solution = polish(problem, first_term(problem))
    path: list[Solution] = []
    while len(path) < n_terms:
        solution = prune(problem, share_levels(solution) if not path else solution, layout)
        path.append(
            prune_to(problem, solution, layout, max_constants, rng, n_rounds) if path else solution
        )
        if not is_patient and len(path) > 1 and not _is_better(problem, *path[-2:]):
            break
        if len(path) < n_terms:
            solution = add_term(problem, solution, rng)
    return path


def mean_error(problem: PosynomialProblem, solution: Solution) -> float:
    """Return the mean distance of the logarithms."""
    r = problem.residuals(solution.constants, solution.kinds)
    return max(float(np.abs(r).mean()), 1e-12)


def _is_better(problem: PosynomialProblem, old: Solution, new: Solution) -> bool:
    """Return whether the new one is worth its constants."""
    return _akaike(problem, new) < _akaike(problem, old)


def _akaike(problem: PosynomialProblem, solution: Solution) -> float:
    """Return Akaike's criterion under Laplace noise, for every row."""
    n_constants = len(np.unique(solution.slots))
    return float(np.log(mean_error(problem, solution)) + n_constants / problem.n_draws)


def _ways(problem: PosynomialProblem, can_choose: bool) -> tuple[bool, ...]:
    return (True,) if can_choose and problem.rows.marks.shape[1] else (False,)
