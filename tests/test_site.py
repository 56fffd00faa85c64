"""The documents as a site: whole, linked, and readable without a network."""

import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

from paceline.clusters import load_cluster
from paceline.measurement import load_study
from paceline.space import load_space
from paceline.workloads import load_graph

ROOT = Path(__file__).parents[1]
HOOKS = ROOT / "docs" / "_hooks"
FETCHING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """What a page links to, what it fetches, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = {""}
        self.text = text
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if found.get("rel") != "canonical" and (address := found.get(FETCHING.get(tag, ""))):
            self.fetched.append(address)


def build_site(folder: Path) -> Path:
    """Build the site as `make docs` does, anywhere."""
    pytest.importorskip("material", reason="pip install 'paceline[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=variables)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


@pytest.fixture(scope="module")
def hooks() -> Iterator[Path]:
    sys.path.insert(0, str(HOOKS))
    yield HOOKS
    sys.path.remove(str(HOOKS))


@pytest.fixture(scope="module")
def scripts(hooks: Path) -> ModuleType:
    return importlib.import_module("scripts")


@pytest.fixture(scope="module")
def links(hooks: Path) -> ModuleType:
    return importlib.import_module("links")


def test_every_link_within_the_site_leads_to_a_place_that_is_there(
    pages: dict[Path, Page],
) -> None:
    for path, page in pages.items():
        for link in page.links:
            if path.name == "404.html" or re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            place = (path.parent / unquote(target)).resolve() if target else path
            assert place.exists(), f"{path.name} links to {link}"
            if place.suffix == ".html":
                assert unquote(anchor) in pages[place].anchors, f"{path.name} links to {link}"


def test_pages_fetch_nothing_from_elsewhere(pages: dict[Path, Page], site: Path) -> None:
    fetched = [address for page in pages.values() for address in page.fetched]
    assert fetched and not [a for a in fetched if re.match(r"(https?:)?//", a)]
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert not re.search(r"(@import|url\()[\"' ]*(https?:)?//", styles)


def test_every_document_is_a_page_in_the_navigation(pages: dict[Path, Page], site: Path) -> None:
    wanted = {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")}
    wanted |= {"commands.html", "python.html", "benchmarks.html", "index.html"}
    tutorials = (ROOT / "docs/tutorials").glob("[!_]*.py")
    wanted |= {f"tutorials/{path.stem}.html" for path in tutorials}
    found = {
        os.path.relpath((path.parent / address).resolve(), site)
        for path, page in pages.items()
        for entry in re.findall(r'<a [^>]*class="md-nav__link[^>]*', page.text)
        for address in re.findall(r'href="([^"#]+)', entry)
        if path.name != "404.html"
    }
    assert not wanted - found


def test_the_glossary_comes_first(site: Path) -> None:
    order = [m for m in re.findall(r'href="(\w[\w-]*\.html)"', (site / "index.html").read_text())]
    assert order.index("concepts.html") < order.index("quick-start.html")
    headings = re.findall(r"^#+ (.*)", (ROOT / "docs/concepts.md").read_text(), re.M)
    assert headings[:2] == ["Concepts", "Glossary"]


def test_the_reference_has_every_verb_and_option(pages: dict[Path, Page], site: Path) -> None:
    from paceline.cli._main import command

    page = pages[site / "commands.html"]
    for name in command.list_commands(None):
        assert f"paceline-{name}" in page.anchors
        for parameter in command.get_command(None, name).params:
            for option in parameter.opts:
                assert option in page.text or not option.startswith("--")


def test_the_benchmarks_show_what_was_recorded(pages: dict[Path, Page], site: Path) -> None:
    text = pages[site / "benchmarks.html"].text
    for path in (ROOT / "benchmarks/recorded").glob("*.json"):
        record = json.loads(path.read_text())
        if record["part"] == "planted":
            assert f"<td>{record['figures']['mean_ratio']:.3f}</td>" in text
        if record["part"] == "accuracy":
            for name, found in record["figures"]["sets"].items():
                assert f"<td>{name}</td>\n<td>{found['rows']}</td>" in text


def test_figures_without_a_table_of_their_own_are_shown_as_they_are(hooks: Path) -> None:
    figures = importlib.import_module("figures")
    record = {
        "part": "new",
        "date": "2026-11-16T01",
        "figures": {"a": {"b": 0.123456}, "c": [1, 2]},
    }
    shown = figures._section(record)
    assert "## Recorded: new, 2026-11-16" in shown
    assert "| a, b | 0.1235 |" in shown and "| c | 1, 2 |" in shown


def test_formulas_are_typeset_without_scripts(pages: dict[Path, Page], site: Path) -> None:
    n_formulas = len(re.findall("^```math", (ROOT / "docs/models.md").read_text(), re.M))
    assert n_formulas > 10
    assert pages[site / "models.html"].text.count("<math ") == n_formulas
    assert "mathjax" not in pages[site / "models.html"].text.lower()


SCRIPT = '''"""First steps.

