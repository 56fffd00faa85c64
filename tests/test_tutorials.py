"""Every tutorial runs as it stands; those that start workers are in `test_tutorials_torch.py`."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))
NAMES = (
    "choose_a_strategy",
    "first_model",
    "own_script",
    "predict_64_from_8",
    "read_a_formula",
    "run_a_plan",
)

WITH_WORKERS = ("own_script", "run_a_plan")
LIGHT = [path for path in TUTORIALS if path.stem not in WITH_WORKERS]


def run(script: Path, folder: Path) -> str:
    """Run a script where a reader would, with warnings as errors."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_six_tutorials() -> None:
    assert tuple(path.stem for path in TUTORIALS) == NAMES


@pytest.mark.parametrize("tutorial", LIGHT, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_prints_figures(tutorial: Path, tmp_path: Path) -> None:
    assert_runs(tutorial, tmp_path)


def assert_runs(tutorial: Path, tmp_path: Path) -> None:
    """Run a tutorial in a folder with our examples; it prints figures, and nothing is missing."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    printed = run(tutorial, tmp_path)
    assert len(printed.splitlines()) > 10 and re.search(r"\d", printed)
    assert "nan" not in printed.split()


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_says_what_will_be_learnt_and_is_short(tutorial: Path) -> None:
    source = tutorial.read_text()
    title, _, rest = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    assert title.endswith(".") and "You will learn" in rest
    assert len(source.splitlines()) <= 100
    assert source.count("\n# ") >= 5  # prose between the code
