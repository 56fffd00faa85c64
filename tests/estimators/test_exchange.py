"""Constants that come back where only so many are allowed."""

import numpy as np
import pandas as pd

from paceline.estimators._posynomial._exchange import exchange
from paceline.estimators._posynomial._problem import PosynomialProblem, Strengths
from paceline.estimators._posynomial._prune import prune
from paceline.estimators._posynomial._rows import Layout, layout_of
from paceline.estimators._posynomial._solve import add_term, first_term, polish


def jobs_on_devices(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two terms, in each of which every pair of job and device has a factor of its own."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "job": rng.choice(list("abcdef"), 400),
            "device": rng.choice(list("pqrs"), 400),
            "batch": 2.0 ** rng.integers(0, 8, 400),
        }
    )
    factors = np.exp(rng.normal(0.0, 0.6, (2, 6, 4)))
    job, device = (pd.factorize(X[name], sort=True)[0] for name in ("job", "device"))
    work, overhead = factors[:, job, device]
    times = 0.01 * work * X["batch"].to_numpy() + 0.2 * overhead
    return X, times * np.exp(rng.normal(0, 0.03, 400))


def limited_problem() -> tuple[PosynomialProblem, Layout]:
    X, y = jobs_on_devices()
    X = X.assign(pair=X["job"] + X["device"])
    layout = layout_of(X, None, None)
    problem = PosynomialProblem(
        rows=layout.encode(X),
        target=np.log(y),
        weights=np.full(len(y), 1.0 / len(y)),
        strengths=Strengths(power=0.1, level=0.02),
    )
    return problem, layout


def test_constants_that_come_back_leave_a_better_set_of_the_same_size() -> None:
    problem, layout = limited_problem()
    rng = np.random.default_rng(0)
    grown = add_term(problem, polish(problem, first_term(problem)), rng)
    greedy = prune(problem, grown, layout, 20)
    exchanged = exchange(problem, greedy, layout, 20, rng, 8)
    assert exchanged.n_slots <= 20
    costs = [problem.cost(s.constants, s.kinds, 0.05) for s in (exchanged, greedy)]
    assert costs[0] < costs[1]


def test_where_few_constants_are_enough_none_are_exchanged() -> None:
    problem, layout = limited_problem()
    one = prune(problem, polish(problem, first_term(problem)), layout)
    state = np.random.default_rng(0)
    assert exchange(problem, one, layout, 1000, state, 8) is one
    assert state.random() == np.random.default_rng(0).random()  # nothing was drawn
