"""Powers that names let one expect, and the law that is drawn to them."""

import numpy as np
import pandas as pd
import pytest

from paceline.estimators import CorrectedRegressor
from paceline.estimators._correction import Law
from paceline.estimators._expected import expected_powers
from paceline.estimators._posynomial import layout_of
from paceline.estimators._posynomial._problem import PosynomialProblem, Strengths


@pytest.mark.parametrize(
    ("names", "powers"),
    [
        (["micro_batch", "grad_accum", "seq_len"], [1, 1, 1]),
        (["model_gflop_per_token", "n_params"], [1, None]),
        (["n_params", "n_layers"], [1, None]),
        (["gpu_peak_tflops", "memory_gb", "power_limit_w"], [None, None, None]),
        (["message_bytes", "size_mb"], [1, 1]),
        (["local_batch", "tp", "pipeline_parallel", "ep", "n_gpus"], [1, -1, -1, 0, 0]),
        (["global_batch_size", "n_gpus", "tp"], [1, -1, 0]),
        (["global_batch_size", "n_nodes", "tp"], [1, -1, -1]),
        (["batch_size", "n_gpus"], [1, None]),
    ],
)
def test_names_say_how_times_scale(names: list[str], powers: list[float | None]) -> None:
    assert [expected_powers(names).get(name) for name in names] == powers


def law(n_rows: int, power: float) -> Law:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"device_batch": np.exp(rng.uniform(0, 3, n_rows))})
    target = power * np.log(X["device_batch"].to_numpy()) + rng.normal(0, 0.3, n_rows)
    layout = layout_of(X, None, None)
    problem = PosynomialProblem(
        rows=layout.encode(X),
        target=target,
        weights=np.full(n_rows, 1.0 / n_rows),
        strengths=Strengths(power=0.1, level=0.0),
    )
    return Law(problem=problem, layout=layout, seed=0)


def test_few_rows_follow_the_name_and_many_the_measurements() -> None:
    few, many = (
        law(n_rows, power=-0.5).expression().terms[0].powers["device_batch"]
        for n_rows in (6, 3_000)
    )
    assert few > 0.2
    assert many == pytest.approx(-0.5, abs=0.05)


def test_a_fold_is_foretold_by_a_law_that_has_not_seen_it() -> None:
    whole = law(40, power=1.0)
    train, test = np.arange(30), np.arange(30, 40)
    logs = whole.fold_logs([(train, test)])
    whole.problem.target[test] += 5.0
    assert whole.fold_logs([(train, test)]) == pytest.approx(logs)
    assert np.abs(logs[0, train] - whole.problem.target[train]).mean() < 0.4


def times_at_one_global_batch(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Steps of 8 devices whose batch of all together is always the same, and in no column."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"mbs": rng.choice([1.0, 2, 4, 8], n_rows), "tp": 2.0 ** rng.integers(0, 4, n_rows)}
    )
    y = 30.0 * X["mbs"] ** -0.05 * X["tp"] ** 0.4 * np.exp(rng.normal(0, 0.02, n_rows))
    return X, y.to_numpy()


def test_names_that_mislead_are_not_believed() -> None:
    X, y = times_at_one_global_batch(24)
    model = CorrectedRegressor().fit(X, y)
    assert not model.posynomial_.believes_names_
    powers = model.expression_.terms[0].powers
    assert powers["tp"] == pytest.approx(0.4, abs=0.1)
    assert powers.get("mbs", 0.0) == pytest.approx(0.0, abs=0.1)


def test_names_are_believed_where_rows_do_not_contradict_them() -> None:
    X, _ = times_at_one_global_batch(24)
    noise = np.exp(np.random.default_rng(1).normal(0, 0.1, 24))
    y = (0.3 * X["mbs"] ** 0.9 / X["tp"] ** 0.8).to_numpy() * noise
    assert CorrectedRegressor().fit(X, y).posynomial_.believes_names_


def test_rows_fewer_than_two_a_number_contradict_no_name() -> None:
    X, y = times_at_one_global_batch(14)
    rng = np.random.default_rng(4)
    X = X.assign(**{f"width_{i}": rng.choice([1.0, 2, 4], 14) for i in range(6)})
    assert CorrectedRegressor().fit(X, y).posynomial_.believes_names_
    enough, times = times_at_one_global_batch(14)
    assert not CorrectedRegressor().fit(enough, times).posynomial_.believes_names_
