"""Every path of expressions that is tried, and what unseen rows say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from paceline.estimators._columns import Array, Index
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial._exchange import exchange
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._front import (
    FrontMember,
    fold_paths,
    held_out_logs,
    lowering,
    path_logs,
    percentage_errors,
    standard_error,
)
from paceline.estimators._posynomial._problem import PosynomialProblem, Strengths
from paceline.estimators._posynomial._prune import prune
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
    level_share
        Strength of the ridge on level factors, in strengths of that on powers.
    price
        Of a constant, as `Strengths` has it.
    """

    level_share: float
    price: float

    def applied(self, problem: PosynomialProblem, strength: float) -> PosynomialProblem:
        """Return a problem with these ridges."""
        level = self.level_share * strength
        strengths = Strengths(power=strength, level=level, price=self.price)
        return replace(problem, strengths=strengths)


_SELECTING = _Shrinkage(level_share=0.2, price=1.0)
# few groups cannot say which level matters: better many small factors than few large ones
_SHRINKING = _Shrinkage(level_share=60.0, price=0.1)
_GROUPED = 0.5  # independent draws a row: below, levels are shrunk unless that is clearly worse
CLEARLY = 0.95  # of the error on rows not seen
_MISLED = 0.8  # of the error with expected powers: with less, names are not believed
_DRAWS_PER_NUMBER = 2  # fewer cannot contradict a name
_N_PROMISE_ROWS = 300
_N_EXCHANGES, _N_SHOWN_EXCHANGES = 4, 8  # of constants, where more are wanted than allowed


class Candidates:
    """A path of expressions, and the same path grown without the rows of every fold.

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
        self.max_constants, self._seed = max_constants, random_state
        self._grow = partial(_grow, layout=layout, seed=random_state, max_constants=max_constants)
        self._shrinkage = self._choose_shrinkage()
        self._settled: dict[int, Solution] = {}
        own = self.with_strengths(problem)
        self._path = self._grow(own, n_terms=n_terms, is_patient=must_grow)
        self._lower: Array = np.zeros(len(self._path))
        self._logs: Array = np.full((len(self._path), len(problem.rows)), np.nan)
        self._fold_paths: list[list[Solution]] = []

    @property
    def members(self) -> tuple[FrontMember, ...]:
        """What is known of every length."""
        return tuple(map(self._member, range(len(self._path))))

    def hold_out(self, share: float = 1.0) -> Index:
        """Grow without one fold after the other, up to a share of them; return their rows."""
        problem, n_known = self.with_strengths(self._problem), len(self._fold_paths)
        more = self._folds[n_known : int(np.ceil(share * len(self._folds)))]
        grow = partial(self._grow, n_terms=len(self._path))
        self._fold_paths += fold_paths(problem, more, grow, n_known)
        if not self._fold_paths:
            return np.arange(0)
        folds = self._folds[: len(self._fold_paths)]
        rows = np.sort(np.concatenate([test for _, test in folds]))
        self._fold_logs = np.array([path_logs(problem, path) for path in self._fold_paths])
        held_out = held_out_logs(self._fold_logs, folds)[:, rows]
        target = problem.target[rows]
        self._lower = np.array([lowering(logs, target) for logs in held_out])
        self._logs[:, rows] = held_out - self._lower[:, None]
        return rows

    def with_strengths(self, problem: PosynomialProblem) -> PosynomialProblem:
        """Return a problem with the ridges that suit these rows."""
        return self._shrinkage.applied(problem, self._strength)

    def _choose_shrinkage(self) -> _Shrinkage:
        """Return how levels are treated: by the error of one term on rows not seen."""
        if not self._folds or not self._problem.rows.marks.shape[1]:
            return _SELECTING
        usual, other = _usual_shrinkage(self._problem)
        is_clear = self._one_term_error(other) < CLEARLY * self._one_term_error(usual)
        return other if is_clear else usual

    def _one_term_error(self, shrinkage: _Shrinkage) -> float:
        problem = shrinkage.applied(self._problem, self._strength)
        return _one_term_error(problem, self._folds, self._grow)

    def promise(self, problem: PosynomialProblem, layout: Layout, n_terms: int) -> float:
        """Return Akaike's criterion of the best of so many terms by another layout."""
        small = thin(self.with_strengths(problem), _N_PROMISE_ROWS, np.random.default_rng(0))
        path = self._grow(small, layout=layout, n_terms=n_terms, n_exchanges=0)
        return min(_akaike(small, solution) for solution in path)

    def solution(self, place: int, whole: PosynomialProblem | None = None) -> Solution:
        """Return the constants of a member: the best found from several starts.

        Where they are not known yet they are grown from `whole`, which may have more rows.
        """
        if place not in self._settled:
            self._settled[place] = self._settle(self.with_strengths(whole or self._problem), place)
        return self._settled[place]

    def _settle(self, problem: PosynomialProblem, place: int) -> Solution:
        rng = np.random.default_rng(self._seed)
        some = thin(problem, N_POLISH_ROWS, rng)
        grown = self._grow_one(problem, place + 1)
        known = [polish(some, path[place]) for path in self._fold_paths] if place else []
        best = min([grown, *known], key=partial(_akaike, some))
        return exchange(some, best, self._layout, self.max_constants, rng, _N_SHOWN_EXCHANGES)

    def _grow_one(self, problem: PosynomialProblem, n_terms: int) -> Solution:
        """Return the last member of a path."""
        problem = thin(problem, N_POLISH_ROWS, np.random.default_rng(self._seed))
        *_, last = _lengthen(problem, n_terms, np.random.default_rng([self._seed, 0]))
        return _prune_twice(problem, last, self._layout, self.max_constants)

    def regrow(self, problem: PosynomialProblem, place: int) -> Solution:
        """Return the constants of a member of the same size, grown from other rows."""
        return self._grow_one(self.with_strengths(problem), place + 1)

    def held_out_logs(self, place: int) -> Array:
        """Return the log predictions of every row by a path grown without it."""
        return np.asarray(self._logs[place])

    def fold_logs(self, place: int) -> Array:
        """Return the log predictions (folds, rows) of all rows by paths grown without a fold."""
        return self._fold_logs[:, place]

    def expression(self, place: int) -> PosynomialExpression:
        """Return a member as it was grown, without rounded powers."""
        return express(self.solution(place), self._layout)

    def power_law(self) -> tuple[PosynomialProblem, PosynomialExpression]:
        """Return the problem and the expression of one term."""
        return self.with_strengths(self._problem), express(self._path[0], self._layout)

    def lower(self, place: int) -> float:
        """Return what a member's logarithms are lowered by for the least percentage error."""
        return float(self._lower[place])

    def errors(self, place: int) -> Array:
        """Return the percentage error of every row by a path grown without it."""
        return percentage_errors(self.held_out_logs(place), self._problem.target)

    def _member(self, place: int) -> FrontMember:
        errors = self.errors(place)
        return FrontMember(
            n_terms=place + 1,
            n_constants=express(self._path[place], self._layout).n_constants,
            error=float(errors.mean()),
            standard_error=standard_error(errors, self._labels),
        )


