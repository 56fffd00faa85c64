"""Rows between the measured ones, and what formulas grown without some rows agree on there."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.estimators import PosynomialRegressor, score
from paceline.estimators._posynomial._consensus import join_consensus, recombine
from paceline.estimators._posynomial._front import path_logs
from paceline.estimators._posynomial._problem import PosynomialProblem, Strengths
from paceline.estimators._posynomial._rows import layout_of
from paceline.estimators._posynomial._solve import first_term, polish


def measured(n_rows: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "layers": rng.choice([2, 4, 8, 16, 32], n_rows),
            "batch": np.exp(rng.uniform(0, 5, n_rows)),
            "gpu": rng.choice(["a", "b", "c"], n_rows),
            "task": rng.choice(["x", "y"], n_rows),
        }
    )
    speed = X["gpu"].map({"a": 1.0, "b": 1.6, "c": 2.5}).to_numpy()
    times = 0.01 * X["layers"] * X["batch"] * speed + 0.2 * X["layers"]
    return X, times.to_numpy() * np.exp(rng.normal(0, 0.05, n_rows))


def problem_of(X: pd.DataFrame, y: np.ndarray) -> PosynomialProblem:
    return PosynomialProblem(
        rows=layout_of(X, None, None).encode(X),
        target=np.log(y),
        weights=np.full(len(y), 1.0 / len(y)),
        strengths=Strengths(power=0.1, level=0.02),
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), n_rows=st.integers(3, 60))
def test_rows_are_made_of_measured_values_and_none_was_measured(seed: int, n_rows: int) -> None:
    X, _ = measured(n_rows, seed)
    made = recombine(X, layout_of(X, None, None), seed)
    assert list(made.columns) == list(X.columns)
    assert (made.dtypes == X.dtypes).all()
    for name in X:
        assert made[name].isin(X[name]).all()
    together = set(zip(X["gpu"], X["task"], strict=True))
    assert set(zip(made["gpu"], made["task"], strict=True)) <= together
    assert not made.merge(X, how="inner").size


def test_a_full_grid_leaves_nothing_between() -> None:
    grid = pd.MultiIndex.from_product([[1.0, 2, 4], [8.0, 16], ["a", "b"]])
    X = grid.to_frame(index=False, name=["layers", "batch", "gpu"])
    assert not len(recombine(X, layout_of(X, None, None), 0))
    y = (0.01 * X["layers"] * X["batch"]).to_numpy()
    model = PosynomialRegressor().fit(pd.concat([X, X]), np.tile(y, 2))
    assert score(y, model.predict(X)).mape < 0.02


def test_rows_in_between_have_the_median_time() -> None:
    X, y = measured()
    problem = problem_of(X, y)
    solution = polish(problem, first_term(problem))
    c = solution.constants
    solutions = [
        replace(solution, constants=replace(c, base=c.base + by)) for by in (0.0, 0.1, 5.0)
    ]
    layout = layout_of(X, None, None)
    between = layout.encode(recombine(X, layout, 0))
    joined = join_consensus(problem, between, solutions)
    (middle,) = path_logs(replace(problem, rows=between), [solutions[1]])
    assert joined.target[len(y) :] == pytest.approx(middle)
    assert joined.target[: len(y)] == pytest.approx(problem.target)


def test_ridges_weigh_beside_measured_rows_what_they_did() -> None:
    X, y = measured()
    problem = problem_of(X, y)
    joined = problem.join(problem.rows, problem.target, 0.3)
    c = polish(problem, first_term(problem)).constants
    assert joined.weights.sum() == pytest.approx(1.0)
    own, more = (
        p.stiffness(c) / p.weights[0] for p in (problem, joined)
    )  # relative to one measured row
    assert more == pytest.approx(own)


def test_what_is_stated_of_errors_is_of_measured_rows() -> None:
    X, y = measured()
    model = PosynomialRegressor().fit(X, y)
    assert len(model.held_out_) == len(y)
    held_out = score(y, model.held_out_).mape
    assert model.front_.members[model.front_.chosen].error == pytest.approx(held_out)
