"""Who follows the README and the first tutorial word by word ends with a report.

Here with the environment that is there; `test_new_user_afresh.py` installs everything anew.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorials" / "first_model.py"
ACTIVATE = ". .venv/bin/activate"


def readme_commands(section: str) -> list[str]:
    """Return what a section of the README says to type, in its order."""
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## )", README.read_text(), re.M | re.S)
    commands = []
    for language, block in re.findall(r"^```(sh|console)\n(.*?)^```", text, re.M | re.S):
        lines = block.splitlines()
        if language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        commands += [shlex.join(shlex.split(line, comments=True)) for line in lines]
    return commands


def tutorial_commands() -> list[str]:
    """Return the commands of the first tutorial, for those who type them."""
    calls = [node for node in ast.walk(ast.parse(TUTORIAL.read_text())) if _is_command(node)]
    return [f"paceline {call.args[0].value}" for call in calls]  # type: ignore[attr-defined]


def _is_command(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "paceline"
        and isinstance(node.args[0], ast.Constant)
    )


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what is committed or about to be: no environment, nothing that was built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("a new user has a clone, but this is none: git does not know the files")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def type_in(commands: list[str], folder: Path, *, path: str = "") -> str:
    """Type commands into one shell, as a person who stops at the first that fails."""
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    kept |= {"PATH": f"{path}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-e"],
        input="\n".join(commands),
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def numbers_of(report: Path, chart: str) -> Any:
    """Return the numbers that a report holds of one of its charts."""
    (text,) = re.findall(
        rf'<script type="application/json" id="numbers-{chart}">(.*?)</script>',
        report.read_text(),
        re.S,
    )
    return json.loads(text)


def assert_the_report_holds_the_figures(folder: Path) -> None:
    """Compare the page with the table and the model that it was made of."""
    report, model = folder / "report.html", json.loads((folder / "model.json").read_text())
    times = pd.read_csv(folder / "examples" / "lenet5.csv")["time_s"]
    agreement = numbers_of(report, "agreement")
    assert sorted(agreement["measured_s"]) == pytest.approx(sorted(times), rel=1e-6)
    assert len(agreement["predicted_s"]) == len(times)
    text = re.sub(r"<[^>]+>", " ", report.read_text().split("<section", 1)[0])
    shown = re.search(r"held-out error\s+([\d.]+) %", text)
    assert shown and float(shown[1]) == pytest.approx(100 * model["scores"]["mape"], rel=0.01)
    curve = numbers_of(report, "scaling-1")
    assert curve["name"] == "n_devices" and min(curve["predicted_s"]) > 0


def test_the_readme_and_the_tutorial_say_what_to_type() -> None:
    assert readme_commands("Two commands") == ["make demo", "make test"]
    commands = readme_commands("On the command line")
    assert commands[0] == ACTIVATE and len(commands) == 9
    typed = tutorial_commands()
    assert typed[0].startswith("paceline fit") and typed[-1].startswith("paceline report")


def test_following_the_readme_and_the_first_tutorial_ends_with_a_report(tmp_path: Path) -> None:
    folder = copy_of_the_tree(tmp_path)
    # this environment stands for the one that `make demo` makes; calibrating and training take
    # minutes and are left to `make test-new-user`
    typed = [c for c in readme_commands("On the command line") if c != ACTIVATE]
    typed = [c for c in typed if not re.search(r"calibrate|here\.toml|paceline run", c)]
    type_in(
        list(dict.fromkeys([*typed, *tutorial_commands()])),
        folder,
        path=f"{Path(sys.executable).parent}{os.pathsep}",
    )
    assert_the_report_holds_the_figures(folder)