def believes_names(
    problem: PosynomialProblem,
    layout: Layout,
    folds: Sequence[Fold],
    strength: float,
    seed: int,
) -> bool:
    """Return whether powers are what names let one expect, or at least not clearly otherwise.

    A name may mislead: where the batch of all devices is the same in every row and has no column,
    time does not grow with that of a device. Judged is a power law on rows not seen.
    """
    n_numbers = problem.rows.logs.shape[1]
    if problem.expected is None or not folds or problem.n_draws < _DRAWS_PER_NUMBER * n_numbers:
        return True
    drawn = _usual_shrinkage(problem)[0].applied(problem, strength)
    grow = partial(_grow, layout=layout, seed=seed, max_constants=len(problem.target))
    free = _one_term_error(replace(drawn, expected=None), folds, grow)
    return free > _MISLED * _one_term_error(drawn, folds, grow)


def _usual_shrinkage(problem: PosynomialProblem) -> tuple[_Shrinkage, _Shrinkage]:
    """Return how levels are treated unless the other way is clearly better, and that."""
    is_grouped = problem.independence < _GROUPED
    return (_SHRINKING, _SELECTING) if is_grouped else (_SELECTING, _SHRINKING)


def _one_term_error(
    problem: PosynomialProblem, folds: Sequence[Fold], grow: Callable[..., list[Solution]]
) -> float:
    """Return the mean error of a power law on rows not seen."""
    paths = fold_paths(problem, folds, partial(grow, n_terms=1))
    every = np.array([path_logs(problem, path) for path in paths])
    logs = held_out_logs(every, folds)[0]
    return float(percentage_errors(logs, problem.target).mean())


def _grow(
    problem: PosynomialProblem,
    layout: Layout,
    seed: int,
    max_constants: int,
    n_terms: int,
    is_patient: bool = True,
    start: int = 0,
    n_exchanges: int = _N_EXCHANGES,
) -> list[Solution]:
    """Return a path without the constants that are not worth having.

    Each member is grown from one that has them all: what the data do not ask for yet may be what
    the next term needs. The path ends early, unless one is patient, with the term that the fitted
    rows do not notice.
    """
    problem = thin(problem, N_POLISH_ROWS, np.random.default_rng(seed))
    path: list[Solution] = []
    rng = np.random.default_rng(seed)
    for solution in _lengthen(problem, n_terms, np.random.default_rng([seed, start])):
        lean = _prune_twice(problem, solution, layout, max_constants)
        lean = exchange(problem, lean, layout, max_constants, rng, n_exchanges)
        path.append(lean)
        if not is_patient and path[1:] and not _is_better(problem, *path[-2:]):
            break
    return path


def _lengthen(
    problem: PosynomialProblem, n_terms: int, rng: np.random.Generator
) -> Iterator[Solution]:
    """Yield solutions from one term up, with all constants."""
    solution = polish(problem, first_term(problem))
    yield solution
    for _ in range(n_terms - 1):
        solution = add_term(problem, solution, rng)
        yield solution


def _prune_twice(
    problem: PosynomialProblem, solution: Solution, layout: Layout, max_constants: int
) -> Solution:
    """Return the solution with the constants that are worth having, and no more than allowed."""
    lean = prune(problem, solution, layout)
    if len(solution.kinds) == 1:  # a power law has what it needs
        return lean
    return prune(problem, lean, layout, max_constants)


def mean_error(problem: PosynomialProblem, solution: Solution) -> float:
    """Return the mean distance of the logarithms."""
    r = problem.residuals(solution.constants, solution.kinds)
    return max(float(problem.weights @ np.abs(r)), 1e-12)


def _is_better(problem: PosynomialProblem, old: Solution, new: Solution) -> bool:
    """Return whether the new one is worth its constants."""
    return _akaike(problem, new) < _akaike(problem, old)


def _akaike(problem: PosynomialProblem, solution: Solution) -> float:
    """Return Akaike's criterion under Laplace noise, for every row."""
    n_constants = len(np.unique(solution.slots))
    return float(np.log(mean_error(problem, solution)) + n_constants / problem.n_draws)