What you will learn.
"""

# ruff: noqa
# ## Begin
# Some *words*.
#
# More.

x = [
# inside
1]


def f():
    # kept
    return """
# text
"""

# End.
'''

SHOWN = '''# First steps

What you will learn.

[This page as a script](first.py)

## Begin
Some *words*.

More.

````py
x = [
# inside
1]


def f():
    # kept
    return """
# text
"""
````

End.
'''


def test_a_script_becomes_prose_and_code_in_turn(scripts: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "first.py"
    path.write_text(SCRIPT)
    assert scripts.tutorial_page(path) == SHOWN


def test_a_program_stays_in_one_piece(scripts: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "whole.py"
    path.write_text('"""All of it."""\n\nx = 1\n\n# why\ny = 2\n')
    page = scripts.program_page(path)
    assert page.startswith("# All of it\n") and "x = 1\n\n# why\ny = 2\n````" in page


def test_links_of_the_repository_become_links_of_the_site(links: ModuleType) -> None:
    moved = links.site_links
    assert moved("[a](docs/oracle.md#knee)", "") == "[a](oracle.md#knee)"
    assert moved("[a](../benchmarks/README.md)", "docs/") == "[a](benchmarks.md)"
    assert moved("[a](tutorials/x.py) [b](mini.py)", "docs/") == "[a](tutorials/x.md) [b](mini.md)"
    assert moved("[a](../data.md)", "docs/tutorials/", up="../") == "[a](../data.md)"
    assert moved("[a](https://x.org/y.md) [b](#here)", "") == "[a](https://x.org/y.md) [b](#here)"
    assert moved("[the licence](LICENSE)", "") == "the licence"  # no page of the site
    assert moved("[lost](nowhere.txt)", "") == "[lost](nowhere.txt)"  # which the build refuses


def test_bars_in_code_are_shown_as_bars(links: ModuleType) -> None:
    table = "| `a\\|b` | c \\| d |\n`a\\|b`"
    assert links.unescape_cells(table) == "| `a|b` | c \\| d |\n`a\\|b`"


LOADERS = {
    "paceline/space/1": load_space,
    "paceline/study/1": load_study,
    "paceline/cluster/1": load_cluster,
    "paceline/graph/1": load_graph,
}


def test_the_files_in_the_documents_are_read(tmp_path: Path) -> None:
    found = set()
    for document in (ROOT / "docs").glob("*.md"):
        for block in re.findall(r"^```toml\n(.*?)^```", document.read_text(), re.M | re.S):
            schema = tomllib.loads(block).get("schema")
            if schema in LOADERS and "[module]" not in block:
                path = tmp_path / f"{document.stem}.toml"
                path.write_text(block)
                assert LOADERS[schema](path) is not None
                found.add((document.stem, schema))
    assert {schema for stem, schema in found if stem == "formats"} == set(LOADERS)


def test_every_schema_that_is_read_or_written_is_documented() -> None:
    page = (ROOT / "docs/formats.md").read_text()
    sources = "".join(path.read_text() for path in (ROOT / "src/paceline").rglob("*.py"))
    inner = {"environment", "oracle-facts", "validation"}  # files of ours that nobody writes
    kinds = set(re.findall(r'"paceline/([a-z-]+)/\d+"', sources)) - inner
    assert kinds and not {kind for kind in kinds if f"{kind}/1" not in page}
