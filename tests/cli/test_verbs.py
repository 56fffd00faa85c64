import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from paceline.estimators import load_fit


def test_help_lists_every_verb(run: Callable) -> None:
    outcome = run("--help")
    assert outcome.code == 0
    for verb in ("demo", "import", "fit", "predict", "check", "explain", "compare", "validate"):
        assert verb in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize(
    "verb",
    ["demo", "import", "fit", "predict", "check", "explain", "compare", "validate", "list"],
)
def test_every_verb_has_help_with_an_example(run: Callable, verb: str) -> None:
    outcome = run(verb, "--help")
    assert outcome.code == 0 and f"paceline {verb}" in outcome.out
    assert "Example" in outcome.out


def test_fit_prints_the_formula_and_what_was_guessed(
    run: Callable, study: Path, tmp_path: Path
) -> None:
    outcome = run("fit", study, "--seeds", 1, "-o", tmp_path / "model.json")
    assert outcome.code == 0
    assert "n_devices^" in outcome.out and "Written to" in outcome.out
    assert "note:" in outcome.err and "extrinsic" in outcome.err
    assert load_fit(tmp_path / "model.json").n_rows == 200


def test_fit_gives_the_same_bytes_twice(run: Callable, study: Path, tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        run("fit", study, "--seeds", 2, "--random-state", 7, "-o", tmp_path / name)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_fit_as_json_is_the_model_file(run: Callable, study: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    outcome = run("fit", study, "--seeds", 1, "-o", path, "--output-format", "json")
    assert json.loads(outcome.out) == json.loads(path.read_text())


def test_roles_and_penalty_options_reach_the_fit(
    run: Callable, study: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.json"
    outcome = run(
        "fit", study, "--seeds", 1, "-o", path, "--form", "generic", "--solver", "fast",
        "--penalty", "l2", "--strength", "0.01", "--power-strength", "0.1",
        "--intrinsic", "filters,kernel_size,stride", "--extrinsic", "n_devices,device_batch",
        "--categorical", "stride", "--time-per", "step",
    )  # fmt: skip
    assert outcome.code == 0
    data = json.loads(path.read_text())
    assert data["roles"] == {
        "intrinsic": ["kernel_size", "filters", "stride"],  # as in the file
        "extrinsic": ["n_devices", "device_batch"],
        "categorical": ["stride"],
    }
    assert data["settings"]["strength"] == 0.01 and data["settings"]["power_strength"] == 0.1
    assert data["basis"]["time_per"] == "step"
    assert "ignored" in outcome.err or "not used" in outcome.err or "left" in outcome.err


def test_explain_needs_no_role_options(run: Callable, model: Path) -> None:
    text = run("explain", model, "--at", "n_devices=3")
    assert text.code == 0 and "sub-optimal (ideal -1)" in " ".join(text.out.split())
    data = json.loads(run("explain", model, "--output-format", "json").out)
    assert data["schema"] == "paceline/explanation/1"
    assert data["scaling"][0]["name"] in ("n_devices", "device_batch")


def test_predict_adds_four_columns_to_the_rows(
    run: Callable, model: Path, study: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    assert run("predict", model, study, "-o", out).code == 0
    before, after = pd.read_csv(study), pd.read_csv(out)
    added = ["predicted_s", "lower_s", "upper_s", "extrapolates"]
    assert list(after) == [*before, *added]
    assert (after["lower_s"] < after["predicted_s"]).all()
    assert set(after["extrapolates"]) == {0}
    printed = run("predict", model, study)
    assert printed.out.splitlines()[0].endswith(",".join(added))


def test_predict_at_a_point_says_what_it_filled_in(run: Callable, model: Path) -> None:
    outcome = run("predict", model, "--at", "n_devices=2", "--at", "optimizer=sgd")
    assert outcome.code == 0
    assert "90 % interval" in outcome.out and "n_devices=2" in outcome.out
    assert "at their median: kernel_size=" in " ".join(outcome.err.split())
    data = json.loads(run("predict", model, "--at", "n_devices=2", "--output-format", "json").out)
    assert data["lower_s"] < data["predicted_s"] < data["upper_s"]


def test_extrapolation_is_said_with_the_parameter_and_its_range(
    run: Callable, model: Path
) -> None:
    outcome = run("predict", model, "--at", "n_devices=64", "--output-format", "json")
    assert json.loads(outcome.out)["extrapolates"] == 1
    assert "n_devices 64 not measured (measured from 1 to 3)" in " ".join(outcome.err.split())


def test_an_unseen_level_is_said_and_refused_when_strict(run: Callable, model: Path) -> None:
    loose = run("predict", model, "--at", "optimizer=lion")
    assert loose.code == 0 and "known levels: " in " ".join(loose.err.split())
    strict = run("predict", model, "--at", "optimizer=lion", "--strict")
    assert strict.code == 2 and "adam" in strict.err and strict.out == ""


def test_terms_that_were_asked_for_are_said_to_be(run: Callable, tmp_path: Path) -> None:
    rows = [(b, n, 0.01 * b / n + 0.2) for b in (8, 16, 32, 64) for n in (1, 2, 4, 8)]
    data = tmp_path / "data.csv"
    data.write_text("batch,n_gpus,time_s\n" + "".join(f"{b},{n},{t}\n" for b, n, t in rows))
    said = " ".join(
        run("fit", data, "--form", "posynomial", "--terms", 7, "--seeds", 1).out.split()
    )
    assert "-> was asked for, with --terms 7." in said and "simplest" not in said
    assert "7 terms were asked for; those that never mattered were dropped" in said
    alone = run("fit", data, "--form", "posynomial", "--seeds", 1).out
    assert "-> was chosen: the simplest" in " ".join(alone.split())


def test_check_is_a_gate(run: Callable, model: Path, study: Path) -> None:
    assert run("check", model, study, "--max-error", "10%").code == 0
    failed = run("check", model, study, "--max-error", "0.1%", "--output-format", "json")
    assert failed.code == 1 and json.loads(failed.out)["passed"] is False
    assert run("check", model, study, "--max-error", "ten").code == 2


def test_compare_prints_one_table_and_writes_csv_and_json(
    run: Callable, study: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    outcome = run("compare", study, "--holdout", "0.3", "-o", table)
    assert outcome.code == 0
    expressions = ("generic", "generic-l1", "generic-l2", "power-law", "extra-p")
    for name in (*expressions, "forest", "svr", "boosting"):
        assert name in outcome.out
    assert pd.read_csv(table)["name"].iloc[0].startswith(("auto", "generic"))
    assert max(map(len, outcome.out.splitlines())) <= 80


def test_import_keeps_the_roles(run: Callable, study: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    assert run("import", study, "-o", store, "--time-per", "epoch").code == 0
    assert run("import", study, "-o", store).code == 2  # never overwrites
    assert run("import", study, "-o", store, "--append", "--time-per", "epoch").code == 0
    outcome = run("fit", store, "--seeds", 1, "-o", tmp_path / "model.json")
    assert outcome.code == 0
    data = json.loads((tmp_path / "model.json").read_text())
    assert data["n_rows"] == 400 and data["basis"]["time_per"] == "epoch"
    assert run("import", store, "-o", tmp_path / "runs.parquet").code == 0
    assert run("import", store, "-o", tmp_path / "runs.xlsx").code == 2


def test_validate_passes(run: Callable) -> None:
    outcome = run("validate", "--output-format", "json")
    assert outcome.code == 0 and json.loads(outcome.out)["passed"] is True


def test_list_names_forms_and_spaces(run: Callable) -> None:
    assert "generic" in run("list", "forms").out
    assert "table_4_1" in json.loads(run("list", "spaces", "--output-format", "json").out)


@pytest.mark.serial
def test_demo_measures_and_leaves_its_files(run: Callable, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="pip install 'paceline[torch]'")
    outcome = run("demo", "--reduced", "-o", tmp_path / "demo")
    assert outcome.code == 0, outcome.err
    names = sorted(p.name for p in (tmp_path / "demo").iterdir() if "-" not in p.name)
    assert names == [
        "comparison.json",
        "explanation.txt",
        "model.json",
        "report.html",
        "runs.csv",
        "runs.db",
    ]
    assert "How it scales" in outcome.out and "forest" in outcome.out
    assert outcome.out.splitlines()[-1].endswith(str(tmp_path / "demo" / "report.html"))


def test_check_takes_the_unit_of_a_time_from_its_name(
    run: Callable, model: Path, study: Path, tmp_path: Path
) -> None:
    frame = pd.read_csv(study)
    frame.assign(step_ms=1000 * frame.pop("time_s")).to_csv(tmp_path / "ms.csv", index=False)
    outcome = run("check", model, tmp_path / "ms.csv", "--time", "step_ms", "--max-error", "10%")
    assert outcome.code == 0
    assert "note: `step_ms` is taken in milliseconds, by its name." in outcome.err


def test_check_takes_data_in_which_a_parameter_is_constant(
    run: Callable, model: Path, study: Path, tmp_path: Path
) -> None:
    table = pd.read_csv(study)
    table[table["n_devices"] == 2].to_csv(tmp_path / "two.csv", index=False)
    outcome = run("check", model, tmp_path / "two.csv", "--max-error", "20%")
    assert outcome.code == 0, outcome.err


def test_labels_that_look_like_numbers_keep_their_spelling(run: Callable, tmp_path: Path) -> None:
    rows = [
        f"{v},{n},{n * (2 if v == '2.10' else 1)}" for v in ("2.1", "2.10") for n in range(1, 9)
    ]
    (tmp_path / "data.csv").write_text("\n".join(["version,width,time_s", *rows, *rows]) + "\n")
    path = tmp_path / "model.json"
    outcome = run(
        "fit", tmp_path / "data.csv", "--categorical", "version", "--seeds", 1, "-o", path
    )
    assert outcome.code == 0, outcome.err
    assert set(json.loads(path.read_text())["measured"]["levels"]["version"]) == {"2.1", "2.10"}
    predicted = run("predict", path, tmp_path / "data.csv")
    assert "extrapolate" not in predicted.err


def test_without_a_verb_the_help_is_shown(run: Callable) -> None:
    outcome = run()
    assert outcome.code == 2 and "Verbs:" in outcome.out
