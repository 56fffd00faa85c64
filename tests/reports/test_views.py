"""Views are the numbers of a picture, and are right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.clusters import load_cluster
from paceline.dataset import Dataset
from paceline.estimators import FitResult
from paceline.explainers import explain, explain_phases
from paceline.measurement import PhaseRun
from paceline.oracle import simulate, survey
from paceline.reports.views import (
    predict_rows,
    view_agreement,
    view_front,
    view_path,
    view_phases,
    view_plan,
    view_provenance,
    view_residuals,
    view_scaling,
    view_shares,
    view_speedup,
    view_survey,
    view_workers,
)
from paceline.scenario import Plan, Stage, Strategy
from paceline.workloads import load_workload

FORMS = ("generic", "posynomial", "corrected")


def test_agreement_shows_every_row_and_knows_the_rows_that_were_fitted(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    view = view_agreement(dataset, fits["corrected"])
    assert len(view.measured_s) == view.n_rows == dataset.n_rows
    assert (
        view.is_fitted and not view_agreement(dataset.take([0, 1, 2]), fits["corrected"]).is_fitted
    )
    assert view.power == pytest.approx(1.0, abs=0.05) and view.scores.mape < 0.05
    assert 0.8 < view.covered <= 1


def test_a_model_that_is_twice_too_slow_has_a_line_twice_too_high(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    rows = predict_rows(dataset, fits["corrected"])
    rows["predicted_s"] = 2 * rows["measured_s"]
    view = view_agreement(dataset, fits["corrected"], rows)
    assert (view.factor, view.power) == pytest.approx((2.0, 1.0))


def test_a_large_study_is_thinned_in_the_picture_only(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    many = dataset.take(np.tile(np.arange(dataset.n_rows), 40))
    view = view_agreement(many, fits["posynomial"])
    assert len(view.measured_s) == 3000 and view.n_rows == 3600
    assert view.scores.mape == pytest.approx(
        view_agreement(dataset, fits["posynomial"]).scores.mape
    )


def test_residuals_find_the_parameter_that_the_model_misses(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    rows = predict_rows(dataset, fits["corrected"])
    wrong = np.where(dataset.X["n_devices"] == 4, 2.0, 1.0)
    rows["predicted_s"] = rows["measured_s"] / wrong
    worst, *_ = view_residuals(dataset, fits["corrected"], rows)
    assert worst.name == "n_devices" and worst.reach == pytest.approx(1.0)
    assert [group.median for group in worst.groups] == pytest.approx([0.0, 0.0, 1.0])
    assert sum(group.n_rows for group in worst.groups) == dataset.n_rows


@pytest.mark.parametrize("form", FORMS)
def test_shares_sum_to_one(form: str, fits: dict[str, FitResult]) -> None:
    views = view_shares(explain(fits[form]))
    assert sum(view.mean or 0.0 for view in views) == pytest.approx(1.0)
    assert sum(view.at_point or 0.0 for view in views) == pytest.approx(1.0)


def test_the_front_marks_one_expression_and_the_generic_form_has_none(
    fits: dict[str, FitResult],
) -> None:
    assert sum(view.is_chosen for view in view_front(fits["posynomial"])) == 1
    assert view_front(fits["generic"]) == ()


def test_a_strong_penalty_leaves_less_of_the_fit(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    view = view_path(dataset, fits["generic"], penalty="l2", strengths=(1e-4, 10.0))
    assert view.r2[0] > view.r2[1] and len(view.constants["C"]) == 2
    assert sum(v[0] for v in view.shares.values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="generic form"):
        view_path(dataset, fits["posynomial"])


def test_scaling_has_devices_first_and_the_predictions_of_the_model(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    fit = fits["posynomial"]
    devices, batch = view_scaling(dataset, fit)
    assert (devices.name, batch.name) == ("n_devices", "device_batch")
    assert devices.values[0] == 1 and devices.values[-1] == 32 and devices.measured_to == 4
    row, _ = fit.measured.complete({"n_devices": 8})
    here = devices.values.index(8.0)
    assert devices.predicted_s[here] == pytest.approx(
        float(fit.predict(row)["predicted_s"].iloc[0])
    )
    assert {m.value for m in devices.measured} == {1.0, 2.0, 4.0}
    assert batch.speedup is None and batch.knee is None


def test_speedup_of_a_fixed_device_batch_counts_the_growing_batch(
    dataset: Dataset, fits: dict[str, FitResult]
) -> None:
    curve, _ = view_scaling(dataset, fits["posynomial"])
    expected = [n * curve.predicted_s[0] / t for n, t in zip(curve.values, curve.predicted_s)]  # noqa: B905
    assert curve.speedup == pytest.approx(expected)
    assert curve.ideal_s == pytest.approx([curve.predicted_s[0]] * len(curve.values))
    assert curve.ideal_speedup == curve.values
    assert curve.knee is not None and curve.knee.n_devices <= curve.values[-1]


def test_phases_speedup_and_workers_are_the_planted_ones(
    phases: tuple[Path, tuple[PhaseRun, ...]],
) -> None:
    _, runs = phases
    explanation = explain_phases(runs)
    bars = {(b.network, b.n_workers): b for b in view_phases(explanation)}
    assert bars["mlp/64", 2].phases_s["transfer"] == pytest.approx(2e-4, rel=0.05)
    assert bars["mlp/64", 1].step_s == pytest.approx(64e-4, rel=0.05)
    curves = {c.network: c for c in view_speedup(explanation)}
    assert curves["mlp/64"].n_workers == (1, 2) and curves["mlp/64"].measured[1] < 2
    workers = [b for b in view_workers(runs) if b.network == "mlp/64"]
    assert [b.worker for b in workers] == [0, 1]
    fast, slow = (sum(b.phases_s.values()) for b in workers)
    assert slow / fast == pytest.approx(1.5, rel=0.03)
    assert workers[0].wait_s > workers[1].wait_s


def test_a_survey_says_what_fits_beside_the_memory_of_a_device() -> None:
    cluster = load_cluster("abci")
    found = survey(load_workload("lenet5").graph(), cluster, [1, 2, 4], device_batch=8)
    view = view_survey(found)
    assert view.device_memory_bytes == cluster.device.memory_bytes
    assert {p.n_devices for p in view.points if p.is_best} == {1, 2, 4}
    assert all(p.step_s is not None for p in view.points if p.fits)


def small_plan() -> Plan:
    stages = (Stage(first=0, end=3, names=("a", "b")), Stage(first=3, end=5, names=("c", "c")))
    return Plan(
        workload={"name": "lenet5", "values": {}},
        fingerprint="0",
        cluster="abci",
        strategy=Strategy(pipeline=2, micro_batches=4, schedule="gpipe"),
        global_batch=32,
        stages=stages,
        placement=((1, 0),),
        replica_batches=(32,),
        predicted={"step_s": 0.027, "forward_s": 0.01, "backward_s": 0.017, "memory_bytes": 2e9},
        reasons=("It is the fastest.",),
        runners_up=({"strategy": "data 2", "step_s": 0.03, "behind": 0.11},),
    )


def test_a_plan_has_its_stages_its_devices_and_its_passes() -> None:
    run = simulate("gpipe", [1e-3, 2e-3], [2e-3, 4e-3], n_micro_batches=4)
    view = view_plan(small_plan(), run)
    assert [stage["devices"] for stage in view.stages] == [[1], [0]]
    assert [stage["layers"] for stage in view.stages] == ["a to b", "c"]
    assert len(view.passes) == 2 * 2 * 4
    assert max(p.end_s for p in view.passes) == pytest.approx(run.step_s)
    assert sum(view.parts_s.values()) == pytest.approx(view.step_s)


def test_provenance_names_form_and_basis(dataset: Dataset, fits: dict[str, Any]) -> None:
    found = view_provenance(dataset, fits["generic"])
    assert found["form of the model"] == "generic"
    assert found["time"] == "time per step at fixed device batch"
