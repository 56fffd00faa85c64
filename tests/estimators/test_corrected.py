import json

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.errors import SchemaError
from paceline.estimators import CorrectedRegressor, fit, load_fit, save_fit, score
from paceline.estimators._correction import (
    Kernel,
    Places,
    known_to,
    lowerings,
    places_of,
    spread,
    stack_weights,
)
from paceline.estimators._correction._gaussian import learn_process
from paceline.estimators._correction._likelihood import Likelihood


def wavy(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Times that no short sum of powers describes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"size": np.exp(rng.uniform(0, 5, n)), "n_devices": rng.choice([1.0, 2, 4], n)}
    )
    ripple = 1.0 + 0.4 * np.sin(2.5 * np.log(X["size"]))
    return X, (0.1 * X["size"] ** 0.7 * ripple / X["n_devices"]).to_numpy() * np.exp(
        0.02 * rng.normal(size=n)
    )


@pytest.fixture(scope="module")
def model() -> CorrectedRegressor:
    return CorrectedRegressor().fit(*wavy())


def test_a_correction_describes_what_the_formula_cannot(model: CorrectedRegressor) -> None:
    X, y = wavy(500, seed=1)
    formula = score(y, model.expression_.evaluate(X)).mape
    corrected = score(y, model.predict(X)).mape
    assert corrected < 0.5 * formula
    assert model.formula_share_ < 0.5


def test_the_held_out_error_is_honest(model: CorrectedRegressor) -> None:
    _, y = wavy()
    unseen, truth = wavy(1000, seed=2)
    promised = score(y, model.held_out_).mape
    assert score(truth, model.predict(unseen)).mape < 1.5 * promised


def test_far_outside_the_prediction_is_the_formula(model: CorrectedRegressor) -> None:
    far = pd.DataFrame({"size": [1e12], "n_devices": [2.0]})
    assert model.predict(far) == pytest.approx(model.expression_.evaluate(far), rel=1e-6)
    near = pd.DataFrame({"size": [20.0], "n_devices": [2.0]})
    assert model.predict(near) != pytest.approx(model.expression_.evaluate(near), rel=1e-3)


def test_with_few_rows_nothing_is_corrected() -> None:
    X, y = wavy(30)
    model = CorrectedRegressor().fit(X, y)
    assert model.blend_ is None
    assert np.array_equal(model.predict(X), model.expression_.evaluate(X))


def test_same_data_and_seed_give_the_same_corrections() -> None:
    X, y = wavy(80)
    first, second = (CorrectedRegressor().fit(X, y) for _ in range(2))
    assert np.array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize("n_across", [0, 2])
