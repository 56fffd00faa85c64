"""Expressions that are what is left of longer ones.

A term that is added where the expression so far is wrong mends that one, and is rarely what would
be chosen if all terms were chosen at once. So some terms more are added than are wanted, and then
those go, one after another, that cost least. Both ways, the better one is kept for every length.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from paceline.estimators._posynomial._problem import PosynomialProblem
from paceline.estimators._posynomial._solve import (
    N_START_ROWS,
    Solution,
    add_term,
    descend,
    keep_terms,
    polish,
    smoothing_of,
    thin,
)

_N_MORE = 3  # terms
_N_STEPS = 6  # of an expression that is longer than any that is wanted
_N_TRIED_STEPS = 5  # without a term, to see what it is worth


def shorten(
    problem: PosynomialProblem, grown: Sequence[Solution], rng: np.random.Generator, fewest: int
) -> list[Solution]:
    """Return solutions from one term up, some of them replaced by what is left of longer ones.

    Parameters
    ----------
    problem
        What they were grown for.
    grown
        Solutions from one term up, with all constants.
    rng
        For the starts of further terms.
    fewest
        Terms of the shortest that is replaced, two at least.
    """
    best, solution = list(grown), grown[-1]
    for _ in range(min(_N_MORE, len(grown) - 1)):
        solution = add_term(problem, solution, rng, _N_STEPS)
    for n_terms in range(len(solution.kinds) - 1, fewest - 1, -1):
        solution = _without_a_term(problem, solution, rng)
        if n_terms <= len(best):
            solution = polish(problem, solution)
            both = best[n_terms - 1], solution
            smoothing = smoothing_of(problem, both[0])
            best[n_terms - 1] = min(both, key=partial(_cost, problem, smoothing))
    return best


def _without_a_term(
    problem: PosynomialProblem, solution: Solution, rng: np.random.Generator
) -> Solution:
    """Return the solution without the term that costs least to go.

    The first term stays where something is known of its powers.
    """
    small, smoothing = thin(problem, N_START_ROWS, rng), smoothing_of(problem, solution)
    places = np.arange(len(solution.kinds))
    tried = [
        descend(small, keep_terms(solution, places[places != k]), smoothing, _N_TRIED_STEPS)
        for k in places[0 if problem.expected is None else 1 :]
    ]
    return descend(problem, min(tried, key=partial(_cost, small, smoothing)), smoothing, _N_STEPS)


def _cost(problem: PosynomialProblem, smoothing: float, solution: Solution) -> float:
    return problem.cost(solution.constants, solution.kinds, smoothing)
