"""Levels that were measured on one device only, and what they will pay for a collective.

There it costs nothing, whatever its factor is, and a factor that nothing determines may be a
thousand times too large.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._posynomial._problem import PosynomialProblem, log_sum
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._solve import Solution

_TWO_DEVICES = np.log(0.5)  # log(1 - 1/n), which is more for more devices


def scale_like_others(problem: PosynomialProblem, solution: Solution, layout: Layout) -> Solution:
    """Return the solution with collectives of such levels as large a part as of other levels."""
    columns = [i for _, group in layout.groups for i in range(group.start, group.stop)]
    collectives = [k for k, kind in enumerate(solution.kinds) if kind]
    for k in collectives if len(solution.kinds) > 1 else ():
        for column in columns:
            solution = _scale(problem, solution, k, column)
    return solution


def _scale(problem: PosynomialProblem, solution: Solution, k: int, column: int) -> Solution:
    is_level = problem.rows.marks[:, column] > 0
    is_exchanging = problem.rows.collectives[:, solution.kinds[k]] >= _TWO_DEVICES
    if not is_level.any() or (is_level & is_exchanging).any() or not is_exchanging.any():
        return solution
    c, part = solution.constants, _log_part(problem, solution, k)
    levels = c.levels.copy()
    levels[k, column] += np.median(part[is_exchanging]) - np.median(part[is_level])
    return replace(solution, constants=replace(c, levels=levels))


def _log_part(problem: PosynomialProblem, solution: Solution, k: int) -> Array:
    """Return the logarithm of a term, as if of many devices, over the others together."""
    logs = problem.log_terms(solution.constants, solution.kinds)
    collective = problem.rows.collectives[:, solution.kinds[k]]
    return np.asarray(logs[:, k] - collective - log_sum(np.delete(logs, k, axis=1)))
