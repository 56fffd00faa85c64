"""From fitted logarithms to an expression that a person can read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._posynomial._expression import PosynomialExpression, PosynomialTerm
from paceline.estimators._posynomial._problem import Constants, PosynomialProblem
from paceline.estimators._posynomial._prune import prune
from paceline.estimators._posynomial._rows import Layout
from paceline.estimators._posynomial._solve import (
    Solution,
    descend,
    polish,
    renumber,
    smoothing_of,
)
from paceline.estimators._posynomial._unmeasured import scale_like_others

NICE = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1 / 3, 2 / 3, 0.25, 0.75])
_NOTICED = 0.004  # relative change of the cost that one simpler constant may bring
_NOTICED_IN_ALL = 0.02
_NEVER_MATTERS = 0.005  # of the time, in every row
_DROWNED = 0.5  # of the mean error, by what a power does to the time over its measured range
_NEAR = 0.12  # a power this near to a nice one is tried there
_N_STEPS = 3
_MAX_ROWS = 2_000  # to round with


def tidy(
    problem: PosynomialProblem,
    solution: Solution,
    layout: Layout,
    lower: float = 0.0,
) -> Solution:
    """Return a solution settled on all rows, without idle terms, with nice powers, and lowered."""
    solution = polish(problem, drop_idle_terms(problem, solution))
    solution = prune(_some(problem), solution, layout, is_strict=True)
    solution = polish(problem, drop_idle_powers(problem, solution))
    solution = round_powers(_some(problem), solution, smoothing_of(problem, solution))
    solution = merge_equal_terms(scale_like_others(problem, solution, layout), layout)
    c = solution.constants
    return replace(solution, constants=replace(c, base=c.base - lower))


def _some(problem: PosynomialProblem) -> PosynomialProblem:
    """Return the problem, or of many rows those at equal steps through the sorted times."""
    if len(problem.rows) <= _MAX_ROWS:
        return problem
    order = np.argsort(problem.target, kind="stable")
    return problem.take(order[np.linspace(0, len(order) - 1, _MAX_ROWS).astype(int)])


def drop_idle_terms(problem: PosynomialProblem, solution: Solution) -> Solution:
    """Return the solution without terms that are nowhere a noticeable part of the time."""
    shares = _shares(problem, solution)
    return _keep_terms(solution, np.flatnonzero(shares.max(axis=0) >= _NEVER_MATTERS))


def drop_idle_powers(problem: PosynomialProblem, solution: Solution) -> Solution:
    """Return the solution without powers that the error drowns over all that was measured.

    One that is expected stays: it is known, though hardly measured.
    """
    c = solution.constants
    is_known = c.like(problem.means(c)).powers != 0
    error = problem.weights @ np.abs(problem.residuals(c, solution.kinds))
    share = _shares(problem, solution).mean(axis=0)[:, None]
    changes = share * np.abs(c.powers) * np.ptp(problem.rows.logs, axis=0)
    powers = np.where(~is_known & (changes < _DROWNED * error), 0.0, c.powers)
    slots = c.like(solution.slots)
    slots = replace(slots, powers=np.where(powers == 0.0, -1, slots.powers))
    moved = replace(solution, constants=replace(c, powers=powers))
    return replace(moved, slots=renumber(slots.flat().astype(int)))


def _shares(problem: PosynomialProblem, solution: Solution) -> Array:
    """Return the share of every term in the time of every row."""
    logs = problem.log_terms(solution.constants, solution.kinds)
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None]))


def merge_equal_terms(solution: Solution, layout: Layout) -> Solution:
    """Return the same expression with one term for those that scale alike in all parameters."""
    c, first = _absorb(solution.constants, layout), dict[tuple[Any, ...], int]()
    base = c.base.copy()
    for k, kind in enumerate(solution.kinds):
        place = first.setdefault((kind, *c.powers[k], *c.levels[k]), k)
        if place != k:
            base[place] = np.logaddexp(base[place], base[k])
    merged = replace(solution, constants=replace(c, base=base))
    return _keep_terms(merged, np.array(list(first.values())))


def _keep_terms(solution: Solution, kept: Any) -> Solution:
    """Return the solution with some of its terms only."""
    c, slots = solution.constants, solution.constants.like(solution.slots)
    some, free = (
        Constants(base=x.base[kept], powers=x.powers[kept], levels=x.levels[kept])
        for x in (c, slots)
    )
    return Solution(
        constants=some,
        kinds=tuple(solution.kinds[k] for k in kept),
        slots=renumber(free.flat().astype(int)),
    )


def round_powers(problem: PosynomialProblem, solution: Solution, smoothing: float) -> Solution:
    """Return the solution with powers at nice values where the cost does not notice.

    The nearest ones first; after each the other constants settle anew.
    """
    cost = problem.cost(solution.constants, solution.kinds, smoothing)
    limit = cost * (1 + _NOTICED_IN_ALL)
    n_terms = len(solution.kinds)
    for k, i, value in _wishes(solution.constants.powers):
        c = solution.constants
        place = n_terms + k * c.powers.shape[1] + i
        if solution.slots[place] < 0:
            continue
        x, slots = c.flat(), solution.slots.copy()
        x[place], slots[place] = value, -1
        moved = replace(solution, constants=c.like(x), slots=renumber(slots))
        settled = descend(problem, moved, smoothing, _N_STEPS)
        new = problem.cost(settled.constants, settled.kinds, smoothing)
        if new <= min(cost * (1 + _NOTICED), limit):
            solution, cost = settled, new
    return solution


def _wishes(powers: Array) -> list[tuple[int, int, float]]:
    """Return (term, parameter, nice value), the nearest first."""
    wishes = []
    for (k, i), power in np.ndenumerate(powers):
        if power == 0.0:
            continue
        nice = np.sign(power) * NICE[np.argmin(np.abs(np.abs(power) - NICE[:6]))]
        if abs(power - nice) > _NEAR:
            nice = np.sign(power) * NICE[np.argmin(np.abs(np.abs(power) - NICE))]
        if abs(power - nice) <= _NEAR:
            wishes.append((abs(power - nice), k, i, float(nice)))
    return [(k, i, nice) for _, k, i, nice in sorted(wishes)]


def express(solution: Solution, layout: Layout) -> PosynomialExpression:
    """Return a solution as an expression in seconds; what all terms have alike is shared."""
    c = _absorb(solution.constants, layout)
    is_shared = np.ptp(c.levels, axis=0) == 0.0
    for _, columns in layout.groups:
        is_shared[columns] = is_shared[columns].all()
    shared, own = np.where(is_shared, c.levels[0], 0.0), np.where(is_shared, 0.0, c.levels)
    terms = [_term(c, own[k], k, solution.kinds[k], layout) for k in range(len(c.base))]
    return PosynomialExpression(
        terms=tuple(terms),
        factors=_factors(shared, layout) | _idle_factors(layout),
        stand_ins=dict(layout.stand_ins),
        zero_factors=_zero_factors(shared, layout),
        composed=layout.composed,
    )


def _absorb(c: Constants, layout: Layout) -> Constants:
    """Return the same expression without groups of levels whose factors are all the same."""
    base, levels = c.base.copy(), c.levels.copy()
    for _, columns in layout.groups:
        group = levels[:, columns]
        same = np.where(np.ptp(group, axis=1) == 0.0, group[:, 0], 0.0)
        base += same
        group -= same[:, None]
    return replace(c, base=base, levels=levels)


def _term(c: Constants, own: Array, k: int, kind: int, layout: Layout) -> PosynomialTerm:
    names = list(layout.stand_ins)
    powers = {n: float(p) for n, p in zip(names, c.powers[k], strict=True) if p != 0.0}
    # logarithms are centred: c_k is the term where every parameter is 1
    shift = sum(p * np.log(layout.stand_ins[n]) for n, p in powers.items())
    return PosynomialTerm(
        coefficient_s=float(np.exp(np.clip(c.base[k] - shift, -690.0, 690.0))),
        powers=powers,
        factors=_factors(own, layout),
        collective=layout.devices[kind - 1] if kind else None,
        zero_factors=_zero_factors(own, layout),
    )


def _zero_factors(logs: Array, layout: Layout) -> dict[str, float]:
    return dict(zip(layout.zeros, np.exp(logs[: len(layout.zeros)]).tolist(), strict=True))


def _idle_factors(layout: Layout) -> dict[str, dict[str, float]]:
    return {name: dict.fromkeys(known, 1.0) for name, known in layout.told.items()}


def _factors(logs: Array, layout: Layout) -> dict[str, dict[str, float]]:
    return {
        name: dict(zip(layout.levels[name], np.exp(logs[columns]).tolist(), strict=True))
        for name, columns in layout.groups
    }
