"""The oracle's columns in a fit: few measurements on few devices, predictions for many."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paceline.clusters import Cluster, load_cluster, save_cluster
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
from paceline.oracle import oracle_features
from paceline.reports import show_explanation

ABCI, A100 = load_cluster("abci"), load_cluster("dgx-a100")


def other_than(cluster: Cluster) -> Cluster:
    """Return what somebody really has who takes a machine of the catalogue for it."""
    device = replace(cluster.device, efficiency={"default": 0.3}, memory_efficiency=0.55)
    levels = tuple(
        replace(level, link=replace(level.link, bandwidth=0.45 * level.link.bandwidth))
        for level in cluster.levels
    )
    return replace(cluster, device=device, levels=levels)


def steps(devices: list[int], n: int = 40, noise: float = 0.03) -> pd.DataFrame:
    """Return measured steps of VGG-16 on so many devices."""
    rng = np.random.default_rng(len(devices))
    table = pd.DataFrame(
        {"n_devices": rng.choice(devices, n), "device_batch": rng.choice([4, 8, 16, 32, 64], n)}
    )
    true = oracle_features(table, "vgg16", cluster=other_than(ABCI))["oracle_step_s"]
    return table.assign(time_s=true * rng.lognormal(0.0, noise, n))


def transformers(n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "d_model": rng.choice([512, 1024, 2048], n),
            "n_layers": rng.choice([6, 12, 24], n),
            "seq_len": 512,
            "tp": rng.choice([1, 2, 4], n),
            "n_gpus": rng.choice([4, 8], n),
            "micro_batch": rng.choice([1, 2, 4], n),
            "precision": rng.choice(["bf16", "fp32"], n),
        }
    )
    true = oracle_features(table, cluster=other_than(A100))["oracle_step_s"]
    return table.assign(time_s=true * rng.lognormal(0.0, 0.03, n))


def read(table: pd.DataFrame) -> Dataset:
    return Dataset.from_frame(table, time_per="step")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return read(steps([1, 2, 4, 8]))


@pytest.fixture(scope="module")
def result(dataset: Dataset) -> FitResult:
    return fit(dataset, form="posynomial", features="oracle", workload="vgg16", cluster=ABCI)


def mean_error(model: FitResult, table: pd.DataFrame) -> float:
    return float(np.mean(np.abs(model.predict(table)["predicted_s"] / table["time_s"] - 1)))


def test_few_devices_tell_of_many(result: FitResult, dataset: Dataset) -> None:
    many = steps([16, 64, 256], noise=0.0)
    alone = oracle_features(many, "vgg16", cluster=ABCI)["oracle_step_s"]
    without = fit(dataset, form="posynomial", features="none")
    error = mean_error(result, many)
    assert error < 0.5 * mean_error(without, many)
    assert error < 0.5 * float(np.mean(np.abs(alone / many["time_s"] - 1)))


def test_the_formula_is_a_correction_of_the_oracle(result: FitResult) -> None:
    assert result.features is not None
    assert result.features.names[0] == "oracle_step_s"
    assert set(result.features.replaces) == {"n_devices", "device_batch"}
    assert set(result.estimator.expression_.names) == set(result.features.names)


def test_columns_that_say_nearly_the_same_do_not_share_a_power() -> None:
    table = transformers()
    table["time_s"] = 1.7 * oracle_features(table, cluster=A100)["oracle_step_s"]
    table["time_s"] *= np.random.default_rng(2).lognormal(0.0, 0.03, len(table))
    model = fit(read(table), form="posynomial", features="oracle", cluster=A100)
    (term,) = model.estimator.expression_.terms
    assert term.powers["oracle_step_s"] == pytest.approx(1.0, abs=0.05)
    assert term.coefficient_s == pytest.approx(1.7, rel=0.1)


def test_many_rows_keep_their_parameters_in_the_formula() -> None:
    features = add_features(read(steps([1, 2, 4, 8], n=400)), "oracle", "vgg16", ABCI).features
    assert features.replaces == ()


def test_transformers_need_no_workload() -> None:
    model = fit(read(transformers()), form="posynomial", features="oracle", cluster="dgx-a100")
    assert model.features is not None and model.features.workload == ""
    assert {"d_model", "n_layers", "tp", "n_gpus"} <= set(model.features.replaces)
    assert model.features.fixed == {"seq_len": 512.0}
    assert "precision" in model.estimator.expression_.names
    assert model.scores is not None and model.scores.mape < 0.06
    assert any("vocabulary=50257" in note for note in model.notes)
    assert not any("guessed" in note for note in model.notes)


def test_a_guess_of_shapes_is_said() -> None:
    table = transformers().assign(n_params=1e9).drop(columns=["d_model", "n_layers"])
    table["n_params"] *= np.resize([1, 3, 7], len(table))
    notes = add_features(read(table), "oracle", cluster=A100).notes
    assert any("guessed from n_params" in note for note in notes)


def test_a_cluster_alone_asks_for_the_oracle(dataset: Dataset) -> None:
    assert add_features(dataset, workload="vgg16", cluster=ABCI).features.source == "oracle"
    assert add_features(dataset, workload="vgg16").features.source == "layers"


def test_a_saved_fit_holds_its_cluster_and_predicts_elsewhere(
    result: FitResult, dataset: Dataset, tmp_path: Path
) -> None:
    save_fit(result, tmp_path / "model.json")
    again = load_fit(tmp_path / "model.json")
    assert again.features is not None and again.features.cluster == ABCI
    pd.testing.assert_frame_equal(
        again.predict(dataset.X), result.predict(dataset.X), rtol=0, atol=0
    )
    assert fit_to_dict(again) == fit_to_dict(result)


@pytest.mark.parametrize("cluster", [None, {"schema": "paceline/cluster/1"}, 3])
def test_a_model_whose_cluster_is_broken_is_refused(
    cluster: object, result: FitResult, tmp_path: Path
) -> None:
    data = fit_to_dict(result)
    data["features"]["cluster"] = cluster
    (tmp_path / "model.json").write_text(json.dumps(data))
    with pytest.raises(SchemaError):
        load_fit(tmp_path / "model.json")


def test_a_file_of_a_cluster_does(dataset: Dataset, tmp_path: Path) -> None:
    save_cluster(other_than(ABCI), tmp_path / "mine.toml")
    found = add_features(dataset, "oracle", "vgg16", tmp_path / "mine.toml").features
    assert found.cluster == other_than(ABCI)


def test_a_level_that_the_oracle_does_not_read_may_be_new() -> None:
    table = transformers().assign(machine=np.resize(["a", "b"], 50))
    model = fit(read(table), form="posynomial", features="oracle", cluster=A100, n_terms=1)
    row = table.head(1).assign(machine="c")
    assert model.predict(row)["extrapolates"].iloc[0] == 1


def test_a_row_that_cannot_be_is_refused_with_its_number() -> None:
    model = fit(
        read(transformers()), form="posynomial", features="oracle", cluster=A100, n_terms=1
    )
    rows = transformers(2).assign(tp=[1, 3])
    with pytest.raises(InvalidInputError, match=r"row 2 is not.*tensor 3"):
        model.predict(rows)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"features": "oracle", "workload": "vgg16"}, InvalidInputError, "--cluster"),
        ({"features": "oracle", "cluster": "abc"}, UnknownNameError, "Did you mean 'abci'"),
        ({"workload": "vgg", "cluster": "abci"}, UnknownNameError, "Did you mean 'vgg16'"),
        ({"features": "oracle", "cluster": "abci"}, InvalidInputError, "--workload.*d_model"),
    ],
)
def test_what_is_missing_is_said(
    options: dict, error: type[Exception], message: str, dataset: Dataset
) -> None:
    with pytest.raises(error, match=message):
        fit(dataset, **options)


def test_a_column_with_names_of_others_gets_the_nearest_of_ours(dataset: Dataset) -> None:
    named = replace(dataset, other=dataset.other.assign(workload="vgg-16"))
    with pytest.raises(UnknownNameError, match="'vgg16'"):
        add_features(named, "oracle", cluster=ABCI)
    ours = replace(dataset, other=dataset.other.assign(workload="vgg16"))
    assert add_features(ours, "oracle", cluster=ABCI).features.workload == "vgg16"


def test_a_needed_column_that_is_no_parameter_is_asked_for() -> None:
    dataset = Dataset.from_frame(
        transformers(), intrinsic=["d_model", "n_layers"], extrinsic=["n_gpus", "micro_batch"]
    )
    with pytest.raises(InvalidInputError, match=r"need `(tp|precision)`, which varies"):
        add_features(dataset, "oracle", cluster=A100)


def test_an_explanation_names_the_oracle(result: FitResult) -> None:
    text = show_explanation(explain(result))
    assert "from the oracle of vgg16 on abci" in " ".join(text.split())
    doubled = {reading.name: reading.factor for reading in explain(result).doublings}
    assert doubled["device_batch"] > 1.5  # acts through the oracle's columns


def test_a_comparison_gives_posynomials_the_same_columns(dataset: Dataset) -> None:
    members = {"posynomial": default_members()["posynomial"]}
    found = compare(add_features(dataset, "oracle", "vgg16", ABCI), members=members, n_folds=2)
    assert found.rows[0].settings["features"] == "the oracle of vgg16 on abci"
    assert found.rows[0].mape < 0.06


def test_labels_shape_the_network_also_where_they_stay_parameters() -> None:
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(
        {
            "n_devices": rng.choice([1, 2, 4], 240),
            "device_batch": rng.choice([8, 16, 32], 240),
            "padding": ["same", "valid"] * 120,
        }
    )
    true = oracle_features(rows, "lenet5", cluster=other_than(ABCI))["oracle_step_s"]
    measured = read(rows.assign(time_s=true * rng.lognormal(0.0, 0.02, 240)))
    features = add_features(measured, "oracle", "lenet5", ABCI).features
    point = pd.DataFrame({"n_devices": [2, 2], "device_batch": [16, 16]})
    same, valid = features.derive_all(point.assign(padding=["same", "valid"]))["device_flop"]
    assert same > valid
