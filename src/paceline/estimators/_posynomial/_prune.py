"""Constants that the data do not ask for are set to 0, or to the value of another level.

Of a power that is expected, 0 means the expected one.

How much the cost rises when a linear combination d'x of constants is forced to 0 and all others
settle anew is known beforehand from the Hessian: ``(d'x)^2 / 2 d' inv(H) d`` (Hassibi & Stork,
"Second order derivatives for network pruning: Optimal Brain Surgeon", NIPS 1992). Tried are every
constant alone and the difference of every two factors that levels of one parameter have, in
whichever terms: terms have factors of their own only where the data ask for them, and levels that
do not differ share one. The limit is Akaike's under Laplace noise, ``1 / n`` of the cost for
every constant, or for what is shown to people the stricter one of Schwarz, ``log(n) / 2 n``, for
every term that a factor occurs in; where constants are shrunk instead, a tenth of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from paceline.estimators._columns import Array, Index
from paceline.estimators._posynomial._problem import Constants, PosynomialProblem
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._solve import (
    Solution,
    descend,
    polish,
    renumber,
    smoothing_of,
)

_AT_ONCE = 0.3  # of the constants, before the others settle anew
_RISE_AT_ONCE = 0.015  # of the cost
_N_STEPS = 4
_MAX_LEAN = 1.0  # far from the minimum the Hessian is no guide


def prune(
    problem: PosynomialProblem,
    solution: Solution,
    layout: Layout,
    max_slots: int | None = None,
    *,
    is_strict: bool = False,
) -> Solution:
    """Return the solution without constants not worth having, and with at most `max_slots`."""
    n = max(problem.n_draws, 3.0)  # the logarithm of fewer would favour constants
    worth = problem.strengths.price * (np.log(n) / (2 * n) if is_strict else 1 / n)
    while True:
        smoothing = smoothing_of(problem, solution)
        pruned = _prune_some(problem, solution, layout, smoothing, max_slots, worth, is_strict)
        if pruned is solution:
            return polish(problem, solution)
        solution = descend(problem, pruned, smoothing, _N_STEPS)


def n_shown(problem: PosynomialProblem, solution: Solution) -> int:
    """Return how many numbers a reader sees: those that move, and powers at what is expected."""
    stays = (solution.slots < 0) & (problem.means(solution.constants) != 0)
    return solution.n_slots + int(stays.sum())


def _prune_some(
    problem: PosynomialProblem,
    solution: Solution,
    layout: Layout,
    smoothing: float,
    max_slots: int | None,
    worth: float,
    is_strict: bool,
) -> Solution:
    c = solution.constants
    moves = problem.moves(c, solution.slots)
    cost, _, hessian = problem.expand(c, solution.kinds, smoothing, moves)
    n_over = n_shown(problem, solution) - max_slots if max_slots else 0
    shares = moves.n_terms if is_strict else np.ones(len(hessian))
    limits = _Limits(
        worth=worth * cost, n_over=n_over, allowance=_RISE_AT_ONCE * cost, shares=shares
    )
    first = np.unique(solution.slots, return_index=True)[1][-len(hessian) :]
    means = problem.means(c)
    kin = _Kinship.of(c, layout, first)
    x, owners = _remove((c.flat() - means)[first], hessian, kin, limits)
    if (owners == np.arange(len(owners))).all():
        return solution
    slots = np.append(owners, -1)[solution.slots]
    values = np.where(slots >= 0, np.append(x, 0.0)[slots], 0.0)
    flat = np.where(solution.slots >= 0, values + means, c.flat())
    return replace(solution, constants=c.like(flat), slots=renumber(slots))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """The rise that a constant is worth, how many are too many, the rise allowed at once.

    Of a rise that ends a slot, each of its `shares` must be worth a constant.
    """

    worth: float
    n_over: int
    allowance: float
    shares: Array


def _remove(x: Array, hessian: Array, kin: _Kinship, limits: _Limits) -> tuple[Array, Index]:
    """Return the values when the cheapest slots go, and each slot's new one (-1: it is 0)."""
    x, owners, spent = x.copy(), np.arange(len(x)), 0.0
    inverse: Array = np.asarray(np.linalg.inv(hessian), dtype=float)
    least = max(limits.n_over // 8, 1)
    for n_gone in range(max(int(_AT_ONCE * len(x)), least)):
        rise, i, j = _cheapest(x, inverse, kin, limits.shares)
        spent += rise
        is_dear = rise > limits.worth and n_gone >= limits.n_over
        is_dear |= not np.isfinite(rise)  # only coefficients are left
        if is_dear or (n_gone >= least and spent > limits.allowance):
            break
        lean = inverse[i] if i == j else inverse[i] - inverse[j]
        value, width = (x[i], lean[i]) if i == j else (x[i] - x[j], lean[i] - lean[j])
        x -= np.clip(value / width * lean, -_MAX_LEAN, _MAX_LEAN)
        inverse -= np.outer(lean / width, lean)
        owners[owners == j] = -1 if i == j else i
        x[owners < 0] = 0.0
        kin = kin.without(j)
    return x, owners


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kinship:
    """Which slots may be 0 (all but coefficients), and which two may be one (i < j)."""

    alone: Index
    pairs: tuple[Index, Index]

    @classmethod
    def of(cls, c: Constants, layout: Layout, first: Index) -> _Kinship:
        """Return the kinship of slots, given the first constant of each.

        Those of two levels of one parameter may be one, in whichever terms.
        """
        k, n_marks = c.levels.shape
        parameter = np.zeros(n_marks + 1, dtype=np.intp)
        for number, (_, columns) in enumerate(layout.groups, 1):
            parameter[columns] = number
        start, order = k + c.powers.size, np.arange(len(first))
        mark = np.maximum(first - start, 0) % max(n_marks, 1)
        own = np.where(first >= start, parameter[mark], 0)
        pairs = (own[:, None] == own) & (own > 0) & (order[:, None] < order)
        one, other = np.nonzero(pairs)
        return cls(alone=np.flatnonzero(first >= k), pairs=(one, other))

    def without(self, slot: int) -> _Kinship:
        """Return the kinship of all other slots."""
        i, j = self.pairs
        stays = (i != slot) & (j != slot)
        return _Kinship(alone=self.alone[self.alone != slot], pairs=(i[stays], j[stays]))


def _cheapest(x: Array, inverse: Array, kin: _Kinship, shares: Array) -> tuple[float, int, int]:
    """Return the least rise of the cost, when slot i is slot j (i < j) or is 0 (i = j)."""
    width, tiny = np.diag(inverse), 1e-300
    own, (i, j) = kin.alone, kin.pairs
    widths = width[i] + width[j] - 2.0 * inverse.ravel()[i * len(x) + j]
    alone = x[own] ** 2 / (2.0 * np.maximum(width[own], tiny)) / shares[own]
    rises = np.append(alone, (x[i] - x[j]) ** 2 / (2.0 * np.maximum(widths, tiny)))
    if not len(rises):
        return float("inf"), 0, 0
    place = int(np.argmin(rises))
    pair = place - len(own)
    both = (own[place], own[place]) if pair < 0 else (i[pair], j[pair])
    return float(rises[place]), int(both[0]), int(both[1])