def test_the_gradient_of_the_likelihood_is_right(n_across: int) -> None:
    rng = np.random.default_rng(0)
    places = Places(logs=rng.normal(size=(25, 2)), codes=rng.integers(0, 3, (25, 1)))
    likelihood = Likelihood(places, rng.normal(size=25), n_across)
    x = likelihood.start() + rng.normal(0, 0.3, len(likelihood.start()))
    _, gradient = likelihood.cost(x)
    for i in range(len(x)):
        step = np.zeros_like(x)
        step[i] = 1e-5
        slope = (likelihood.cost(x + step)[0] - likelihood.cost(x - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_only_a_process_is_told_what_the_power_law_says() -> None:
    places = Places(logs=np.zeros((3, 1)), codes=np.zeros((3, 0), dtype=int))
    base = np.array([1.0, 2.0, 3.0])
    assert known_to("process", places, base).logs[:, -1] == pytest.approx(base)
    assert known_to("rough", places, base) is places


def test_a_process_follows_steps_as_well_as_waves() -> None:
    logs = np.linspace(-2.0, 2.0, 60)[:, None]
    places = Places(logs=logs, codes=np.zeros((60, 0), dtype=int))
    values = np.where(logs[:, 0] > 0, 0.5, -0.5) + 0.1 * np.sin(3 * logs[:, 0])
    even = np.arange(0, 60, 2)
    process = learn_process(places, values, 0)
    found = process.fit(places.take(even), values[even]).evaluate(places)
    assert np.abs(found - values).mean() < 0.05


def test_a_rough_kernel_falls_with_the_sum_of_the_differences() -> None:
    kernel = Kernel(shape="rough", scales=np.array([1.0, 0.5]), levels=np.array([0.3]))
    a = Places(logs=np.array([[0.0, 0.0]]), codes=np.array([[0]]))
    b = Places(logs=np.array([[1.0, -2.0], [0.0, 0.0]]), codes=np.array([[1], [0]]))
    assert kernel.between(a, b)[0] == pytest.approx([np.exp(-2.3), 1.0])


def test_no_correction_is_trusted_alone_for_a_small_lead() -> None:
    rng = np.random.default_rng(0)
    logs = rng.normal(0.0, [[3.0], [0.10], [0.11]], (3, 200))
    weights = stack_weights(logs, np.zeros(200), 200)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] == 0.0
    assert weights[1:].min() > 0.3


def test_a_process_finds_that_two_parameters_matter_by_their_ratio() -> None:
    rng = np.random.default_rng(0)
    logs = rng.uniform(-2.0, 2.0, (160, 4))
    values = np.sin(1.5 * (logs[:, 0] - logs[:, 1]))
    places = Places(logs=logs, codes=np.zeros((160, 0), dtype=int))
    known, asked = np.arange(80), np.arange(80, 160)
    process = learn_process(places.take(known), values[known], 0)
    first, second = process.kernels[0].across[:, :2].T
    assert np.abs(first + second).max() < 0.3 * np.abs(first - second).max()
    found = process.fit(places.take(known), values[known]).evaluate(places.take(asked))
    assert np.abs(found - values[asked]).mean() < 0.1


def test_predictions_that_disagree_are_lowered_more() -> None:
    rng = np.random.default_rng(0)
    scatter = np.where(np.arange(4_000) % 2, 0.05, 0.6)
    logs = np.array([scatter, -scatter])
    target = rng.normal(0.0, scatter)
    weights = np.array([0.5, 0.5])
    lower, apart = lowerings(logs, weights, target)
    assert spread(logs, weights) == pytest.approx(scatter)
    # of a log-normal time the least percentage error is at exp(-sd^2)
    assert lower + 0.6 * apart == pytest.approx(0.36, abs=0.06)
    assert lower + 0.05 * apart == pytest.approx(0.0025, abs=0.02)


def test_few_draws_trust_the_best_of_two_alike_less() -> None:
    errors = np.random.default_rng(0).normal(0.0, 0.1, 200)
    logs = np.array([errors, 1.1 * errors])
    few, many = (stack_weights(logs, np.zeros(200), n_draws) for n_draws in (10, 10_000))
    assert many[0] > 0.95
    assert 0.5 < few[0] < 0.7


def dataset() -> Dataset:
    X, y = wavy()
    return Dataset.from_frame(X.assign(time_s=y))


def test_a_saved_correction_predicts_the_same(tmp_path: object) -> None:
    result = fit(dataset(), form="corrected")
    path = tmp_path / "model.json"
    save_fit(result, path)
    rows = wavy(50, seed=3)[0]
    assert path.stat().st_size < 5_000_000
    pd.testing.assert_frame_equal(load_fit(path).predict(rows), result.predict(rows))


def test_a_correction_saved_before_the_power_law_was_told_is_read(tmp_path: object) -> None:
    path = tmp_path / "model.json"
    save_fit(fit(dataset(), form="corrected"), path)
    data = json.loads(path.read_text())
    process = data["blend"]["members"]["process"]
    process["logs"] = [row[:-1] for row in process["logs"]]
    for kernel in process["kernels"]:
        kernel["scales"].pop()
        kernel.pop("across", None)
    path.write_text(json.dumps(data))
    rows = wavy(50, seed=3)[0]
    old = load_fit(path)
    blend = old.estimator.blend_
    alone = blend.members["process"].evaluate(places_of(blend.layout, rows))
    assert np.isfinite(alone).all()
    assert np.isfinite(old.predict(rows)["predicted_s"]).all()


def test_a_correction_saved_with_one_baseline_for_all_is_read(tmp_path: object) -> None:
    path = tmp_path / "model.json"
    save_fit(fit(dataset(), form="corrected"), path)
    data = json.loads(path.read_text())
    blend = data["blend"]
    blend["baseline"] = next(iter(blend.pop("baselines").values()))
    del blend["lower"], blend["lower_apart"]
    path.write_text(json.dumps(data))
    old = load_fit(path).estimator.blend_
    assert set(old.baselines) == set(old.members)
    assert old.lower == 0.0


def test_scattered_times_are_foretold_below_their_median() -> None:
    rng = np.random.default_rng(0)
    X, _ = wavy(400)
    ripple = 1.0 + 0.4 * np.sin(2.5 * np.log(X["size"]))
    truth = (0.1 * X["size"] ** 0.7 * ripple / X["n_devices"]).to_numpy()
    y = truth * np.exp(0.3 * rng.normal(size=len(X)))
    model = CorrectedRegressor().fit(X, y)
    found = model.predict(X)
    assert 0.02 < model.blend_.lower < 0.15
    assert score(y, found).mape < score(y, found * np.exp(model.blend_.lower)).mape


@pytest.mark.parametrize(
    "spoil",
    [
        lambda blend: blend["baselines"].pop("process"),
        lambda blend: blend.update(lower="far"),
        lambda blend: blend["weights"].update(process=7.0),
        lambda blend: blend["reach"].update(low=[0.0]),
        lambda blend: blend["members"]["process"]["weights"].pop(),
        lambda blend: blend["members"]["process"]["logs"].pop(),
        lambda blend: blend["members"]["process"]["kernels"][0].update(shape="__import__"),
        lambda blend: blend["members"]["process"]["kernels"][0].update(scales=[1.0]),
    ],
)
def test_a_spoilt_correction_is_refused(tmp_path: object, spoil: object) -> None:
    path = tmp_path / "model.json"
    save_fit(fit(dataset(), form="corrected"), path)
    data = json.loads(path.read_text())
    spoil(data["blend"])
    path.write_text(json.dumps(data))
    with pytest.raises(SchemaError, match="not a usable model"):
        load_fit(path)
