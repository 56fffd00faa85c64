"""A few facts as a small HTML table, as notebooks show them."""

from __future__ import annotations

import html
from collections.abc import Mapping


def html_card(title: str, facts: Mapping[str, str], *, text: str = "") -> str:
    """Return a title, facts beside their names and a text as it is, all escaped.

    Examples
    --------
    >>> html_card("Dataset", {"rows": "<3>"})
    '<div><b>Dataset</b><table><tr><th>rows</th><td>&lt;3&gt;</td></tr></table></div>'
    """
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in facts.items()
    )
    listing = f"<pre>{html.escape(text)}</pre>" if text else ""
    return f"<div><b>{html.escape(title)}</b><table>{rows}</table>{listing}</div>"
