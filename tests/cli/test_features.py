"""`--features` and `--workload` on the command line."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset, load_dataset, save_store
from paceline.workloads import layer_features

QUICK = ("--form", "posynomial", "--terms", "1")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measured steps of LeNet-5 that are made of FLOP, in a table without a workload."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "kernel_size": rng.choice([2.0, 3.0, 4.0], 60),
            "filters": rng.choice([4.0, 8.0, 16.0, 32.0], 60),
            "dataset": rng.choice(["mnist", "cifar10"], 60),
            "padding": rng.choice(["same", "valid"], 60),
            "device_batch": rng.choice([8.0, 16.0, 64.0], 60),
        }
    )
    frame["time_s"] = 1e-9 * layer_features(frame, "lenet5")["forward_flop"]
    path = tmp_path_factory.mktemp("features") / "steps.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def store(table: Path) -> Path:
    """The same as a campaign of ours."""
    dataset = load_dataset(table, time_per="step")
    other = dataset.other.assign(workload="lenet5", executor="torch")
    path = table.with_suffix(".db")
    save_store(replace(dataset, other=other, provenance={"study": "steps"}), path)
    return path


def test_layers_join_and_the_model_needs_the_parameters_alone(
    run: Callable, table: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.json"
    outcome = run("fit", table, *QUICK, "--workload", "lenet5", "-o", model)
    assert outcome.code == 0
    assert "from the layers of `lenet5` join" in " ".join(outcome.err.split())
    assert "stand for kernel_size, filters, dataset, padding" in " ".join(outcome.err.split())
    assert "forward FLOP per worker and step" in outcome.out
    # what is proportional to the FLOP is found to be
    checked = run("check", model, table, "--max-error", "1%")
    assert checked.code == 0, checked.out
    point = run("predict", model, "--at", "filters=16", "--at", "kernel_size=3")
    assert point.code == 0 and "of a typical row" in " ".join(point.err.split())
    assert run("explain", model, "--over", "filters,device_batch").code == 0


def test_a_campaign_has_them_by_default_and_none_switches_them_off(
    run: Callable, store: Path
) -> None:
    with_layers, without = (
        run("fit", store, *QUICK),
        run("fit", store, *QUICK, "--features", "none"),
    )
    assert with_layers.code == without.code == 0
    assert "forward_flop" in with_layers.out and "filters^" not in with_layers.out
    assert "forward_flop" not in without.out and "filters^" in without.out


def test_an_exported_table_names_no_workload(run: Callable, store: Path, tmp_path: Path) -> None:
    assert run("import", store, "-o", tmp_path / "steps.csv").code == 0
    assert "forward_flop" not in run("fit", tmp_path / "steps.csv", *QUICK).out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--features", "layers"), "Name it with --workload"),
        (("--features", "layers", "--workload", "lenet"), "Did you mean 'lenet5'?"),
        (("--features", "layer"), "Did you mean 'layers'?"),
    ],
)
@pytest.mark.parametrize("verb", ["fit", "compare"])
def test_what_cannot_be_derived_exits_with_2_and_what_to_do(
    verb: str, options: tuple[str, ...], message: str, run: Callable, table: Path
) -> None:
    outcome = run(verb, table, *options)
    assert outcome.code == 2 and message in outcome.err
    assert "Traceback" not in outcome.err


def test_a_row_that_cannot_be_built_is_named(run: Callable, table: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(table)
    frame.loc[4, ["kernel_size", "padding"]] = [40.0, "valid"]
    frame.to_csv(tmp_path / "broken.csv", index=False)
    outcome = run("fit", tmp_path / "broken.csv", *QUICK, "--workload", "lenet5")
    assert outcome.code == 2 and "row 5 is not" in outcome.err


def test_options_that_do_nothing_are_said(run: Callable, table: Path) -> None:
    outcome = run("fit", table, *QUICK, "--workload", "lenet5", "--features", "none")
    assert outcome.code == 0 and "--workload does nothing" in outcome.err
    generic = run("fit", table, "--form", "generic", "--seeds", "1", "--features", "layers")
    assert generic.code == 0 and "generic form is one of the parameters alone" in generic.err


def test_the_options_are_those_of_python(table: Path) -> None:
    from paceline.estimators import fit

    dataset = load_dataset(table)
    assert isinstance(dataset, Dataset)
    result = fit(dataset, form="posynomial", n_terms=1, workload="lenet5")
    assert result.features is not None and result.features.workload == "lenet5"
