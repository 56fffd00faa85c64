"""Which constants are kept where only so many are allowed: some come back, and others go.

Constants that go one after another, the cheapest first, leave a set that is rarely the best of
its size: what went early may have been worth more than what stayed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paceline.estimators._posynomial._problem import PosynomialProblem
from paceline.estimators._posynomial._prune import n_shown, prune
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._solve import Solution, descend, renumber, smoothing_of

_SHARE = 0.15  # of all constants that come back at a time
_N_STEPS = 6


def exchange(
    problem: PosynomialProblem,
    solution: Solution,
    layout: Layout,
    max_slots: int,
    rng: np.random.Generator,
    n_rounds: int,
) -> Solution:
    """Return the best of some solutions with at most `max_slots` constants."""
    if n_shown(problem, solution) < max_slots:  # nothing went that the data ask for
        return solution
    best, smoothing = solution, smoothing_of(problem, solution)
    least = problem.cost(best.constants, best.kinds, smoothing)
    for _ in range(n_rounds):
        freed = descend(problem, _free_some(best, rng), smoothing, _N_STEPS)
        other = prune(problem, freed, layout, max_slots)
        cost = problem.cost(other.constants, other.kinds, smoothing)
        if cost < least:
            best, least = other, cost
    return best


def _free_some(solution: Solution, rng: np.random.Generator) -> Solution:
    """Return the solution with some constants free that were 0, or equal to others."""
    places = np.arange(len(solution.slots))
    is_freed = rng.random(len(places)) < _SHARE
    slots = np.where(is_freed, solution.slots.max() + 1 + places, solution.slots)
    return replace(solution, slots=renumber(slots))
