"""Numbers of devices as people write them."""

from __future__ import annotations

import re
from typing import Any

import click

from paceline.errors import InvalidInputError

_RANGE = re.compile(r"(\d+)\.\.(\d+)(?:/(\d+))?")
_MOST = 2**20


class Devices(click.ParamType[list[int]]):
    """A range that doubles (``1..1024``), one with a step (``8..64/8``), or a list (``1,2,6``)."""

    name = "1..1024"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        """Return the numbers in order, each once."""
        if isinstance(value, list):
            return value
        found: set[int] = set()
        for part in str(value).split(","):
            found |= set(_expand(part.strip(), str(value)))
        return sorted(found)


def _expand(part: str, whole: str) -> list[int]:
    match = _RANGE.fullmatch(part)
    if match:
        low, high = int(match[1]), int(match[2])
        if 1 <= low <= high <= _MOST and match[3] != "0":
            return _run(low, high, int(match[3]) if match[3] else 0)
    elif part.isdigit() and 1 <= int(part) <= _MOST:
        return [int(part)]
    raise InvalidInputError(
        f"--devices must be positive numbers such as 8, 1,2,6, 1..1024 or 8..64/8, "
        f"but got {whole!r}."
    )


def _run(low: int, high: int, step: int) -> list[int]:
    """Return the numbers of a range: doubled without a step, the end always with it."""
    if step:
        return list(range(low, high + 1, step))
    found = []
    while low <= high:
        found.append(low)
        low *= 2
    return found
