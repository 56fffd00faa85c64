"""Factors of two levels together, and of numbers of devices beyond a limit."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.estimators import PosynomialExpression, PosynomialRegressor, fit, score
from paceline.estimators._posynomial import Beyond, Pair
from paceline.explainers import explain

NETWORKS = ("bert", "dlrm", "gpt", "lenet", "unet", "vgg")
DEVICES = ("a40", "h100", "p100", "t4", "v100")
# what a device does depends on the network: no sum of a few products of factors
SPEEDS = dict(
    zip(
        itertools.product(NETWORKS, DEVICES),
        np.exp(np.random.default_rng(5).normal(size=len(NETWORKS) * len(DEVICES))),
        strict=True,
    )
)


def crossed(n: int = 480, seed: int = 0, noise: float = 0.03) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "batch": rng.choice([8.0, 16, 32, 64, 128], n),
            "network": rng.choice(NETWORKS, n),
            "gpu": rng.choice(DEVICES, n),
        }
    )
    speed = np.array([SPEEDS[pair] for pair in zip(X["network"], X["gpu"], strict=True)])
    t = 0.01 * X["batch"] ** 0.9 * speed
    return X, t.to_numpy() * np.exp(noise * rng.normal(size=n))


def between_nodes(n: int = 240, noise: float = 0.03) -> tuple[pd.DataFrame, np.ndarray]:
    """Exchanges that are four times as slow on more than one node of 8 devices."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "size_mb": np.exp(rng.uniform(0, 5, n)),
            "n_devices": rng.choice([2.0, 4, 8, 16, 32], n),
        }
    )
    slow = np.where(X["n_devices"] > 8, 4.0, 1.0)
    t = 1e-3 * slow * X["size_mb"] * (1 - 1 / X["n_devices"]) + 2e-3
    return X, t.to_numpy() * np.exp(noise * rng.normal(size=n))


def dataset_of(X: pd.DataFrame, y: np.ndarray) -> Dataset:
    return Dataset.from_frame(X.assign(time_s=y))


@pytest.fixture(scope="module")
def paired() -> PosynomialRegressor:
    return PosynomialRegressor().fit(*crossed())


@pytest.fixture(scope="module")
def limited() -> PosynomialRegressor:
    return PosynomialRegressor().fit(*between_nodes())


def test_levels_that_act_together_are_found(paired: PosynomialRegressor) -> None:
    assert paired.expression_.composed == (Pair("network", "gpu"),)
    unseen, truth = crossed(seed=3, noise=0.0)
    assert score(truth, paired.predict(unseen)).mape < 0.03
    alone = PosynomialRegressor(compose=False).fit(*crossed())
    assert not alone.expression_.composed
    assert len(paired.expression_.terms) < len(alone.expression_.terms)


def test_the_end_of_a_node_is_found(limited: PosynomialRegressor) -> None:
    assert limited.expression_.composed == (Beyond("n_devices", 8.0),)
    X, _ = between_nodes()
    _, truth = between_nodes(noise=0.0)
    assert score(truth, limited.predict(X)).mape < 0.03
    jump = limited.predict(pd.DataFrame({"size_mb": [100.0] * 2, "n_devices": [8.0, 8.1]}))
    assert jump[1] / jump[0] == pytest.approx(4.0, rel=0.15)


def test_what_a_parent_tells_is_left_out() -> None:
    X, y = crossed()
    X["data"] = "data of " + X["network"].replace({"vgg": "lenet"})  # images for both
    expression = PosynomialRegressor().fit(X, y).expression_
    assert expression.composed == (Pair("network", "gpu"),)
    assert set(expression.names) == {"batch", "network", "gpu", "data"}
    assert set(expression.factors["data"].values()) == {1.0}
    assert not any("data" in term.factors for term in expression.terms)


def test_a_product_of_factors_needs_no_pairs() -> None:
    X, _ = crossed()
    speed = X["network"].map(dict(zip(NETWORKS, (1, 2, 3, 5, 7, 9), strict=True)))
    speed *= X["gpu"].map(dict(zip(DEVICES, (1, 2, 4, 6, 9), strict=True)))
    y = 0.01 * X["batch"] * speed * np.exp(0.03 * np.random.default_rng(2).normal(size=len(X)))
    assert not PosynomialRegressor().fit(X, y).expression_.composed


def test_numbers_of_devices_that_scale_smoothly_need_no_limit() -> None:
    X, _ = between_nodes()
    noise = np.exp(0.03 * np.random.default_rng(2).normal(size=len(X)))
    y = (1e-3 * X["size_mb"] * (1 - 1 / X["n_devices"]) + 2e-3) * noise
    assert not PosynomialRegressor().fit(X, y).expression_.composed


