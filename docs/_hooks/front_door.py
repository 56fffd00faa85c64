"""The front door of the package as a page, from its docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import paceline

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.M)
_SHOWN = ("Parameters", "Attributes", "Returns", "Raises")
_WIDTH = 90


def python_page() -> str:
    """Return the names of the front door: signature, purpose, parameters."""
    names = [name for name in paceline.__all__ if not name.startswith("_")]
    parts = [
        "# Python",
        "`import paceline` gives these names and loads nothing heavy before one is used. Each\n"
        "package (`paceline.oracle`, `paceline.planners` …) has more of its own, with docstrings\n"
        "like these.",
    ]
    for name in sorted(names, key=lambda n: (n[0].isupper(), n)):  # functions first
        parts += _name(name, getattr(paceline, name))
    return "\n\n".join(parts) + "\n"


def _name(name: str, thing: object) -> Iterator[str]:
    yield f"## `{name}`"
    words, *sections = _SECTION.split(inspect.getdoc(thing) or "")
    yield _markdown(words.strip())
    yield f"```py\n{_signature(name, thing)}\n```"
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        if title in _SHOWN:
            yield _table(title, text)


def _signature(name: str, thing: object) -> str:
    if not callable(thing):
        return name
    signature = inspect.signature(thing)
    if inspect.isclass(thing):
        signature = signature.replace(return_annotation=inspect.Signature.empty)
    shown = f"{name}{signature}"
    if len(shown) > _WIDTH:
        lines = "".join(f"    {parameter},\n" for parameter in _parameters(signature))
        shown = f"{name}(\n{lines}){_returned(signature)}"
    return shown.replace("'", "").replace("<factory>", "...")


def _returned(signature: inspect.Signature) -> str:
    kind = signature.return_annotation
    return "" if kind is signature.empty else f" -> {inspect.formatannotation(kind)}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    is_named_only = False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_named_only:
            is_named_only = True
            yield "*"
        yield str(parameter)


def _table(title: str, text: str) -> str:
    """Return a section of a docstring, entries and what is said of them, as a table."""
    rows, words = [], []
    for line in text.strip("\n").split("\n"):
        if line and not line.startswith(" "):
            rows.append((line, words := []))
        else:
            words.append(line.strip())
    cells = [f"| `{name}` | {_markdown(' '.join(words)).strip()} |" for name, words in rows]
    return "\n".join([f"| {title.lower()} | |", "|---|---|", *cells])


def _markdown(text: str) -> str:
    """Return words of a docstring as Markdown: its double backticks are single ones here."""
    return text.replace("``", "`").replace("|", "\\|")
