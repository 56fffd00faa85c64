"""What a posynomial says, in words that a person would use."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from paceline.cli._main import command
from paceline.dataset import Dataset, TimeBasis, load_dataset
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators import (
    FitResult,
    Front,
    FrontMember,
    GenericExpression,
    MeasuredRange,
    PosynomialExpression,
    PosynomialRegressor,
    PosynomialTerm,
    Scores,
    fit,
    save_fit,
)
from paceline.explainers import PosynomialExplanation, explain, write_posynomial
from paceline.explainers._posynomial_explanation import CorrectionReading
from paceline.explainers._posynomial_names import name_terms, term_in_words
from paceline.reports import show_explanation
from paceline.units import format_percent, format_seconds

WORK = PosynomialTerm(coefficient_s=0.001, powers={"device_batch": 1.0, "depth": 0.5})
STEP = PosynomialTerm(coefficient_s=0.02, powers={})
RING = PosynomialTerm(coefficient_s=0.004, powers={"n_gpus": 1.0}, collective="n_gpus")
EXPRESSION = PosynomialExpression(
    terms=(WORK, STEP, RING),
    factors={"gpu": {"A100": 0.5, "V100": 2.0}, "optimizer": {"adam": 1.0, "sgd": 1.0}},
    stand_ins={"device_batch": 32.0, "depth": 16.0, "n_gpus": 4.0},
)
MEASURED = MeasuredRange(
    ranges={"device_batch": (1.0, 256.0), "depth": (4.0, 64.0), "n_gpus": (1.0, 64.0)},
    levels={"gpu": ("V100", "A100"), "optimizer": ("adam", "sgd")},
    medians={"device_batch": 32.0, "depth": 16.0, "n_gpus": 4.0},
)
PER_STEP = TimeBasis(time_per="step", batch="device_batch")


def member(n_terms: int, error: float) -> FrontMember:
    return FrontMember(
        n_terms=n_terms,
        n_constants=5 * n_terms,
        error=error,
        standard_error=0.01,
    )


FRONT = Front(members=(member(1, 0.3), member(3, 0.05)), chosen=1, most_accurate=1)


def fit_of(
    expression: PosynomialExpression = EXPRESSION, form: str = "posynomial", **more: object
) -> FitResult:
    estimator = PosynomialRegressor()
    estimator.expression_, estimator.front_ = expression, FRONT
    for name, value in more.items():
        setattr(estimator, name, value)
    return FitResult(
        form=form,
        estimator=estimator,
        measured=MEASURED,
        basis=PER_STEP,
        scores=Scores(mape=0.05, median_ape=0.04, mae_s=0.01, rmse_s=0.01, r2=0.99),
        residuals=(),
        covers="configurations not measured",
        shares={"term 1": 0.6, "term 2": 0.3, "term 3": 0.1},
        stability=None,
        n_rows=100,
        noise_floor=0.03,
    )


@pytest.fixture(scope="module")
def explanation() -> PosynomialExplanation:
    found = explain(fit_of())
    assert isinstance(found, PosynomialExplanation)
    return found


def labels(*terms: PosynomialTerm, basis: TimeBasis = PER_STEP) -> list[str]:
    found = explain(replace(EXPRESSION, terms=terms), basis=basis)
    return [term.label for term in found.terms]


def test_the_formula_has_a_line_per_term_and_one_table_of_levels() -> None:
    assert write_posynomial(EXPRESSION).splitlines() == [
        "t =  1 ms x device_batch depth^0.5 [gpu]",
        "  + 20 ms x [gpu]",
        "  +  4 ms x (n_gpus - 1) [gpu]",
        "",
        "factor of a level  all terms",
        "[gpu] A100               0.5",
        "[gpu] V100                 2",
    ]


def test_a_collective_of_another_power_shows_its_factor() -> None:
    term = replace(RING, powers={"n_gpus": 0.5})
    text = write_posynomial(replace(EXPRESSION, terms=(term,)))
    assert "n_gpus^0.5 (1 - 1/n_gpus)" in text


def test_levels_of_a_term_of_its_own_have_a_column_per_term() -> None:
    own = replace(STEP, factors={"gpu": {"A100": 4.0, "V100": 0.25}})
    text = write_posynomial(replace(EXPRESSION, terms=(WORK, own)))
    rows = [line.split() for line in text.splitlines() if line.startswith("[gpu]")]
    assert rows == [["[gpu]", "A100", "0.5", "2"], ["[gpu]", "V100", "2", "0.5"]]


def test_terms_are_named_from_what_they_scale_with() -> None:
    assert labels(WORK, STEP, RING) == [
        "per-sample work",
        "per-step overhead",
        "collective communication per step, grows with n_gpus",
    ]
    shared = replace(WORK, powers={"device_batch": 1.0, "n_gpus": -1.0})
    assert labels(shared) == ["per-sample work, shrinks with n_gpus"]


def test_in_the_time_of_an_epoch_what_falls_with_the_batch_is_paid_per_step() -> None:
    falling = replace(STEP, powers={"device_batch": -1.0})
    names = ["per-step overhead", "per-sample work"]
    assert labels(falling, STEP, basis=TimeBasis(time_per="epoch")) == names
    assert labels(falling, STEP, basis=TimeBasis()) == names


def test_terms_of_one_kind_have_different_names() -> None:
    other = replace(WORK, powers={"device_batch": 1.0})
    names = labels(WORK, other, other)
    assert len(set(names)) == 3 and names[0] == "per-sample work, grows with depth"


def test_shares_are_of_the_point_and_of_the_rows(explanation: PosynomialExplanation) -> None:
    parts = np.array([0.001 * 32 * 4, 0.02, 0.004 * 3])
    assert [t.point_share for t in explanation.terms] == pytest.approx(parts / parts.sum())
    assert [t.mean_share for t in explanation.terms] == [0.6, 0.3, 0.1]
    assert explanation.point_s == pytest.approx(2 * parts.sum())


def test_doubling_says_what_the_time_and_every_term_do(explanation: PosynomialExplanation) -> None:
    batch = next(d for d in explanation.doublings if d.name == "device_batch")
    share = explanation.terms[0].point_share
    assert batch.elasticity == pytest.approx(share, rel=1e-3)
    assert batch.factor == pytest.approx(1 + share)
    assert batch.term_factors == pytest.approx((2.0, 1.0, 1.0))
    assert not batch.extrapolates


def test_a_collective_that_rises_from_nothing_has_no_factor() -> None:
    found = explain(fit_of(), at={"n_gpus": 1})
    devices = next(d for d in found.doublings if d.name == "n_gpus")
    assert devices.term_factors[2] is None and devices.factor > 1
    assert "new" in show_explanation(found)


def test_regimes_change_where_two_terms_are_equal(explanation: PosynomialExplanation) -> None:
    change = next(r for r in explanation.regimes if r.name == "device_batch")
    assert change.value == pytest.approx(5.0, rel=1e-3)  # 1 ms x 5 x sqrt(16) = 20 ms
    assert (change.below, change.above) == ("term 2", "term 1")


def test_the_map_holds_the_largest_term_of_every_cell(explanation: PosynomialExplanation) -> None:
    grid = explanation.dominance
    assert grid is not None and {grid.x_name, grid.y_name} == {"device_batch", "n_gpus"}
    terms = {"device_batch": 0.004 * 1, "n_gpus": 0.004}
    for y, line in zip(grid.y, grid.terms, strict=True):
        for x, k in zip(grid.x, line, strict=True):
            at = {grid.x_name: x, grid.y_name: y}
            ring = terms["n_gpus"] * (at["n_gpus"] - 1)
            parts = [terms["device_batch"] * at["device_batch"], 0.02, ring]
            assert parts[k - 1] == pytest.approx(max(parts))


def test_the_map_is_over_the_parameters_that_were_chosen() -> None:
    found = explain(fit_of(), over=("depth", "n_gpus"))
    assert (found.dominance.x_name, found.dominance.y_name) == ("depth", "n_gpus")
    with pytest.raises(UnknownNameError):
        explain(fit_of(), over=("depht", "n_gpus"))
    with pytest.raises(InvalidInputError, match="two different"):
        explain(fit_of(), over=("depth", "depth"))
    with pytest.raises(InvalidInputError, match="posynomial"):
        explain(GenericExpression(levels={}, powers={}, constant_s=1.0), over=("a", "b"))


def test_scaling_is_judged_against_the_ideal(explanation: PosynomialExplanation) -> None:
    (devices,) = explanation.devices
    assert devices.ideal == 0.0 and devices.verdict == "sub-optimal" and devices.power > 0.15
    (unknown,) = explain(fit_of(), basis=TimeBasis(batch="device_batch")).devices
    assert unknown.verdict is None


def test_levels_are_ranked_in_words(explanation: PosynomialExplanation) -> None:
    (gpu,) = explanation.levels
    assert gpu.ranked == (("V100", pytest.approx(2.0)), ("A100", pytest.approx(0.5)))
    assert gpu.words == "V100 takes 4 times the time of A100"


def test_the_front_marks_what_was_chosen(explanation: PosynomialExplanation) -> None:
    text = show_explanation(explanation)
    (chosen,) = [line.split() for line in text.splitlines() if line.startswith("  ->  ")]
    assert chosen[1:3] == ["3", "15"] and "--terms K" in text


def test_a_corrected_fit_says_what_is_formula_and_what_is_correction() -> None:
    rng = np.random.default_rng(0)
    size = np.exp(rng.uniform(0, 5, 120))
    ripple = 1.0 + 0.4 * np.sin(2.5 * np.log(size))
    frame = pd.DataFrame({"size": size, "time_s": 0.1 * size**0.7 * ripple})
    result = fit(Dataset.from_frame(frame), form="corrected")
    found, model = explain(result, at={"size": 20.0}), result.estimator
    assert found.correction.formula_share == model.formula_share_
    point_s = float(result.predict(pd.DataFrame({"size": [20.0]}))["predicted_s"].iloc[0])
    words = " ".join(found.correction.words)
    assert f"{format_percent(model.formula_share_)} of the prediction is the formula" in words
    assert f"alone is off by {format_percent(model.formula_error_)}" in words
    assert f"with the correction it is {format_seconds(point_s)}" in words
    assert "fades outside the measured range" in words


def test_what_scales_with_devices_is_said_of_the_formula_where_it_is_corrected() -> None:
    found = explain(fit_of())
    reading = CorrectionReading(
        formula_share=0.5, formula_error=None, corrected_error=None, words=("Corrected.",)
    )
    assert "64 n_gpus the time goes like" in show_explanation(found)
    assert "64 n_gpus the formula's time" in show_explanation(replace(found, correction=reading))


def test_a_term_of_tiny_powers_is_nearly_the_same() -> None:
    tiny = PosynomialTerm(coefficient_s=1.0, powers={"device_batch": 0.02})
    assert term_in_words(tiny) == "nearly the same whatever the numbers are"
    assert term_in_words(STEP) == "the same whatever the numbers are"


def test_a_point_outside_the_range_is_named() -> None:
    assert "n_gpus 1024" in explain(fit_of(), at={"n_gpus": 1024}).warnings[0]


def test_a_bare_posynomial_is_explained_at_its_mean_and_average_levels() -> None:
    found = explain(EXPRESSION)
    assert found.point_s == pytest.approx(0.16) and found.front is None
    assert found.dominance is None and found.regimes == ()
    with pytest.raises(UnknownNameError):
        explain(EXPRESSION, at={"depht": 3})


def test_an_explanation_is_plain_data_and_fits_80_columns(
    explanation: PosynomialExplanation,
) -> None:
    data = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert data["terms"][0]["label"] == "per-sample work"
    text = show_explanation(explanation)
    assert max(map(len, text.splitlines())) <= 80
    assert "noise floor" in text


def test_a_real_fit_is_explained_saved_and_exported(tmp_path: Path) -> None:
    dataset = load_dataset(Path(__file__).parents[2] / "examples" / "lenet5.csv")
    result = fit(dataset, form="posynomial")
    path = tmp_path / "model.json"
    save_fit(result, path)
    run = CliRunner()
    shown = run.invoke(command, ["explain", str(path), "--over", "device_batch,filters"])
    assert shown.exit_code == 0, shown.output
    assert "Largest term over device_batch (across) and filters (down)" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80
    source = run.invoke(command, ["explain", str(path), "--export", "python"]).output
    space: dict[str, Any] = {}
    exec(compile(source, "exported", "exec"), space)
    row = result.measured.read(dataset.X).iloc[0]
    expected = result.estimator.predict(dataset.X[:1])[0]
    names = result.estimator.expression_.names
    assert space["time_s"](*(row[name] for name in names)) == pytest.approx(expected)
    assert json.loads(run.invoke(command, ["explain", str(path), "--export", "json"]).output)
    one = run.invoke(command, ["explain", str(path), "--over", "filters"])
    assert one.exit_code != 0


def test_no_number_is_parted_from_its_unit_at_the_end_of_a_line(
    explanation: PosynomialExplanation,
) -> None:
    for more in range(12):  # every place where a line may end
        terms = [replace(t, label=t.label + "x" * more) for t in explanation.terms]
        lines = show_explanation(replace(explanation, terms=tuple(terms))).splitlines()
        assert not [line for line in lines if line.lstrip().startswith(("%", "= "))]
        assert max(map(len, lines)) <= 80


def test_one_term_that_falls_with_the_batch_does_not_make_a_step_an_epoch() -> None:
    falling = PosynomialTerm(coefficient_s=0.05, powers={"device_batch": -0.7})
    unknown = TimeBasis(time_per=None, batch="device_batch")
    labels = name_terms(replace(EXPRESSION, terms=(WORK, falling, STEP)), unknown, {})
    assert labels[0] == "per-sample work"
    assert labels[2].startswith("per-step overhead")
    only = name_terms(replace(EXPRESSION, terms=(falling, STEP)), unknown, {})
    assert only[1] == "per-sample work"


def test_a_map_over_parameters_that_networks_are_built_from_has_whole_numbers() -> None:
    data = load_dataset(Path(__file__).parents[2] / "examples" / "lenet5.csv", time_per="step")
    result = fit(data, form="posynomial", n_terms=2, features="layers", workload="lenet5")
    over = ("n_devices", "kernel_size")  # 1 to 2 and 2 to 5: few whole numbers lie between
    found = explain(result, over=over).dominance
    assert found is not None
    assert found.x == (1.0, 2.0) and found.y == (2.0, 3.0, 4.0, 5.0)
