"""Names of parameters as words of Python."""

from __future__ import annotations

import keyword
import re


def identifiers(names: tuple[str, ...]) -> dict[str, str]:
    """Return a Python identifier for every name, all different.

    Examples
    --------
    >>> identifiers(("batch size", "batch-size", "class"))
    {'batch size': 'batch_size', 'batch-size': 'batch_size_', 'class': 'class_'}
    """
    found: dict[str, str] = {}
    reserved = {"math", "shared"}
    for name in names:
        word = re.sub(r"\W", "_", name)
        word = f"x_{word}" if not word or word[0].isdigit() or word.startswith("_") else word
        while (
            keyword.iskeyword(word)
            or word in reserved
            or word in found.values()
            or re.fullmatch(r"term_\d+", word)
        ):
            word += "_"
        found[name] = word
    return found
