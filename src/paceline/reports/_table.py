"""Plain text tables."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows under a header; the first `left` columns to the left, others to the right.

    Examples
    --------
    >>> print(table(["form", "error"], [["generic", "4 %"], ["forest", "11 %"]]))
    form     error
    generic    4 %
    forest    11 %
    """
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return "\n".join(_line(row, widths, left) for row in cells)


def _line(row: Sequence[str], widths: Sequence[int], left: int) -> str:
    aligned = [
        cell.ljust(width) if i < left else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(aligned).rstrip()


def definitions(known: Mapping[str, str], width: int = 78) -> str:
    """Return names with what they are, wrapped beside them.

    Examples
    --------
    >>> print(definitions({"torch": "ready", "jax": "not installed"}))
    torch  ready
    jax    not installed
    """
    column = max((len(name) for name in known), default=0) + 2
    return "\n".join(
        textwrap.fill(
            text, width, initial_indent=name.ljust(column), subsequent_indent=" " * column
        )
        for name, text in known.items()
    )
