"""`--features oracle` and `--cluster` on the command line."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paceline.clusters import load_cluster, save_cluster
from paceline.oracle import oracle_features

QUICK = ("--form", "posynomial", "--terms", "1")
ORACLE = ("--features", "oracle", "--workload", "resnet50", "--cluster", "abci")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps of ResNet-50 that take 1.5 times as long as the oracle says."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"n_devices": rng.choice([1, 2, 4, 8], 40), "device_batch": rng.choice([8, 16, 32], 40)}
    )
    said = oracle_features(frame, "resnet50", cluster=load_cluster("abci"))["oracle_step_s"]
    frame["time_s"] = 1.5 * said
    path = tmp_path_factory.mktemp("oracle") / "steps.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_model_of_the_oracle_needs_the_parameters_alone(
    run: Callable, table: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.json"
    outcome = run("fit", table, *QUICK, *ORACLE, "-o", model)
    assert outcome.code == 0, outcome.err
    assert "from the oracle of `resnet50` on abci join" in " ".join(outcome.err.split())
    assert "oracle_step_s" in outcome.out
    assert run("check", model, table, "--max-error", "1%").code == 0
    point = run("predict", model, "--at", "n_devices=512", "--output-format", "json")
    assert point.code == 0 and "n_devices 512 not measured" in " ".join(point.err.split())
    assert run("explain", model).code == 0
    compared = run("compare", table, "--folds", "2", *ORACLE)
    assert compared.code == 0 and "posynomial" in compared.out


def test_a_cluster_file_does(run: Callable, table: Path, tmp_path: Path) -> None:
    save_cluster(load_cluster("abci"), tmp_path / "mine.toml")
    options = (*ORACLE[:-1], tmp_path / "mine.toml")
    assert run("fit", table, *QUICK, *options).code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ORACLE[:-2], "Name one with --cluster"),
        ((*ORACLE[:-1], "abc"), "Did you mean 'abci'?"),
        (("--features", "oracle", "--cluster", "abci"), "name it with --workload"),
        (("--features", "oracles"), "Did you mean 'oracle'?"),
    ],
)
def test_what_is_missing_exits_with_2_and_what_to_do(
    options: tuple[str, ...], message: str, run: Callable, table: Path
) -> None:
    outcome = run("fit", table, *options)
    assert outcome.code == 2 and message in outcome.err
    assert "Traceback" not in outcome.err


def test_a_row_whose_strategy_cannot_be_is_named(
    run: Callable, table: Path, tmp_path: Path
) -> None:
    frame = pd.read_csv(table).assign(tensor=1)
    frame.loc[2, ["n_devices", "tensor"]] = [8, 3]
    frame.to_csv(tmp_path / "broken.csv", index=False)
    outcome = run("fit", tmp_path / "broken.csv", *QUICK, *ORACLE)
    assert outcome.code == 2 and "row 3 is not" in outcome.err
    assert "degrees must multiply to 8 devices, but are tensor 3" in outcome.err


def test_a_cluster_that_does_nothing_is_said(run: Callable, table: Path) -> None:
    outcome = run("fit", table, *QUICK, "--features", "none", "--cluster", "abci")
    assert outcome.code == 0 and "--cluster does nothing" in outcome.err
