"""How a posynomial grows: one term at a time, from several starts each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from paceline.estimators._columns import Array
from paceline.estimators._posynomial._problem import Constants, Kinds, PosynomialProblem

N_START_ROWS = 500  # enough to tell a good start from a bad one
N_POLISH_ROWS = 4_000

_QUICK = 5  # steps that a start is given to prove itself
_POLISH = 40
_N_SPLITS = 1
_FLOOR = 5e-3  # of the smoothing: half a percent
_NEW_SHARE = np.log(4.0)  # a new term begins at a quarter of the median time
_MAX_STEP = 2.0
_GAINED = 1e-4  # of the cost: less in one step, and the descent is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Constants of K terms, what each term carries, and which constants may move (None: all)."""

    constants: Constants
    kinds: Kinds
    free: Any = None


def grow_path(problem: PosynomialProblem, n_terms: int, random_state: int) -> list[Solution]:
    """Return the best expression found with 1, 2, ... `n_terms` terms."""
    rng = np.random.default_rng(random_state)
    small, medium = (_thin(problem, n, rng) for n in (N_START_ROWS, N_POLISH_ROWS))
    path = [polish(medium, _first(problem))]
    while len(path) < n_terms:
        path.append(polish(medium, _best_start(small, path[-1], rng)))
    return path


def _first(problem: PosynomialProblem) -> Solution:
    n_marks = problem.rows.marks.shape[1]
    is_shared = problem.strengths.own_level is None
    constants = Constants(
        base=np.array([np.median(problem.target)]),
        powers=np.zeros((1, problem.rows.logs.shape[1])),
        shared=np.zeros(n_marks),
        own=np.zeros((1, 0 if is_shared else n_marks)),
    )
    return Solution(constants=constants, kinds=(0,))


def _best_start(
    problem: PosynomialProblem, solution: Solution, rng: np.random.Generator
) -> Solution:
    smoothing = smoothing_of(problem, solution)
    tried = [descend(problem, s, smoothing, _QUICK) for s in _starts(problem, solution, rng)]
    return min(tried, key=lambda s: problem.cost(s.constants, s.kinds, smoothing))


def _starts(
    problem: PosynomialProblem, solution: Solution, rng: np.random.Generator
) -> Iterator[Solution]:
    """Yield a small flat term, and the worst-fitted term split in two, with every kind."""
    c, n = solution.constants, problem.rows.logs.shape[1]
    worst = _worst_term(problem, solution)
    low = float(np.median(problem.target)) - _NEW_SHARE
    for kind in range(problem.rows.collectives.shape[1]):
        kinds = (*solution.kinds, kind)
        flat = c.with_term(low, np.zeros(n), np.zeros(c.own.shape[1]))
        yield Solution(constants=flat, kinds=kinds)
        for _ in range(_N_SPLITS):
            lean = rng.normal(0.0, 0.5, n)
            yield Solution(constants=_split(c, worst, lean), kinds=kinds)


def _split(c: Constants, k: int, lean: Array) -> Constants:
    base, powers = c.base.copy(), c.powers.copy()
    base[k] -= np.log(2.0)
    powers[k] += lean
    halved = replace(c, base=base, powers=powers)
    return halved.with_term(base[k], c.powers[k] - lean, c.own[k])


def _worst_term(problem: PosynomialProblem, solution: Solution) -> int:
    logs = problem.log_terms(solution.constants, solution.kinds)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    r = np.abs(problem.residuals(solution.constants, solution.kinds))
    return int(np.argmax((problem.weights * r) @ shares))


def polish(problem: PosynomialProblem, solution: Solution) -> Solution:
    """Descend, then once more with the smoothing that the better fit allows."""
    for _ in range(2):
        smoothing = smoothing_of(problem, solution)
        solution = descend(problem, solution, smoothing, _POLISH)
        if smoothing_of(problem, solution) > 0.7 * smoothing:
            break
    return solution


def smoothing_of(problem: PosynomialProblem, solution: Solution) -> float:
    """Return half the median error: larger ones count by their size, smaller by their square."""
    r = np.abs(problem.residuals(solution.constants, solution.kinds))
    return max(0.5 * float(np.median(r)), _FLOOR)


def descend(
    problem: PosynomialProblem,
    solution: Solution,
    smoothing: float,
    n_steps: int,
) -> Solution:
    """Return the minimum near a solution by damped Gauss-Newton steps.

    The Hessian is positive definite by construction, so a Cholesky factor gives every step.
    """
    c, kinds, free = solution.constants, solution.kinds, solution.free
    x, damping = c.flat(), 1e-3
    for _ in range(n_steps):
        cost, gradient, hessian = problem.expand(c.like(x), kinds, smoothing)
        better = None
        for _ in range(6):
            step = _step(gradient, hessian, damping, free)
            new = problem.cost(c.like(x + step), kinds, smoothing)
            if new < cost:
                better = x + step
                break
            damping *= 8.0
        if better is None:
            break
        x, damping = better, max(damping / 5.0, 1e-9)
        if cost - new < _GAINED * cost:
            break
    return replace(solution, constants=c.like(x))


def _step(gradient: Array, hessian: Array, damping: float, free: Any = None) -> Array:
    if free is not None:
        step = np.zeros_like(gradient)
        step[free] = _step(gradient[free], hessian[np.ix_(free, free)], damping)
        return step
    damped = hessian.copy()
    damped.flat[:: len(gradient) + 1] += damping * np.diag(hessian) + 1e-12
    _, step, problem = dposv(damped, -gradient)
    if problem:  # not positive definite after rounding: damp more
        return np.zeros_like(gradient)
    return np.asarray(step * min(1.0, _MAX_STEP / max(float(np.abs(step).max()), 1e-300)))


def _thin(problem: PosynomialProblem, n_rows: int, rng: np.random.Generator) -> PosynomialProblem:
    n = len(problem.rows)
    if n <= n_rows:
        return problem
    return problem.take(np.sort(rng.choice(n, n_rows, replace=False)))
