"""How formulas go on beyond the few numbers that were measured."""

import numpy as np
import pandas as pd
import pytest

from paceline.estimators import PosynomialRegressor


def test_a_number_with_two_values_may_change_everything() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"devices_per_node": rng.choice([1.0, 2.0], 200)})
    X = X.assign(size_mb=np.exp(rng.uniform(-3, 4, 200)))
    across, within = 1e-4 + 5e-3 * X["size_mb"], 1e-5 + 5e-5 * X["size_mb"]
    y = np.where(X["devices_per_node"] == 1, across, within) * np.exp(rng.normal(0, 0.03, 200))
    model = PosynomialRegressor().fit(X, y)
    assert model.front_.members[model.front_.chosen].error < 0.08
    powers = [term.powers.get("devices_per_node", 0.0) for term in model.expression_.terms]
    assert min(powers) < -4.0
    assert max(powers) <= 4.1  # beyond what was measured a term may vanish, but not explode


def test_two_numbers_of_devices_are_read_as_a_collective() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"n_gpus": rng.choice([1.0, 2.0], 60)})
    X = X.assign(device_batch=rng.choice([8.0, 16, 32, 64], 60))
    y = (1e-3 * X["device_batch"] + 2e-2 * (1 - 1 / X["n_gpus"])) * np.exp(rng.normal(0, 0.02, 60))
    expression = PosynomialRegressor().fit(X, y).expression_
    assert "n_gpus" in {term.collective for term in expression.terms}
    far = expression.evaluate(pd.DataFrame({"n_gpus": [64.0], "device_batch": [32.0]}))
    assert far == pytest.approx(0.032 + 0.02 * 63 / 64, rel=0.25)


def test_a_jump_between_few_numbers_of_devices_does_not_go_on() -> None:
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"n_gpus": np.repeat([4.0, 8.0], 30)})
    X = X.assign(device_batch=rng.choice([8.0, 16, 32, 64], 60))
    y = 1e-3 * X["device_batch"] * np.where(X["n_gpus"] == 8, 6.0, 1.0)  # it leaves a node
    expression = PosynomialRegressor().fit(X, y * np.exp(rng.normal(0, 0.02, 60))).expression_
    ends = expression.evaluate(pd.DataFrame({"n_gpus": [8.0, 64.0], "device_batch": [32.0] * 2}))
    assert ends[1] / ends[0] < 10.0  # a power would make it 6^3


def test_many_numbers_of_devices_say_how_it_goes_on() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"n_ranks": rng.choice([2.0, 4, 8, 16, 32], 100)})
    X = X.assign(size_mb=np.exp(rng.uniform(0, 4, 100)))
    y = 1e-4 * X["size_mb"] * X["n_ranks"] ** 1.6 * np.exp(rng.normal(0, 0.02, 100))
    (term,) = PosynomialRegressor().fit(X, y).expression_.terms
    assert term.powers["n_ranks"] == pytest.approx(1.6, abs=0.05)


def test_a_level_measured_on_one_device_only_goes_on_as_the_others_do() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"n_gpus": rng.choice([1.0, 2, 4], 240)})
    X = X.assign(model=rng.choice(["vision", "speech", "tiny"], 240))
    X = X.assign(device_batch=np.exp(rng.uniform(0, 6, 240)))
    is_tiny = X["model"] == "tiny"  # which takes a thousandth of the time of a sample
    X.loc[is_tiny, "n_gpus"] = 1.0
    X.loc[is_tiny, "device_batch"] *= 1000.0
    sample = X["model"].map({"vision": 2e-3, "speech": 1e-3, "tiny": 1e-6})
    exchanged = 1e-2 * X["device_batch"] ** 0.5 * (1 - 1 / X["n_gpus"])
    y = (sample * X["device_batch"] + exchanged) * np.exp(rng.normal(0, 0.03, 240))
    model = PosynomialRegressor().fit(X, y)
    assert "n_gpus" in {term.collective for term in model.expression_.terms}
    rows = pd.DataFrame({"model": ["tiny"] * 2, "device_batch": [1e5] * 2, "n_gpus": [1.0, 4.0]})
    one, four = model.predict(rows)
    assert one == pytest.approx(0.1, rel=0.1)
    assert four < 4.0 * one
