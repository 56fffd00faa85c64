"""Scripts as pages: the docstring and top-level comments are prose, the rest is code."""

from __future__ import annotations

import ast
import io
import tokenize
from itertools import groupby
from pathlib import Path

_FOR_TOOLS = ("#!", "# ruff:", "# type:", "# mypy:", "# noqa")


def title_of(source: str) -> str:
    """Return the first line of a script's docstring, without its full stop."""
    return (ast.get_docstring(ast.parse(source)) or "").split("\n")[0].rstrip(".")


def tutorial_page(path: Path) -> str:
    """Return a tutorial: prose and code in turn."""
    source = path.read_text()
    return "\n\n".join([_opening(source, path), *_parts(source)]) + "\n"


def program_page(path: Path) -> str:
    """Return a program that is read as a whole: its docstring, then one block of code."""
    source = path.read_text()
    code = "\n".join(source.splitlines()[_end_of_docstring(source) :]).strip("\n")
    return f"{_opening(source, path)}\n\n{_fenced(code)}\n"


def _opening(source: str, path: Path) -> str:
    _, *rest = (ast.get_docstring(ast.parse(source)) or "").split("\n")
    words = "\n".join(rest).strip()
    script = f"[This page as a script]({path.name})"
    return "\n\n".join(part for part in (f"# {title_of(source)}", words, script) if part)


def _parts(source: str) -> list[str]:
    lines, prose = source.splitlines(), _prose_lines(source)
    numbers = range(_end_of_docstring(source), len(lines))
    # a blank line belongs to what stands before it
    kinds, kind = {}, False
    for number in numbers:
        kind = number in prose if lines[number].strip() else kind
        kinds[number] = kind
    return [
        part
        for is_prose, group in groupby(numbers, key=kinds.__getitem__)
        if (part := _part([lines[number] for number in group], is_prose))
    ]


def _part(lines: list[str], is_prose: bool) -> str:
    if not is_prose:
        code = "\n".join(lines).strip("\n")
        return _fenced(code) if code else ""
    kept = [line for line in lines if not line.startswith(_FOR_TOOLS)]
    return "\n".join(line.removeprefix("#").removeprefix(" ") for line in kept).strip()


def _prose_lines(source: str) -> set[int]:
    """Return the lines, from 0, that hold a comment and nothing else, outside of any block."""
    found, depth = set(), 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.COMMENT and token.start[1] == 0 and depth == 0:
            found.add(token.start[0] - 1)
    return found


def _end_of_docstring(source: str) -> int:
    first = ast.parse(source).body[0]
    return (first.end_lineno or 0) if ast.get_docstring(ast.parse(source)) is not None else 0


def _fenced(code: str) -> str:
    return f"````py\n{code}\n````"
