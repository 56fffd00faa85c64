import json

import pytest

from paceline.dataset import TimeBasis
from paceline.errors import UnknownNameError
from paceline.estimators import FitResult, GenericExpression, Term, fit
from paceline.explainers import Explanation, explain
from paceline.explainers._words import power_in_words, rank_in_words, scaling_verdict
from paceline.reports import show_explanation
from paceline.validation import generate_study, published_expression

EXPRESSION = GenericExpression(
    terms=(Term(name="kernel_size", coefficient_s=1.0, power=2.04),),
    levels={"padding": {"same": 2.0, "valid": 1.0}},
    powers={"n_devices": -0.74, "device_batch": 0.02},
    constant_s=0.0034,
)


@pytest.fixture(scope="module")
def result() -> FitResult:
    dataset = generate_study("tensorflow", n_rows=500, noise=0.05, random_state=0).dataset
    return fit(dataset, n_seeds=3, n_bootstrap=20)


@pytest.fixture(scope="module")
def explanation(result: FitResult) -> Explanation:
    return explain(result)


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (2.04, "grows with the square of k"),
        (0.98, "grows in proportion to k"),
        (0.96, "grows nearly in proportion to k"),
        (-1.05, "falls nearly in inverse proportion to k"),
        (1.92, "grows roughly with the square of k"),
        (0.33, "grows with the cube root of k"),
        (-0.12, "falls slightly with k"),
        (0.5, "grows with the square root of k"),
        (-0.5, "falls with the square root of k"),
        (0.74, "grows like k^0.74"),
        (-0.22, "falls like k^-0.22"),
        (0.01, "no measurable effect of k"),
    ],
)
def test_powers_are_put_in_words(power: float, words: str) -> None:
    assert power_in_words("k", power) == words


@pytest.mark.parametrize(
    ("power", "ideal", "verdict"),
    [
        (-1.01, -1.0, "ideal"),
        (-0.94, -1.0, "close to ideal"),
        (-0.74, -1.0, "sub-optimal"),
        (-1.2, -1.0, "better than ideal"),
        (0.0, 0.0, "ideal"),
        (0.3, 0.0, "sub-optimal"),
    ],
)
def test_scaling_is_judged_against_the_ideal(power: float, ideal: float, verdict: str) -> None:
    assert scaling_verdict(power, ideal) == verdict


@pytest.mark.parametrize(
    ("basis", "ideal"),
    [
        (TimeBasis(time_per="epoch"), -1.0),
        (TimeBasis(time_per="step", batch="device_batch"), 0.0),
        (TimeBasis(time_per="step"), None),
        (TimeBasis(), None),
    ],
)
def test_without_a_time_basis_there_is_no_verdict(basis: TimeBasis, ideal: float | None) -> None:
    devices, batch = explain(EXPRESSION, basis=basis).scaling
    assert devices.ideal == ideal
    assert (devices.verdict is None) == (ideal is None)
    assert batch.verdict is None


def test_levels_that_cannot_be_told_apart_are_not_ranked() -> None:
    ranked = [("a", 2.0), ("b", 1.9), ("c", 0.0)]
    assert rank_in_words(ranked, {"a": 0.5, "b": 0.5, "c": 0.5}) == "a ~ b > c"


def test_the_floor_is_said_in_readable_units() -> None:
    words = explain(EXPRESSION).floor_words
    assert words == "No number of devices gets below 3.4 ms."


def test_shares_at_a_point_sum_to_one(result: FitResult) -> None:
    there = explain(result, at={"n_devices": 3, "optimizer": "sgd"})
    assert sum(there.point_shares.values()) == pytest.approx(1.0)
    assert there.point["n_devices"] == 3.0 and there.point["optimizer"] == "sgd"
    assert sum(there.shares.values()) == pytest.approx(1.0)


def test_an_unknown_parameter_of_the_point_is_answered_with_the_nearest(
    result: FitResult,
) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'kernel_size'"):
        explain(result, at={"kernal_size": 3})


def test_what_the_data_do_not_determine_is_named(explanation: Explanation) -> None:
    assert any(w.startswith("Not determined by the data") for w in explanation.warnings)


def test_a_fit_with_one_seed_says_that_nothing_is_known_of_its_spread() -> None:
    dataset = generate_study("mxnet", n_rows=100, random_state=0).dataset
    warnings = explain(fit(dataset, n_seeds=1)).warnings
    assert any("not studied" in warning for warning in warnings)


def test_a_true_effect_is_not_called_no_effect(explanation: Explanation) -> None:
    words = {reading.name: reading.words for reading in explanation.terms}
    assert words["filters"].startswith("grows")
    assert words["learning_rate"].startswith("falls")


def test_an_explanation_reads_at_eighty_columns_and_as_json(explanation: Explanation) -> None:
    text = show_explanation(explanation)
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    for part in ("How it scales", "sub-optimal (ideal -1)", "Do not rely on", "kernel_size"):
        assert part in flat
    assert json.loads(json.dumps(explanation.to_dict(), allow_nan=False))["floor_s"] > 0


@pytest.mark.parametrize("framework", ["tensorflow", "mxnet", "pytorch"])
def test_published_constants_give_the_published_readings(framework: str) -> None:
    basis = TimeBasis(time_per="epoch", batch="device_batch")
    reading = explain(published_expression(framework), basis=basis)
    dearest = {levels.name: levels.ranked[0][0] for levels in reading.levels}
    assert dearest["padding"] == "same" and dearest["dataset"] == "fashion-mnist"
    assert dearest["activation"] == ("relu" if framework == "pytorch" else "tanh")
    verdict = next(s.verdict for s in reading.scaling if s.name == "n_devices")
    assert (verdict == "sub-optimal") == (framework == "tensorflow")
