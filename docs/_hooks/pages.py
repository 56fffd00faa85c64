"""Pages that are made when the site is built, and their places in the navigation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import benchmarks_page
from front_door import python_page
from links import ROOT, site_links
from mkdocs.structure.files import File
from reference import commands_page
from scripts import program_page, title_of, tutorial_page

DOCS = ROOT / "docs"
# in the order in which a reader wants them; others follow by name
_ORDER = (
    "first_model",
    "own_script",
    "read_a_formula",
    "predict_64_from_8",
    "choose_a_strategy",
    "run_a_plan",
)


def _tutorials() -> list[Path]:
    order = {name: place for place, name in enumerate(_ORDER)}
    scripts = (DOCS / "tutorials").glob("[!_]*.py")
    return sorted(scripts, key=lambda path: (order.get(path.stem, len(order)), path.stem))


def _whole(path: Path) -> Callable[[], str]:
    folder = path.parent.relative_to(ROOT).as_posix()
    return lambda: site_links(path.read_text(), folder)


def makers() -> dict[str, Callable[[], str]]:
    """Return what makes each page, by its address."""
    found: dict[str, Callable[[], str]] = {
        "index.md": _whole(ROOT / "README.md"),
        "commands.md": commands_page,
        "python.md": python_page,
        "benchmarks.md": lambda: site_links(benchmarks_page(), "benchmarks/"),
        "changelog.md": _whole(ROOT / "CHANGELOG.md"),
        "contributing.md": _whole(ROOT / "CONTRIBUTING.md"),
        "mini.md": lambda: program_page(DOCS / "mini.py"),
    }
    for path in _tutorials():
        found[f"tutorials/{path.stem}.md"] = _tutorial(path)
    return found


def _tutorial(path: Path) -> Callable[[], str]:
    return lambda: site_links(tutorial_page(path), "docs/tutorials/", up="../")


def _tutorial_titles() -> list[dict[str, str]]:
    return [{title_of(p.read_text()): f"tutorials/{p.stem}.md"} for p in _tutorials()]


def on_config(config: Any) -> Any:
    """Put the tutorials into their slot of the navigation."""
    config.nav = [
        {"Tutorials": _tutorial_titles()} if part == {"Tutorials": "tutorials"} else part
        for part in config.nav
    ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Make the pages."""
    for address, make in makers().items():
        files.append(File.generated(config, address, content=make()))
    return files
