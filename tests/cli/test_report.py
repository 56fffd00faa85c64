"""``paceline report``: one command, one page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.reports.test_views import small_plan

from paceline.scenario import save_plan


def test_a_report_is_written_and_its_path_printed(
    run: Callable[..., Any], study: Path, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    done = run("report", study, model, "-o", path)
    assert done.code == 0 and done.out == f"{path}\n"
    text = path.read_text()
    assert "Report of study.csv" in text and "time per epoch" in text


def test_a_plan_that_no_longer_fits_its_network_is_still_shown(
    run: Callable[..., Any], study: Path, model: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    save_plan(small_plan(), plan)
    done = run("report", study, model, plan, "-o", tmp_path / "report.html")
    assert done.code == 0 and "shown without its passes" in done.err
    assert "It is the fastest." in (tmp_path / "report.html").read_text()


def test_strategies_and_images_join_on_request(
    run: Callable[..., Any], study: Path, model: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'paceline[images]'")
    path = tmp_path / "report.html"
    words = ("--cluster", "abci", "--workload", "lenet5", "--images", tmp_path / "figures")
    done = run("report", study, model, "-o", path, *words)
    assert done.code == 0, done.err
    assert 'id="strategies"' in path.read_text()
    assert any(line.endswith(".png") for line in done.out.splitlines())


def test_mistakes_are_one_line(
    run: Callable[..., Any], study: Path, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.html"
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "file").write_text("")
    cases = {
        (study, model, "-o", tmp_path / "no" / "report.html"): "folder of a new file must exist",
        (study, model, "-o", tmp_path): "is a folder",
        (tmp_path / "absent.csv", model, "-o", out): "absent.csv",
        (study, tmp_path / "empty.json", "-o", out): "empty.json",
        (study, model, tmp_path / "empty.json", "-o", out): "a plan must have the schema",
        (study, model, "-o", out, "--cluster", "abcj", "--workload", "lenet5"): "abci",
        (study, model, "-o", out, "--cluster", "abci"): "Name it with --workload",
        (study, model, "-o", out, "--workload", "lenet5"): "--workload needs --cluster",
        (study, model, "-o", out, "--images", tmp_path / "file"): "must name a folder",
        (study, model): "--output",
    }
    for words, message in cases.items():
        done = run("report", *words)
        error = [line for line in done.err.splitlines() if line.startswith("Error")]
        assert done.code == 2 and len(error) == 1 and message in error[0], (words, done.err)
