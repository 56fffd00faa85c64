"""What the README and the documents show is what happens."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.validation import generate_study

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with our examples and a table called times.csv."""
    folder = tmp_path_factory.mktemp("documents")
    shutil.copytree(ROOT / "examples", folder / "examples")
    generate_study(n_rows=50).dataset.to_csv(folder / "times.csv")
    return folder


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.M | re.S)


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def same(shown: str, printed: str) -> bool:
    """Words to the letter, numbers within 2 %: another processor rounds another way."""
    numbers = [[float(n) for n in NUMBER.findall(text)] for text in (shown, printed)]
    words = [NUMBER.sub("#", text).split() for text in (shown, printed)]
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], rel=0.02)


def test_the_python_example_of_the_readme_prints_what_it_shows(folder: Path) -> None:
    (code,), (shown,) = blocks(ROOT / "README.md", "python"), blocks(ROOT / "README.md", "text")
    assert same(shown, run([sys.executable, "-W", "error", "-c", code], folder))


def test_the_commands_of_the_readme_print_what_they_show(folder: Path) -> None:
    (session,) = blocks(ROOT / "README.md", "console")
    for part in session.split("$ ")[1:]:
        command, *shown = part.splitlines()
        printed = run(shlex.split(command), folder).splitlines()
        assert shown.pop() == "..."  # the rest is left out
        assert shown and same("\n".join(shown), "\n".join(printed[: len(shown)]))


@pytest.mark.parametrize("document", DOCUMENTS[1:], ids=lambda p: p.stem)
def test_examples_in_the_documents_run(document: Path, folder: Path) -> None:
    for code in blocks(document, "python"):
        run([sys.executable, "-W", "error", "-c", code], folder)
    for script in blocks(document, "sh"):
        for line in script.splitlines():
            run(shlex.split(line, comments=True), folder)
    assert document.read_text().startswith("# ")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.stem)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", document.read_text())
    assert all((document.parent / target).exists() for target in targets)
