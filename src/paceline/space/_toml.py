"""A space as a TOML file that people can read and write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

SCHEMA = "paceline/space/1"


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


def _literal(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(item) for item in value)}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's; only DEL may stand bare in JSON and not in TOML.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
