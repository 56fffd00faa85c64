"""Formulas as MathML, which browsers typeset by themselves: no script, no font, no network."""

from __future__ import annotations

from html import escape
from typing import Any

from latex2mathml.converter import convert


def typeset(source: str, *_: Any, **__: Any) -> str:
    """Return a fenced block ``math`` as MathML; every line is a formula of its own."""
    lines = [line for line in source.splitlines() if line.strip()]
    blocks = "".join(convert(line, display="block") for line in lines)
    return f'<div class="formula" tabindex="0" title="{escape(source.strip())}">{blocks}</div>'


def on_config(config: Any) -> Any:
    """Give fenced blocks called ``math`` to `typeset`."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "math", "class": "formula", "format": typeset}]
    return config
