"""Published runs: the rule of outliers, ceilings, and what the checks would catch."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from paceline.errors import UnknownNameError
from paceline.validation import _hkbu_series, _paradl_series, _paradl_table
from paceline.validation._accuracy import (
    Prediction,
    check_at_least,
    mean_accuracy,
    monotone_ceiling,
    show_accuracy,
)
from paceline.validation._gpipe import predict_epochs
from paceline.validation._oracle_facts import SOURCES, Case, Series, load_oracle_facts
from paceline.validation._paradl_series import (
    abci,
    check_paradl_series,
    measured_series,
    predict_series,
)
from paceline.validation._paradl_table import own_predictions, predict_entry


def series(*cases: tuple[int, tuple[float, ...]]) -> Series:
    return Series(
        network="resnet50",
        strategy="data",
        device_batch=64,
        cases=tuple(Case(n_devices=n, runs=runs) for n, runs in cases),
    )


@pytest.mark.parametrize("name", SOURCES)
def test_every_file_names_its_source(name: str) -> None:
    source = load_oracle_facts(name)["source"]
    assert set(source) == {"document", "short", "about"}
    with pytest.raises(UnknownNameError, match="paradl"):
        load_oracle_facts("paradle")


def test_runs_that_disagree_are_left_out() -> None:
    one = series((1, (1.0,)), (2, (1.0, 1.21)), (4, (1.0, 1.19)))
    assert one.outliers() == {2: "runs differ by 21%"}
    assert [case.n_devices for case in one.kept()] == [1, 4]
    assert one.kept()[1].time_s == pytest.approx(1.095)


def test_a_step_far_above_that_of_more_devices_is_left_out() -> None:
    one = series((1, (1.0,)), (2, (1.3,)), (4, (1.0,)), (8, (5.0,)))
    assert one.outliers() == {2: "30% above 4 devices"}


def test_the_rule_leaves_out_two_of_all_published_cases() -> None:
    found = {str(one): list(one.outliers()) for one in measured_series() if one.outliers()}
    assert found == {"data resnet50, 64 samples a device": [128, 256]}


@pytest.mark.parametrize("times", [[1.0], [1, 2, 3], [3, 2, 1], [1, 3, 2, 2.5, 0.5], [2, 1, 1, 1]])
def test_the_ceiling_is_that_of_every_prediction_that_never_falls(times: list[float]) -> None:
    values = np.array(times)
    best = max(
        1 - np.mean(np.abs(np.array(guess) - values) / values)
        for guess in product(times, repeat=len(times))
        if list(guess) == sorted(guess)
    )
    assert monotone_ceiling(times) == pytest.approx(best)


def test_no_prediction_of_ours_beats_the_ceiling() -> None:
    for one in measured_series():
        predictions = predict_series(one)
        ceiling = monotone_ceiling([p.measured for p in predictions])
        assert mean_accuracy(predictions) <= ceiling
        predicted = [p.predicted for p in predictions]
        assert predicted == sorted(predicted)


def test_the_smallest_number_of_devices_is_never_tested() -> None:
    for one in measured_series():
        smallest = min(case.n_devices for case in one.cases)
        assert smallest not in [p.n_devices for p in predict_series(one)]
    for entry in load_oracle_facts("paradl")["table_viii"]:
        tested = [p.n_devices for p in predict_entry(load_oracle_facts("paradl"), entry)]
        assert tested == entry["n_devices"][1:]


def test_a_link_that_is_half_as_fast_fails_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(check.passed for check in check_paradl_series())
    monkeypatch.setattr(_paradl_series, "abci", lambda *_: abci(0.4, 2.0))
    failed = [check.name for check in check_paradl_series() if not check.passed]
    assert "mean accuracy of data parallelism, 15 cases" in failed


def test_a_low_case_without_a_reason_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_paradl_series, "REASONS", {})
    failed = [check for check in check_paradl_series() if not check.passed]
    assert any("data+spatial resnet50" in check.name for check in failed)


def test_table_viii_has_paradls_own_accuracy_beside_ours() -> None:
    facts = load_oracle_facts("paradl")
    ours = [p for e in facts["table_viii"] for p in predict_entry(facts, e)]
    theirs = [p for e in facts["table_viii"] for p in own_predictions(e)]
    assert len(ours) == len(theirs) == 15
    assert mean_accuracy(ours) > 0.9 > mean_accuracy(theirs)
    assert {(e["network"], e["strategy"]) for e in facts["table_viii"]} == set(
        _paradl_table.RECORDED
    )


def test_throughput_is_predicted_beyond_one_node_only() -> None:
    facts = load_oracle_facts("hkbu")
    for entry in facts["series"]:
        predictions = _hkbu_series.predict_throughput(facts, entry)
        assert [p.n_devices for p in predictions] == [8, 16, 32]


def test_pipelines_are_predicted_from_two_cases() -> None:
    predictions = predict_epochs("resnet152")
    assert len(predictions) == 3
    assert mean_accuracy(predictions) > 0.9


def test_floors_and_records_can_fail() -> None:
    assert check_at_least("x", "y", floor=0.9, got=0.9).passed
    assert not check_at_least("x", "y", floor=0.9, got=0.899).passed
    assert not show_accuracy("x", "y", recorded=0.9, got=0.915, beside="z").passed
    one = Prediction(name="x", n_devices=2, predicted=3.0, measured=2.0)
    assert one.accuracy == 0.5
