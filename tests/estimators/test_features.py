"""Derived columns in a fit: where they come from, what is remembered, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.estimators import (
    FitResult,
    add_features,
    compare,
    default_members,
    fit,
    fit_to_dict,
    load_fit,
    save_fit,
)
from paceline.explainers import explain
from paceline.reports import show_explanation
from paceline.space import load_space
from paceline.validation import generate_study
from paceline.workloads import layer_features, load_workload, sample_buildable

INTRINSIC = ["kernel_size", "pool_size", "filters", "stride", "dropout"]
LABELS = ["activation", "optimizer", "dataset", "padding"]
SHAPING = {"kernel_size", "pool_size", "filters", "stride", "dataset", "padding"}
DERIVED = ["forward_flop", "activation_bytes", "weight_bytes"]


def trials(n: int = 160) -> pd.DataFrame:
    workload, space = load_workload("lenet5"), load_space("table_4_1")
    rows, _ = sample_buildable(workload, space, n, random_state=0)
    table = pd.DataFrame([dict(row) for row in rows])[[*INTRINSIC, *LABELS]]
    rng = np.random.default_rng(0)
    return table.assign(
        n_devices=rng.choice([1.0, 2.0, 4.0], n), device_batch=rng.choice([8.0, 32.0, 128.0], n)
    )


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """Times of steps that are truly made of FLOP and of bytes to exchange, with 2 % noise."""
    layers = layer_features(table, "lenet5")
    exchange = 1e-8 * layers["weight_bytes"] * (1 - 1 / table["n_devices"])
    noise = np.random.default_rng(1).lognormal(0.0, 0.02, len(table))
    return table.assign(time_s=(2e-10 * layers["forward_flop"] + exchange + 1e-3) * noise)


def read(table: pd.DataFrame) -> Dataset:
    extrinsic = [n for n in ("n_devices", "device_batch", "global_batch") if n in table]
    intrinsic = [n for n in table if n in (*INTRINSIC, *LABELS)]
    return Dataset.from_frame(table, intrinsic=intrinsic, extrinsic=extrinsic, time_per="step")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return read(measured(trials()))


def campaign(dataset: Dataset, workload: str = "lenet5", executor: str = "torch") -> Dataset:
    other = dataset.other.assign(workload=workload, executor=executor)
    return replace(dataset, other=other, provenance={"study": "test"})


@pytest.fixture(scope="module")
def result(dataset: Dataset) -> FitResult:
    return fit(dataset, form="posynomial", features="layers", workload="lenet5")


@pytest.fixture(scope="module")
def corrected(dataset: Dataset) -> FitResult:
    return fit(dataset, form="corrected", features="layers", workload="lenet5")


def test_the_formula_has_derived_columns_in_place_of_what_they_follow_from(
    result: FitResult, dataset: Dataset
) -> None:
    assert result.features is not None
    assert list(result.features.names) == DERIVED
    assert set(result.features.replaces) == SHAPING
    names = set(result.estimator.expression_.names)
    assert names == {*dataset.X.columns, *DERIVED} - SHAPING
    assert set(result.measured.names) == set(dataset.X.columns)


def test_a_time_made_of_flop_is_told_better_by_flop(result: FitResult, dataset: Dataset) -> None:
    without = fit(dataset, form="posynomial", features="none")
    assert without.features is None
    assert result.scores is not None and without.scores is not None
    assert result.scores.mape < 0.5 * without.scores.mape


def test_corrections_see_all_columns(corrected: FitResult, dataset: Dataset) -> None:
    assert set(corrected.estimator.feature_names_in_) == {*dataset.X.columns, *DERIVED}
    assert not SHAPING & set(corrected.estimator.expression_.names)


@pytest.mark.parametrize("kind", ["result", "corrected"])
def test_a_saved_fit_needs_the_parameters_alone_and_predicts_the_same(
    kind: str, dataset: Dataset, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model: FitResult = request.getfixturevalue(kind)
    save_fit(model, tmp_path / "model.json")
    again = load_fit(tmp_path / "model.json")
    assert again.features == model.features
    pd.testing.assert_frame_equal(
        again.predict(dataset.X), model.predict(dataset.X), rtol=0, atol=0
    )
    assert fit_to_dict(again) == fit_to_dict(model)


def test_a_model_without_features_has_no_such_key(dataset: Dataset) -> None:
    assert "features" not in fit_to_dict(fit(dataset, form="posynomial", n_terms=1))


@pytest.mark.parametrize(
    ("key", "value"),
    [("workload", "lenet6"), ("source", "guess"), ("columns", {"forward_flop": [1, 2]})],
)
def test_a_model_with_broken_features_is_refused(
    key: str, value: object, result: FitResult, tmp_path: Path
) -> None:
    import json

    data = fit_to_dict(result)
    data["features"][key] = value
    path = tmp_path / "model.json"
    path.write_text(json.dumps(data))
    with pytest.raises(SchemaError, match="not a usable model"):
        load_fit(path)


def test_the_typical_point_can_be_built(result: FitResult) -> None:
    row, filled = result.measured.complete({})
    assert set(filled) == set(result.measured.names)
    assert load_workload("lenet5").infeasible(row.iloc[0].to_dict()) == ""
    assert np.isfinite(result.predict(row)["predicted_s"].iloc[0])


def test_a_row_that_cannot_be_built_is_refused_with_its_number(
    result: FitResult, dataset: Dataset
) -> None:
    rows = dataset.X.head(2).copy()
    rows.loc[1, ["kernel_size", "stride", "pool_size"]] = [5.0, 3.0, 5.0]
    rows.loc[1, "padding"] = "valid"
    with pytest.raises(InvalidInputError, match="row 2 is not"):
        result.predict(rows)


def test_a_level_that_shapes_no_layer_may_be_new(result: FitResult, dataset: Dataset) -> None:
    row = dataset.X.head(1)
    predicted = result.predict(row.assign(optimizer="lion")).iloc[0]
    assert predicted["extrapolates"] == 1 and predicted["lower_s"] < predicted["upper_s"]


def test_campaigns_of_our_own_have_their_layers_by_default(dataset: Dataset) -> None:
    assert add_features(campaign(dataset)).features.names == tuple(DERIVED)
    assert add_features(campaign(dataset), "none").features.names == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda data: data,  # a table by others
        lambda data: campaign(data, workload="Net"),  # a module of the user's
        lambda data: campaign(data, executor="command"),  # a script that is called like ours
        lambda data: replace(campaign(data), provenance={}),
    ],
)
def test_nothing_else_has_any_by_default(make: object, dataset: Dataset) -> None:
    found = add_features(make(dataset))
    assert found.features.names == ()
    assert found.notes == dataset.notes


def test_a_single_shaping_parameter_is_read_more_easily_than_three_columns() -> None:
    table = trials(40).assign(kernel_size=3, pool_size=2, stride=1, dataset="mnist")
    table = measured(table.assign(padding="same", filters=np.resize([4, 8, 16, 32, 64], 40)))
    small = campaign(read(table))
    assert add_features(small).features.names == ()
    assert add_features(small, "layers").features.names == tuple(DERIVED)


def test_fixed_values_of_the_study_are_remembered() -> None:
    table = trials(60)
    table = table[table["dataset"] != "cifar10"].assign(dataset="cifar10", device_batch=16)
    table = table.reset_index(drop=True)
    features = add_features(read(measured(table)), "layers", "lenet5").features
    assert features.fixed == {"dataset": "cifar10", "device_batch": 16.0}
    pd.testing.assert_frame_equal(
        features.derive(table.drop(columns=["dataset", "device_batch"])),
        layer_features(table, "lenet5")[list(features.names)],
    )


def test_a_global_batch_is_shared_by_the_devices(dataset: Dataset) -> None:
    table = trials(60)
    table["global_batch"] = table.pop("device_batch")
    model = fit(read(measured(table)), form="posynomial", features="layers", workload="lenet5")
    row = table.head(1).assign(n_devices=1.0, global_batch=128.0)
    one, four = (model.widen(row.assign(n_devices=n)) for n in (1.0, 4.0))
    assert one["forward_flop"].iloc[0] == 4 * four["forward_flop"].iloc[0]


def test_several_workloads_are_told_apart_by_their_column() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "workload": np.resize(["mlp", "autoencoder"], 60),
            "width": rng.choice([64.0, 128.0, 256.0], 60),
            "hidden": rng.choice([1.0, 2.0, 3.0], 60),
            "device_batch": rng.choice([8.0, 32.0], 60),
        }
    )
    layers = layer_features(table)
    table["time_s"] = 1e-9 * layers["forward_flop"] + 1e-3
    features = add_features(Dataset.from_frame(table), "layers").features
    assert features.workload == "" and "forward_flop" in features.names
    assert features.replaces == ("width", "hidden")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"features": "layers"}, InvalidInputError, "no column `workload`.*--workload"),
        ({"workload": "lenet"}, UnknownNameError, "Did you mean 'lenet5'"),
        ({"features": "layer"}, UnknownNameError, "Did you mean 'layers'"),
    ],
)
def test_what_cannot_be_derived_is_said(
    options: dict, error: type[Exception], message: str, dataset: Dataset
) -> None:
    with pytest.raises(error, match=message):
        fit(dataset, **options)


def test_the_layers_of_a_users_own_workload_are_not_known(dataset: Dataset) -> None:
    with pytest.raises(InvalidInputError, match=r"'Net' is not one of them.*--features none"):
        add_features(campaign(dataset, workload="Net"), "layers")


def test_a_needed_column_that_is_no_parameter_is_asked_for() -> None:
    table = measured(trials(40))
    names = [n for n in INTRINSIC if n != "filters"]
    dataset = Dataset.from_frame(
        table, intrinsic=[*names, *LABELS], extrinsic=["n_devices", "device_batch"]
    )
    with pytest.raises(InvalidInputError, match=r"need `filters`, which varies.*--intrinsic"):
        add_features(dataset, "layers", "lenet5")


def test_generic_data_are_still_found_to_be_generic() -> None:
    study = generate_study("tensorflow", n_rows=700, noise=0.05, random_state=0).dataset
    workload = load_workload("lenet5")
    built = [not workload.infeasible(row) for row in study.X.to_dict("records")]
    result = fit(campaign(study.take(built)), n_seeds=1)
    assert add_features(campaign(study.take(built))).features.names == tuple(DERIVED)
    assert result.form == "generic" and result.features is None


def test_an_explanation_moves_what_follows_from_a_parameter(result: FitResult) -> None:
    said = explain(result, at={"device_batch": 128.0, "n_devices": 1.0})
    doubled = {reading.name: reading for reading in said.doublings}
    # nearly all of a large batch's step is FLOP, so the batch moves the time as they do
    assert doubled["device_batch"].factor == pytest.approx(
        doubled["forward_flop"].factor, rel=0.05
    )
    assert doubled["filters"].factor > 1.5
    text = show_explanation(said)
    assert "forward FLOP per worker and step" in text and "from the layers of lenet5" in text
    assert any(term.label.startswith("per-sample work") for term in said.terms)
    assert {reading.name for reading in said.levels} >= {"padding", "dataset"}
    assert said.dominance is None or {said.dominance.x_name, said.dominance.y_name} <= set(
        result.measured.ranges
    )


def test_a_comparison_gives_posynomials_the_same_columns(dataset: Dataset) -> None:
    members = {"posynomial": default_members()["posynomial"]}
    with_layers = compare(add_features(dataset, "layers", "lenet5"), members=members, n_folds=2)
    without = compare(add_features(dataset, "none"), members=members, n_folds=2)
    assert with_layers.rows[0].mape < 0.5 * without.rows[0].mape
    assert with_layers.rows[0].settings["features"] == "the layers of lenet5"
