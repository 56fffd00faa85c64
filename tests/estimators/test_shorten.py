"""Expressions that are what is left of longer ones."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from paceline.estimators._posynomial._problem import (
    Constants,
    Expected,
    PosynomialProblem,
    Strengths,
)
from paceline.estimators._posynomial._rows import layout_of
from paceline.estimators._posynomial._shorten import _without_a_term, shorten
from paceline.estimators._posynomial._solve import (
    Solution,
    add_term,
    first_term,
    polish,
    smoothing_of,
)

_STRENGTHS = Strengths(power=0.1, level=0.02)


def planted(seed: int) -> PosynomialProblem:
    """Three terms in four numbers, two of which are near to each other."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: np.exp(rng.uniform(0, 4, 300)) for name in "abcd"})
    times = (
        X["a"] ** 0.7 * X["b"] ** 1.2
        + 5.0 * X["c"] ** 0.9 * X["a"] ** 0.4
        + 40.0 * X["d"] ** 0.8 / X["b"] ** 0.6
    )
    return PosynomialProblem(
        rows=layout_of(X, None, None).encode(X),
        target=np.log(times.to_numpy()) + rng.normal(0, 0.03, 300),
        weights=np.full(300, 1 / 300),
        strengths=_STRENGTHS,
    )


def own_powers(seed: int) -> PosynomialProblem:
    """Six jobs, each of which scales in a way of its own: no five terms say all of it."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: 2.0 ** rng.integers(0, 9, 300) for name in "ab"})
    X = X.assign(job=rng.choice(list("uvwxyz"), 300))
    job = pd.factorize(X["job"], sort=True)[0]
    powers = rng.uniform(-1.5, 1.5, (6, 2))[job]
    logs = (np.log(X[["a", "b"]].to_numpy()) * powers).sum(axis=1)
    return PosynomialProblem(
        rows=layout_of(X, None, None).encode(X),
        target=logs + rng.normal(0, 0.02, 300),
        weights=np.full(300, 1 / 300),
        strengths=_STRENGTHS,
    )


def forward(problem: PosynomialProblem, n_terms: int, rng: np.random.Generator) -> list[Solution]:
    grown = [polish(problem, first_term(problem))]
    while len(grown) < n_terms:
        grown.append(add_term(problem, grown[-1], rng))
    return grown


def cost(problem: PosynomialProblem, solution: Solution) -> float:
    return problem.cost(solution.constants, solution.kinds, 0.01)


@pytest.mark.parametrize("seed", range(3))
def test_no_length_gets_worse(seed: int) -> None:
    problem, rng = planted(seed), np.random.default_rng(seed)
    grown = forward(problem, 4, rng)
    shortened = shorten(problem, grown, rng, 2)
    assert [len(s.kinds) for s in shortened] == [1, 2, 3, 4]
    for before, after in zip(grown, shortened, strict=True):
        smoothing = smoothing_of(problem, before)
        costs = [problem.cost(s.constants, s.kinds, smoothing) for s in (after, before)]
        assert costs[0] <= costs[1]


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_what_is_left_of_longer_ones_may_be_much_better(seed: int) -> None:
    problem, rng = own_powers(seed), np.random.default_rng(seed)
    grown = forward(problem, 5, rng)
    shortened = shorten(problem, grown, rng, 2)
    both = zip(shortened, grown, strict=True)
    assert min(cost(problem, after) / cost(problem, before) for after, before in both) < 0.95


def test_one_term_has_nothing_to_be_left_of() -> None:
    problem, rng = planted(0), np.random.default_rng(0)
    (one,) = grown = forward(problem, 1, rng)
    assert shorten(problem, grown, rng, 2) == [one]


@pytest.mark.parametrize("is_expected", [True, False])
def test_a_first_term_goes_unless_something_is_known_of_it(is_expected: bool) -> None:
    problem, rng = planted(0), np.random.default_rng(0)
    if is_expected:
        expected = Expected(powers=np.array([1.0, 0, 0, 0]), firmness=np.array([20.0, 1, 1, 1]))
        problem = replace(problem, expected=expected)
    c = forward(problem, 3, rng)[-1].constants
    idle = Constants(
        base=np.concatenate([[-30.0], c.base]),
        powers=np.vstack([[1.0, 0.0, 0.0, 0.0], c.powers]),
        levels=np.zeros((4, 0)),
    )
    solution = Solution(constants=idle, kinds=(0,) * 4, slots=np.arange(len(idle.flat())))
    left = _without_a_term(problem, solution, rng)
    assert len(left.kinds) == 3
    assert bool(left.constants.base.min() < -20) is is_expected
