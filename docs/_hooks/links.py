"""Pages that read well in the repository read well on the site too."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# files outside docs/ that are pages of the site
_PAGES = {
    "README.md": "index.md",
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"(`+)(.+?)\1")


def site_links(markdown: str, folder: str, *, up: str = "") -> str:
    """Return a page whose links between files lead to pages of the site.

    `folder` is where the page lies in the repository (``docs/``, or nothing), `up` the way from
    it to the root of the site. A link to a file that is no page becomes the words alone.
    """

    def moved(link: re.Match[str]) -> str:
        path = _resolve(folder, link[2])
        if not (target := _on_site(path)):
            return link[1] if (ROOT / path).exists() else link[0]  # the build refuses the latter
        return f"[{link[1]}]({up}{target}{link[3] or ''})"

    return _LINK.sub(moved, markdown)


def _resolve(folder: str, target: str) -> str:
    path = posixpath.normpath(posixpath.join(folder, target))
    return path.removeprefix("./")


def _on_site(path: str) -> str | None:
    """Return the page that shows a file of the repository, from the root of the site."""
    if path in _PAGES:
        return _PAGES[path]
    if not path.startswith("docs/"):
        return None
    inside = path.removeprefix("docs/")
    script = re.fullmatch(r"((tutorials/)?\w+)\.py", inside)
    return f"{script[1]}.md" if script else inside


def unescape_cells(markdown: str) -> str:
    r"""Return tables without ``\|`` in code, which Python-Markdown would show as it is."""
    lines = markdown.split("\n")
    return "\n".join(_unescape(line) if line.startswith("|") else line for line in lines)


def _unescape(row: str) -> str:
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mend links and tables of the pages that lie in docs/."""
    if page.file.generated_by is None:
        markdown = site_links(markdown, "docs/")
    return unescape_cells(markdown)
