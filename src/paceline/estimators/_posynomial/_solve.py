"""How a posynomial grows: one term at a time, from several starts each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from paceline.estimators._columns import Array
from paceline.estimators._posynomial._problem import Constants, Kinds, PosynomialProblem

N_START_ROWS = 400  # enough to tell a good start from a bad one
N_POLISH_ROWS = 4_000

_HEATS = ((4, 3), (2, 4))  # how many starts are kept after so many steps
_POLISH = 40
_N_SPLITS = 1  # of each badly fitted term
_N_LEVELS = 8
_FLOOR = 5e-3  # of the smoothing: half a percent
_NEW_SHARE = np.log(4.0)  # a new term begins at a quarter of the median time
_MAX_STEP = 2.0
_GAINED = 1e-4  # of the cost: less in one step, and the descent is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Constants of K terms, what each term carries, and which constants move together.

    Constants with the same number in `slots` are equal; those with -1 do not move.
    """

    constants: Constants
    kinds: Kinds
    slots: Any

    @property
    def n_slots(self) -> int:
        """How many numbers move."""
        return int(self.slots.max()) + 1


def renumber(slots: Any) -> Any:
    """Return the same slots numbered without gaps."""
    moves = slots >= 0
    numbers = np.full(len(slots), -1)
    numbers[moves] = np.unique(slots[moves], return_inverse=True)[1]
    return numbers


def first_term(problem: PosynomialProblem) -> Solution:
    """Return a constant, or what is expected: the start of every path."""
    powers = np.zeros((1, problem.rows.logs.shape[1]))
    if problem.expected is not None:
        powers = powers + problem.expected.powers
    constants = Constants(
        base=np.array([np.median(problem.target - problem.rows.logs @ powers[0])]),
        powers=powers,
        levels=np.zeros((1, problem.rows.marks.shape[1])),
    )
    return Solution(constants=constants, kinds=(0,), slots=np.arange(len(constants.flat())))


def add_term(problem: PosynomialProblem, solution: Solution, rng: np.random.Generator) -> Solution:
    """Return the best expression found with one term more, all constants of which are free."""
    small = thin(problem, N_START_ROWS, rng)
    smoothing = smoothing_of(small, solution)
    tried = list(starts(small, solution, rng))
    for n_kept, n_steps in _HEATS:
        tried = [descend(small, s, smoothing, n_steps) for s in tried]
        tried.sort(key=lambda s: small.cost(s.constants, s.kinds, smoothing))
        tried = tried[:n_kept]
    done = [polish(problem, _release(start, solution)) for start in tried]
    smoothing = min(smoothing_of(problem, s) for s in done)
    return min(done, key=lambda s: problem.cost(s.constants, s.kinds, smoothing))


def _release(start: Solution, before: Solution) -> Solution:
    """Return a start where those constants move too that moved before."""
    c, old = start.constants, before.constants
    kept = old.like(before.slots.astype(float))
    kept = kept.with_term(-1.0, np.full(c.powers.shape[1], -1.0), np.full(c.levels.shape[1], -1.0))
    slots = kept.flat().astype(int)
    slots = np.where(start.slots >= 0, start.slots + slots.max() + 1, slots)
    return replace(start, slots=renumber(slots))


def starts(
    problem: PosynomialProblem, solution: Solution, rng: np.random.Generator
) -> Iterator[Solution]:
    """Yield a small flat term, and badly fitted terms split in two, with every kind.

    The halves lean apart in their powers; some in one level too.
    """
    c, n = solution.constants, problem.rows.logs.shape[1]
    n_marks = c.levels.shape[1]
    low = float(np.median(problem.target)) - _NEW_SHARE
    worst = _worst_terms(problem, solution)
    for kind in range(problem.rows.collectives.shape[1]):
        flat = c.with_term(low, np.zeros(n), np.zeros(n_marks))
        yield _with_term(solution, flat, kind, worst[0])
        for k in worst:
            for _ in range(_N_SPLITS):
                lean = _split(c, k, rng.normal(0.0, 0.5, n), np.zeros(n_marks))
                yield _with_term(solution, lean, kind, k)
    for level in rng.permutation(n_marks)[:_N_LEVELS]:
        lean_level = np.where(np.arange(n_marks) == level, 1.0, 0.0)
        lean = _split(c, worst[0], rng.normal(0.0, 0.2, n), lean_level)
        yield _with_term(solution, lean, 0, worst[0])


def _with_term(solution: Solution, c: Constants, kind: int, k: int) -> Solution:
    """Return a start where the new term moves, term k, and all coefficients."""
    moves = np.isin(np.arange(len(c.base)), [k, len(c.base) - 1]).astype(float)
    free = Constants(
        base=np.ones_like(c.base),
        powers=np.repeat(moves[:, None], c.powers.shape[1], axis=1),
        levels=np.repeat(moves[:, None], c.levels.shape[1], axis=1),
    )
    slots = np.where(free.flat() > 0, np.arange(len(c.flat())), -1)
    return Solution(constants=c, kinds=(*solution.kinds, kind), slots=renumber(slots))


def _split(c: Constants, k: int, lean: Array, lean_level: Array) -> Constants:
    base = c.base.copy()
    base[k] -= np.log(2.0)
    halved = replace(c, base=base)
    return halved.with_term(base[k], c.powers[k] - lean, c.levels[k] + lean_level)


def _worst_terms(problem: PosynomialProblem, solution: Solution) -> list[int]:
    logs = problem.log_terms(solution.constants, solution.kinds)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    r = np.abs(problem.residuals(solution.constants, solution.kinds))
    return [int(k) for k in np.argsort(-((problem.weights * r) @ shares))[:2]]


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
    c, kinds, slots = solution.constants, solution.kinds, solution.slots
    x, damping, moves = c.flat(), 1e-3, problem.moves(c, slots)
    for _ in range(n_steps):
        cost, gradient, hessian = problem.expand(c.like(x), kinds, smoothing, moves)
        better = None
        for _ in range(6):
            step = _spread(_step(gradient, hessian, damping), slots)
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


def _spread(step: Array, slots: Any) -> Array:
    """Return the step of every constant from those of the slots."""
    return np.where(slots >= 0, np.append(step, 0.0)[slots], 0.0)


def _step(gradient: Array, hessian: Array, damping: float) -> Array:
    damped = hessian.copy()
    damped.flat[:: len(gradient) + 1] += damping * np.diag(hessian) + 1e-12
    _, step, problem = dposv(damped, -gradient)
    if problem:  # not positive definite after rounding: damp more
        return np.zeros_like(gradient)
    return np.asarray(step * min(1.0, _MAX_STEP / max(float(np.abs(step).max()), 1e-300)))


def thin(problem: PosynomialProblem, n_rows: int, rng: np.random.Generator) -> PosynomialProblem:
    n = len(problem.rows)
    if n <= n_rows:
        return problem
    return problem.take(np.sort(rng.choice(n, n_rows, replace=False)))
