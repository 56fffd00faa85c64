"""Files that people write: read as text, parsed as TOML, their schema checked."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError, SchemaError


def read_text(path: Path, what: str) -> str:
    """Return the text of a file; `what` names its kind in errors, as ``"A space file"``."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"{what} must be readable, but {str(path)!r} is not: {error.strerror}."
        ) from error
    except UnicodeDecodeError as error:
        raise SchemaError(path, "must be a text file in UTF-8, but it is not.") from error


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the plain data of a TOML text; `origin` names the file in errors."""
    try:
        # A file saved on Windows may begin with a byte-order mark.
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(origin, f"must be valid TOML, but got: {error}.") from error


def check_schema(schema: object, expected: str, origin: object) -> None:
    """Refuse what is not of the expected kind, or of a newer one than this Paceline reads.

    Examples
    --------
    >>> check_schema("paceline/space/1", "paceline/space/1", "mine.toml")
    >>> check_schema("paceline/space/2", "paceline/space/1", "mine.toml")
    Traceback (most recent call last):
    paceline.errors.SchemaError: mine.toml: made by a newer Paceline: ...
    """
    kind, newest = expected.rsplit("/", 1)
    found, _, number = str(schema).rpartition("/")
    if not isinstance(schema, str) or found != kind or not number.isdecimal():
        raise SchemaError(origin, f'`schema` must be "{expected}", but got {schema!r}.')
    if int(number) > int(newest):
        raise SchemaError(
            origin,
            f"made by a newer Paceline: this one reads up to {expected!r}, but got {schema!r}.",
        )
