"""What stands beside the code says what the code is."""

import re
from pathlib import Path

import pytest

import paceline

ROOT = Path(__file__).parents[1]


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[([\d.]+)\] - (Unreleased|\d{4}-\d\d-\d\d)$", text, re.M)
    assert versions[0][0] == paceline.__version__
    kinds = set(re.findall(r"^### (\w+)$", text, re.M))
    known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert "Added" in kinds and kinds <= known


def test_the_citation_is_of_this_version_and_names_its_sources() -> None:
    yaml = pytest.importorskip("yaml", reason="the file is YAML. Try: pip install pyyaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert (cited["title"], cited["version"]) == ("Paceline", paceline.__version__)
    references = cited["references"]
    assert references[0]["title"] == "Performance Modelling for Scalable Deep Learning"
    for reference in references:
        assert {"type", "title", "authors", "year", "notes"} <= set(reference)
        assert reference["type"] in ("thesis", "article", "conference-paper")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text()
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert targets and [t for t in targets if not (ROOT / t).exists()] == []


def test_contributing_names_only_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    known = set(re.findall(r"^([\w-]+):", makefile, re.M))
    named = set(re.findall(r"\bmake ([a-z][\w-]*)", (ROOT / "CONTRIBUTING.md").read_text()))
    assert {"check", "test", "test-new-user"} <= named <= known
