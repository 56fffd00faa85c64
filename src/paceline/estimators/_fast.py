"""The fast solver: good starts, then SciPy's bounded least squares on a smoothed cost.

``|r|`` is replaced by ``sqrt(r^2 + d^2) - d``, which SciPy's `least_squares` knows as a
robust loss, and d is tightened in steps. Gauss-Newton steps make short work of the valley
between a coefficient and its power, along which first-order methods and differential
evolution crawl.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares, minimize

from paceline.estimators._columns import Array
from paceline.estimators._problem import Problem
from paceline.estimators._starts import propose_starts

N_START_ROWS = 1_000
N_POLISH_ROWS = 20_000

_COARSE = 0.4  # smoothing of the first pass, in mean weighted residuals
_FINE = (0.1, 0.02, 0.004)
# a tight smoothing makes steps short: from another problem's minimum it would not arrive
_RESAMPLED = 0.3
_SNAP = 1e-3
_DUST = 1e-9
_AGREED = 0.01  # two descents that end within a percent have found the same valley


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much work a fit may cost, counted in evaluations and never in seconds."""

    n_random: int = 1
    n_refined: int = 2
    n_coarse: int = 15
    n_fine: int = 60
    n_full: int = 150
    smoothings: tuple[float, ...] = _FINE


# predictions do not notice what the last smoothing still gains
_QUICK = Budget(n_random=0, n_refined=1, smoothings=_FINE[:-1])


def solve_quick(problem: Problem, random_state: int) -> Array:
    """Return constants good enough to predict with, at about half the work."""
    return solve_fast(problem, random_state, _QUICK)


def solve_fast(problem: Problem, random_state: int, budget: Budget | None = None) -> Array:
    """Return constants of minimal cost."""
    budget = budget or Budget()
    rng = np.random.default_rng(random_state)
    small = _thin(problem, N_START_ROWS, rng)
    starts = propose_starts(small, rng, budget.n_random)
    best = _descend_from(small, starts, budget)
    return polish(problem, best, budget, rng)


def _descend_from(problem: Problem, starts: list[Array], budget: Budget) -> Array:
    """Return the best end of several descents; where the first ends differ, of all of them."""
    refined: list[Array] = []
    for n_tried, start in enumerate(starts, 1):
        refined.append(descend(problem, start, (_COARSE,), budget.n_coarse))
        costs = sorted(problem.cost(x) for x in refined)
        if n_tried >= budget.n_refined and costs[:2][-1] <= costs[0] * (1 + _AGREED):
            break
    return min(refined, key=problem.cost)


def polish(problem: Problem, x: Array, budget: Budget, rng: np.random.Generator) -> Array:
    """Return the minimum near `x`, with the smoothing tightened in steps."""
    medium = _thin(problem, N_POLISH_ROWS, rng)
    x = descend(medium, x, budget.smoothings, budget.n_fine)
    if medium is not problem:
        x = _descend_many_rows(problem, x, budget.n_full)
    return _snap(problem, x)


def refine(problem: Problem, x: Array) -> Array:
    """Return the minimum near `x`, for a problem that differs little from the one `x` solves."""
    return _snap(problem, descend(problem, x, (_RESAMPLED,), 60))


def descend(problem: Problem, x: Array, smoothings: tuple[float, ...], n_steps: int) -> Array:
    """Return the minimum of the smoothed cost near `x`, for one smoothing after the other."""
    margin = 1e-9 * np.minimum(problem.upper - problem.lower, 1.0)
    for relative in smoothings:
        robust = _Robust(problem, _smoothing(problem, x, relative))
        loss: Any = robust.loss  # SciPy's stubs ask for an argument that SciPy never gives
        x = least_squares(
            robust.residuals,
            np.clip(x, problem.lower + margin, problem.upper - margin),
            robust.jacobian,
            bounds=(problem.lower, problem.upper),
            loss=loss,
            x_scale="jac",
            max_nfev=n_steps,
        ).x
    return x


