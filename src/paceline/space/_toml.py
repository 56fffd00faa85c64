"""A space as a TOML file that people can read and write."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from paceline.errors import SchemaError

SCHEMA = "paceline/space/1"

_SCHEMA_PATTERN = re.compile(r"paceline/space/(\d+)")


def format_toml(data: Mapping[str, Any]) -> str:
    """Return a space, given as plain data, as TOML text."""
    lines = [f"{key} = {_literal(data[key])}" for key in ("schema", "name", "source")]
    for parameter in data["parameters"]:
        lines += ["", "[[parameters]]"]
        lines += [
            f"{key} = {_literal(value)}"
            for key, value in parameter.items()
            if key != "unit" or value
        ]
    return "\n".join(lines) + "\n"


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """Return the plain data of a space; `origin` names the file in errors."""
    try:
        # A file saved on Windows may begin with a byte-order mark.
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(origin, f"must be valid TOML, but got: {error}.") from error


def check_schema(schema: object, origin: str) -> None:
    """Refuse what is not a space, or a space of a newer kind than this one."""
    match = _SCHEMA_PATTERN.fullmatch(schema) if isinstance(schema, str) else None
    if match is None:
        raise SchemaError(origin, f'`schema` must be "{SCHEMA}", but got {schema!r}.')
    if int(match[1]) > 1:
        raise SchemaError(
            origin,
            f"made by a newer Paceline: this one reads up to {SCHEMA!r}, but got {schema!r}.",
        )


def _literal(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's; only DEL may stand bare in JSON and not in TOML.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
