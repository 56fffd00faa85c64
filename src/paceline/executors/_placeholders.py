"""Fill ``{name}`` in a command line from the values of a trial."""

from __future__ import annotations

import math
import shlex
import string
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.errors import InvalidInputError, UnknownNameError


def split_command(template: str | Sequence[str]) -> tuple[str, ...]:
    """Split a command line as a shell does, before values come in: they may hold spaces."""
    try:
        words = shlex.split(template) if isinstance(template, str) else list(template)
    except ValueError as error:
        raise InvalidInputError(
            f"The command must be a complete shell line, but {template!r} is not: {error}."
        ) from error
    if not words or not words[0]:
        raise InvalidInputError(f"The command must hold a program, but got {template!r}.")
    return tuple(words)


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Replace every ``{name}`` by the trial's value; ``{{`` and ``}}`` stand for braces.

    A format may follow (``{learning_rate:.3g}``). Whole numbers are written without a point,
    as command lines that count things expect.

    Examples
    --------
    >>> fill("--batch={global_batch}", {"global_batch": 64.0})
    '--batch=64'
    """
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InvalidInputError(
            f"Braces must stand in pairs, but got {template!r}: {error}. Write {{{{ for a brace."
        ) from error
    return "".join(text + _filled(name, form or "", values) for text, name, form, _ in parts)


def _filled(name: str | None, form: str, values: Mapping[str, Any]) -> str:
    if name is None:
        return ""
    if name not in values:
        raise UnknownNameError("parameter", name, values)
    value = values[name]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise InvalidInputError(f"`{name}` must have a value in this trial, but it is missing.")
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 and not form:
        value = int(value)
    try:
        return format(value, form)
    except ValueError as error:
        raise InvalidInputError(
            f"The format {form!r} must fit `{name}`, but got {value!r}: {error}."
        ) from error
