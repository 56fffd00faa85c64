"""The reference solver: SciPy's differential evolution with its defaults, as in the thesis."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, differential_evolution

from paceline.estimators._columns import Array
from paceline.estimators._problem import Problem


def solve_evolution(problem: Problem, random_state: int) -> Array:
    """Return constants found by differential evolution (thesis, section 4.1.1)."""
    bounds = Bounds(problem.lower, problem.upper)
    return np.asarray(differential_evolution(problem.cost, bounds, rng=random_state).x)
