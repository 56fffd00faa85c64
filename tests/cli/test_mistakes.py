"""Every user mistake is one line on stderr, exit code 2, no traceback, nothing written."""

from collections.abc import Callable
from pathlib import Path

import pytest

HEADER = "width,kind,n_devices,time_s\n"
GOOD = "".join(f"{w},{k},{n},{w * (1 + (k == 'b')) / n + 1}\n"
               for w in (1, 2, 4, 8) for k in "ab" for n in (1, 2, 4))  # fmt: skip


def refused(outcome: object, *parts: str) -> None:
    assert outcome.code == 2
    errors = [li for li in outcome.err.splitlines() if not li.startswith(("note: ", "      "))]
    assert len(errors) == 1 and errors[0].startswith("Error: "), outcome.err
    for part in parts:
        assert part in errors[0]
    assert "Traceback" not in outcome.err and outcome.out == ""


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["empty"]),
        (HEADER, ["at least one row"]),
        (HEADER + "1,a,1,2\n", ["at least 2 rows"]),
        (HEADER + GOOD + "x,a,1,2\n", ["width", "'x'", "line 26"]),
        (HEADER + GOOD + "1,a,1,nan\n", ["time_s"]),
        (HEADER + GOOD + "1,a,1,inf\n", ["time_s", "inf"]),
        (HEADER + GOOD + "1,a,1,0\n", ["time_s", "0"]),
        (HEADER + GOOD + "1,a,1,-3\n", ["time_s", "-3"]),
        (HEADER + GOOD + "1,a,1,\n", ["time_s"]),
        (HEADER + GOOD + "1,a,-1,2\n", ["n_devices > 0", "line 26 has -1"]),
        (HEADER + GOOD + "1,a,0,2\n", ["n_devices > 0", "line 26 has 0", "`categorical`"]),
        (HEADER + GOOD + '"1,024",a,1,2\n', ["line 26", "1024 if the comma", "1.024 if it"]),
        (HEADER + GOOD + ",a,1,2\n,b,1,2\n", ["2 rows have none, line 26 the first"]),
        (HEADER + GOOD + "-1,a,1,2\n", ["width >= 0", "-1"]),
        (HEADER + GOOD + "1,a,1,2,9,9\n", ["line 26"]),
        ("width,kind,n_devices,time\n" + GOOD, ["time_s", "time", "--time"]),
    ],
)
def test_bad_data_is_one_clear_line(
    run: Callable, tmp_path: Path, content: str, parts: list[str]
) -> None:
    data, model = tmp_path / "data.csv", tmp_path / "model.json"
    data.write_text(content)
    refused(run("fit", data, "--seeds", 1, "-o", model), *parts)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv"]


def test_fewer_rows_than_constants_of_the_generic_form_are_refused(
    run: Callable, tmp_path: Path
) -> None:
    data = tmp_path / "data.csv"
    data.write_text(HEADER + "1,a,1,2\n2,b,1,3\n4,a,2,1\n")
    refused(run("fit", data, "--form", "generic", "--seeds", 1), "rows as constants")


@pytest.mark.parametrize(
    "content", [b"\x00\x01\x02\xff" * 50, b"\xff\xfe\xfa,1\n", b"\x89PNG\r\n"]
)
def test_a_binary_file_is_one_clear_line(run: Callable, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.csv").write_bytes(content)
    refused(run("fit", tmp_path / "data.csv"), "text file")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--intrinsic", "widht"], ["Did you mean 'width'"]),
        (["--extrinsic", "n_device"], ["Did you mean 'n_devices'"]),
        (["--time", "tme_s"], ["Did you mean 'time_s'"]),
        (["--group", "kin"], ["Did you mean 'kind'"]),
        (["--form", "genric"], ["Did you mean 'generic'"]),
        (["--penalty", "l3"], ["l3"]),
        (["--strength", "-1", "--penalty", "l2"], ["0 <= strength"]),
        (["--seeds", "0"], ["seeds"]),
        (["--extrinsic", "kind"], ["kind"]),
        (["--nonsense"], ["--nonsense"]),
    ],
)
def test_a_wrong_option_is_one_clear_line(
    run: Callable, tmp_path: Path, options: list[str], parts: list[str]
) -> None:
    (tmp_path / "data.csv").write_text(HEADER + GOOD)
    refused(run("fit", tmp_path / "data.csv", *options), *parts)


