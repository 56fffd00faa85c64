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


# pages whose file may not be there; any other that is missing is an error
_OPTIONAL = {"mini.md", "changelog.md", "contributing.md"}


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
    }
    for name in ("changelog", "contributing"):
        if (path := ROOT / f"{name.upper()}.md").exists():
            found[f"{name}.md"] = _whole(path)
    if (mini := DOCS / "mini.py").exists():
        found["mini.md"] = lambda: program_page(mini)
    for path in _tutorials():
        found[f"tutorials/{path.stem}.md"] = _tutorial(path)
    return found


def _tutorial(path: Path) -> Callable[[], str]:
    return lambda: site_links(tutorial_page(path), "docs/tutorials/", up="../")


def _tutorial_titles() -> list[dict[str, str]]:
    return [{title_of(p.read_text()): f"tutorials/{p.stem}.md"} for p in _tutorials()]


def _placed(nav: Any, pages: set[str]) -> Any:
    """Return the navigation with the tutorials in their slot and without pages that are not."""
    if isinstance(nav, list):
        return [item for item in (_placed(item, pages) for item in nav) if item]
    (title, inside), *_ = nav.items()
    if inside == "tutorials":
        inside = _tutorial_titles()
    elif isinstance(inside, list):
        inside = _placed(inside, pages)
    elif inside in _OPTIONAL - pages:
        inside = None
    return {title: inside} if inside else None


def on_config(config: Any) -> Any:
    """Put what there is into the navigation."""
    config.nav = _placed(config.nav, set(makers()))
    return config


def on_files(files: Any, config: Any) -> Any:
    """Make the pages."""
    for address, make in makers().items():
        files.append(File.generated(config, address, content=make()))
    return files
