"""Numbers of devices as people write them, and how large numbers may be."""

from __future__ import annotations

import re
from typing import Any

import click

from paceline.errors import InvalidInputError

_RANGE = re.compile(r"(\d+)\.\.(\d+)(?:/(\d+))?")
MOST_DEVICES = 2**20
# of a step or an epoch: times as many devices, still a whole number that arrays hold
SAMPLES = click.IntRange(1, 2**40)


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
        _check_most(high, whole)
        if 1 <= low <= high and int(match[3] or 1) > 0:
            return _run(low, high, int(match[3] or 0))
    elif part.isdecimal() and int(part) >= 1:
        _check_most(int(part), whole)
        return [int(part)]
    raise InvalidInputError(
        f"--devices must be positive numbers such as 8, 1,2,6, 1..1024 or 8..64/8, "
        f"but got {whole!r}."
    )


def _check_most(n: int, whole: str) -> None:
    if n > MOST_DEVICES:
        raise InvalidInputError(
            f"--devices must be at most {MOST_DEVICES}, but got {whole!r}. Take fewer."
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