def test_missing_files_and_folders_are_one_clear_line(
    run: Callable, study: Path, model: Path, tmp_path: Path
) -> None:
    refused(run("fit", tmp_path / "none.csv"), "none.csv")
    refused(run("fit", tmp_path), str(tmp_path))
    refused(run("explain", tmp_path / "none.json"), "none.json")
    refused(run("predict", model, tmp_path / "none.csv"), "none.csv")
    outcome = run("fit", study, "--seeds", 1, "-o", tmp_path / "no" / "model.json")
    assert outcome.code == 2 and "folder" in outcome.err


def test_a_misspelt_verb_is_answered_with_the_nearest(run: Callable) -> None:
    refused(run("fitt"), "Did you mean 'fit'")


def test_predict_wants_rows_or_a_point(run: Callable, model: Path, study: Path) -> None:
    refused(run("predict", model), "either ROWS.csv or --at")
    refused(run("predict", model, study, "--at", "n_devices=2"), "either ROWS.csv or --at")
    refused(run("predict", model, "--at", "n_devices"), "NAME=VALUE")
    refused(run("predict", model, "--at", "n_device=2"), "Did you mean 'n_devices'")
    refused(run("predict", model, "--at", "n_devices=lots"), "n_devices", "lots")
    refused(run("predict", model, "--at", "n_devices=0"), "n_devices > 0")


def test_no_form_predicts_for_no_devices(run: Callable, study: Path, tmp_path: Path) -> None:
    for form in ("posynomial", "corrected"):
        model = tmp_path / f"{form}.json"
        assert run("fit", study, "--form", form, "--seeds", 1, "-o", model).code == 0
        refused(run("predict", model, "--at", "n_devices=0"), "n_devices > 0")


def test_no_command_writes_over_what_it_reads(
    run: Callable, model: Path, study: Path, tmp_path: Path
) -> None:
    data, copy = tmp_path / "data.csv", tmp_path / "model.json"
    data.write_text(study.read_text())
    copy.write_text(model.read_text())
    linked = tmp_path / "link.csv"
    linked.symlink_to(data)
    for arguments in (
        ("fit", data, "-o", data),
        ("fit", data, "-o", linked),
        ("compare", data, "-o", data),
        ("import", data, "-o", data),
        ("predict", copy, data, "-o", copy),
        ("predict", copy, data, "-o", data),
    ):
        refused(run(*arguments), "must not be a file that the command reads")
    assert (data.read_text(), copy.read_text()) == (study.read_text(), model.read_text())


def test_a_limit_without_percent_sign_is_a_share(run: Callable, model: Path, study: Path) -> None:
    refused(run("check", model, study, "--max-error", "5"), "Write 5% if")
    assert run("check", model, study, "--max-error", "0.9").code == 0


def test_rows_with_a_missing_column_are_refused(
    run: Callable, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("n_devices,filters\n1,4\n")
    refused(run("predict", model, tmp_path / "rows.csv"), "No column is called")


def test_a_truncated_model_is_refused(run: Callable, model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "model.json"
    broken.write_text(model.read_text()[:500])
    for verb in (["explain"], ["predict", "--at", "n_devices=1"]):
        refused(run(verb[0], broken, *verb[1:]), "model.json")


def test_things_that_are_no_errors_are_said(run: Callable, tmp_path: Path) -> None:
    rows = "".join(line.replace("\n", ",7\n") for line in GOOD.splitlines(True))
    (tmp_path / "data.csv").write_text(HEADER.replace("\n", ",same\n") + rows + rows[:20])
    text = HEADER.replace("\n", ",same\n") + rows + rows.splitlines(True)[0]
    (tmp_path / "data.csv").write_text(text)
    outcome = run("fit", tmp_path / "data.csv", "--seeds", 1)
    assert outcome.code == 0
    assert "same" in outcome.err and "constant" in outcome.err  # a constant column is dropped
    assert "repeat" in outcome.err  # duplicated rows


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from paceline.cli import main
    from paceline.errors import InvalidInputError

    with pytest.raises(InvalidInputError):
        main(["fit", str(tmp_path / "none.csv"), "--debug"])


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--executor", "torhc"], ["Did you mean 'torch'"]),
        (["--executor", ""], ["`executors` must be different names"]),
        (["--trials", "0"], ["--trials", "0"]),
    ],
)
def test_a_study_is_not_changed_into_nonsense(
    run: Callable, tmp_path: Path, options: list[str], parts: list[str]
) -> None:
    outcome = run("measure", "chapter4", "--reduced", "-o", tmp_path / "runs.db", *options)
    refused(outcome, *parts)
    assert not (tmp_path / "runs.db").exists()