def _smoothing(problem: Problem, x: Array, relative: float) -> float:
    """Return a share of the mean weighted residual, never quite zero."""
    weighted = problem.weights @ np.abs(problem.residuals(x))
    floor = 1e-9 * (problem.weights @ problem.times)
    return float(max(relative * weighted, floor)) / float(problem.weights.sum())


class _Robust:
    """Residuals, Jacobian and loss whose sum is the smoothed cost over `smoothing`.

    `least_squares` minimises half the sum of ``rho(residual^2)``. The first rows are the
    measured ones, with ``rho(z) = 2 (sqrt(1 + z) - 1)``; the rows of the penalty follow,
    quadratic for L2 and smoothed like the measured ones for L1.
    """

    def __init__(self, problem: Problem, smoothing: float) -> None:
        self.problem = problem
        per_cost = len(problem.weights) / problem.weights.sum() / smoothing
        self.scale = problem.weights * per_cost
        self.penalised = np.flatnonzero(problem.strengths)
        self.n_quadratic = len(self.penalised) if problem.penalty.kind == "l2" else 0
        pull = problem.strengths[self.penalised] * per_cost
        self.pull = np.sqrt(2.0 * pull) if self.n_quadratic else pull

    def residuals(self, x: Array) -> Array:
        rows = self.scale * self.problem.residuals(x)
        return np.concatenate([rows, self.pull * x[self.penalised]])

    def jacobian(self, x: Array) -> Array:
        rows = np.zeros((len(self.penalised), len(x)))
        rows[np.arange(len(rows)), self.penalised] = self.pull
        return np.concatenate([self.problem.jacobian(x) * self.scale[:, None], rows])

    def loss(self, z: Array) -> Array:
        root = np.sqrt(1.0 + z)
        rho = np.array([2.0 * (root - 1.0), 1.0 / root, -0.5 / root**3])
        if self.n_quadratic:
            tail = slice(len(z) - self.n_quadratic, None)
            rho[0, tail], rho[1, tail], rho[2, tail] = z[tail], 1.0, 0.0
        return rho


def _descend_many_rows(problem: Problem, x: Array, n_evaluations: int) -> Array:
    """Return the minimum near `x` by a quasi-Newton method, whose memory does not grow."""
    smoothing = _smoothing(problem, x, _FINE[-1])
    result = minimize(
        problem.smooth_cost,
        x,
        args=(smoothing,),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(problem.lower, problem.upper, strict=True)),
        options={"maxfun": n_evaluations, "maxcor": 30},
    )
    return np.asarray(result.x)


def _snap(problem: Problem, x: Array) -> Array:
    """Return `x` with constants at 0, and levels equal, where the cost does not mind."""
    limit = problem.cost(x) * (1 + 1e-9)
    for move in _moves(problem, x):
        if problem.cost(x + move) <= limit:
            x = x + move
    x = np.clip(x, problem.lower, problem.upper)
    return np.where((np.abs(x) < _DUST) & (problem.lower <= 0), 0.0, x)


def _moves(problem: Problem, x: Array) -> Iterator[Array]:
    """Yield the small moves that would make the constants simpler."""
    first = problem.slices[2].start
    for start, end in problem.rows.level_groups:
        group = np.arange(first + start, first + end)
        lowest = x[group].min()
        for i in group[(x[group] - lowest < _SNAP) & (x[group] > lowest)]:
            yield _move(x, [i], lowest - x[i])
        if 0 < lowest < _SNAP:
            yield _move(x, group, -lowest)
    for i in np.flatnonzero((np.abs(x) < _SNAP) & (x != 0) & (problem.lower <= 0)):
        if not first <= i < first + problem.rows.n_levels:
            yield _move(x, [i], -x[i])


def _move(x: Array, places: Any, by: float) -> Array:
    move = np.zeros_like(x)
    move[places] = by
    return move


def _thin(problem: Problem, n_rows: int, rng: np.random.Generator) -> Problem:
    n = len(problem.times)
    return problem if n <= n_rows else problem.take(np.sort(rng.choice(n, n_rows, replace=False)))
