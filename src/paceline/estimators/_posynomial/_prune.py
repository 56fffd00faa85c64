"""Constants that the data do not ask for are set to 0.

How much the cost rises when a constant is 0 and all others settle anew is known beforehand from
the Hessian: ``x_g' inv(inv(H)_gg) x_g / 2`` for a group g of constants (Hassibi & Stork,
"Second order derivatives for network pruning: Optimal Brain Surgeon", NIPS 1992). The levels of
one parameter are one group: they go together. The limit is that of Schwarz' criterion under
Laplace noise: ``log n / 2n`` of the cost for every constant.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paceline.estimators._columns import Array, Index
from paceline.estimators._posynomial._problem import Constants, PosynomialProblem
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._solve import Solution, polish, smoothing_of


def prune(problem: PosynomialProblem, solution: Solution, layout: Layout) -> Solution:
    """Return the solution without the constants that are not worth having."""
    c, n = solution.constants, len(problem.rows)
    smoothing = smoothing_of(problem, solution)
    cost, _, hessian = problem.expand(c, solution.kinds, smoothing)
    worth = cost * np.log(n) / (2.0 * n)
    x, free = _remove(c.flat(), hessian, _groups(c, layout), worth)
    pruned = replace(solution, constants=c.like(x), free=free)
    return polish(problem, pruned)


def _remove(x: Array, hessian: Array, groups: list[Index], worth: float) -> tuple[Array, Array]:
    """Return the constants with the cheapest groups at 0, one after the other, and who is left."""
    x, groups = x.copy(), list(groups)
    inverse: Array = np.asarray(np.linalg.inv(hessian), dtype=float)
    free = np.ones(len(x), dtype=bool)
    while groups:
        rises = [_rise(x[g], np.asarray(inverse[np.ix_(g, g)])) / len(g) for g in groups]
        place = int(np.argmin(rises))
        if rises[place] > worth:
            break
        g = groups.pop(place)
        lean = np.linalg.solve(inverse[np.ix_(g, g)], inverse[g])
        x -= x[g] @ lean
        inverse = inverse - inverse[:, g] @ lean
        x[g], free[g] = 0.0, False
        x[~free] = 0.0
    return x, free


def _rise(x: Array, block: Array) -> float:
    """Return how much the cost rises without these constants."""
    return 0.5 * float(x @ np.linalg.solve(block, x))


def _groups(c: Constants, layout: Layout) -> list[Index]:
    """Return the places of constants that go together: each power, the levels of a parameter."""
    n_terms, n_powers = c.powers.shape
    groups = [np.array([n_terms + i]) for i in range(n_terms * n_powers)]
    columns = [np.array([i]) for i in range(len(layout.zeros))]
    columns += [np.arange(s.start, s.stop) for _, s in layout.groups]
    start = n_terms + c.powers.size
    groups += [start + g for g in columns]
    if c.own.size:
        start += len(c.shared)
        groups += [start + k * len(c.shared) + g for k in range(n_terms) for g in columns]
    return groups