@pytest.mark.parametrize("which", ["paired", "limited"])
def test_every_export_says_the_same(which: str, request: pytest.FixtureRequest) -> None:
    expression = request.getfixturevalue(which).expression_
    X = (crossed() if which == "paired" else between_nodes())[0][:40]
    times = expression.evaluate(X)
    again = PosynomialExpression.from_dict(json.loads(json.dumps(expression.to_dict())))
    assert again == expression
    np.testing.assert_allclose(expression.to_numpy()(X), times)
    space: dict[str, Any] = {"math": math}
    exec(expression.to_python(), space)
    own = [space["time_s"](*row) for row in X[list(expression.names)].itertuples(index=False)]
    np.testing.assert_allclose(own, times)
    assert expression.composed[0].name.split()[0] in expression.to_latex().replace("\\", "")


@pytest.mark.parametrize("which", ["paired", "limited"])
def test_symbols_say_the_same(which: str, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("sympy", reason="SymPy is not installed. Try: pip install sympy")
    expression = request.getfixturevalue(which).expression_
    X = (crossed() if which == "paired" else between_nodes())[0][:5]
    for place in range(len(X)):
        row = X.iloc[place]
        levels = {n: row[n] for n in expression.categorical}
        whole = expression.to_sympy(levels)
        marks = expression.to_sympy()
        numbers = {str(s): row[str(s)] for s in whole.free_symbols}
        given = {f"{n}={level}": 0 for n in levels for level in expression.factors[n]}
        given |= numbers | {f"{n}={level}": 1 for n, level in levels.items()}
        want = expression.evaluate(X.iloc[[place]])[0]
        for found, values in ((whole, numbers), (marks, given)):
            symbols = {s: values[str(s)] for s in found.free_symbols}
            assert float(found.subs(symbols)) == pytest.approx(want)


def test_levels_never_measured_together_are_said_to_extrapolate() -> None:
    X, y = crossed()
    kept = ~((X["network"] == "vgg") & (X["gpu"] == "h100"))
    result = fit(dataset_of(X[kept].reset_index(drop=True), y[kept]), form="posynomial")
    rows = pd.DataFrame({"batch": [32.0] * 3, "network": ["vgg", "vgg", "new"], "gpu": "h100"})
    rows.loc[0, "gpu"] = "a40"
    found = result.predict(rows)
    assert found["extrapolates"].tolist() == [0, 1, 1]
    widths = np.log(found["upper_s"] / found["lower_s"])
    assert widths[1] > 3 * widths[0]
    truth = 0.01 * 32**0.9 * SPEEDS["vgg", "h100"]
    assert found["lower_s"][1] < truth < found["upper_s"][1]
    far = result.outside(result.measured.read(rows))
    assert far["network x gpu"].tolist() == [0.0, 1.0, 0.0]  # of an unseen level it is said so
    (warning,) = explain(result, at={"network": "vgg", "gpu": "h100"}).warnings
    assert warning == "The levels of network x gpu at the point were not measured together."


def test_names_that_would_be_mistaken_are_not_composed() -> None:
    X, y = between_nodes()
    X["n_devices > 8"] = np.random.default_rng(0).choice(["u", "v"], len(X))
    names = PosynomialRegressor().fit(X, y).expression_.names
    assert set(names) == set(X.columns)
    X, y = crossed()
    X["network"] = X["network"].replace({"gpt": "gpt x 2"})  # which pair would gpt x 2 x t4 be?
    assert not PosynomialRegressor().fit(X, y).expression_.composed


def test_exported_levels_are_read_as_the_table_was() -> None:
    X, y = crossed()
    X["network"] = X["network"].replace({"gpt": "1.0", "vgg": " vgg "})
    expression = PosynomialRegressor().fit(X, y).expression_
    space: dict[str, Any] = {}
    exec(expression.to_python(), space)
    own = [space["time_s"](*row) for row in X[list(expression.names)].itertuples(index=False)]
    np.testing.assert_allclose(own, expression.evaluate(X))


def test_the_regime_changes_at_the_limit() -> None:
    """Below the limit the fixed cost is the largest term, beyond it the bytes are."""
    result = fit(dataset_of(*between_nodes()), form="posynomial")
    reading = explain(result, at={"size_mb": 1.2, "n_devices": 8})
    (change,) = [r for r in reading.regimes if r.name == "n_devices"]
    assert change.value == 8.0
    alone = explain(result, at={"n_devices": 1})
    power = next(d for d in alone.doublings if d.name == "n_devices")
    assert power.elasticity > 0 and power.factor > 1  # 1 - 1/n begins to grow there


def test_a_jump_is_explained() -> None:
    result = fit(dataset_of(*between_nodes()), form="posynomial")
    reading = explain(result, at={"n_devices": 8})
    jump = next(levels for levels in reading.levels if levels.name == "n_devices > 8")
    assert jump.words.startswith("the time jumps") and jump.words.endswith("% up there")
    power = next(d.elasticity for d in reading.doublings if d.name == "n_devices")
    assert abs(power) < 1  # just below the limit, not across it
