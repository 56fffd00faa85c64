"""What the benchmarks have recorded, as a page."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def benchmarks_page() -> str:
    """Return the README of the benchmarks, its tables made anew from what was recorded."""
    tables, text = _tables(), (BENCHMARKS / "README.md").read_text()
    others = []
    for path in sorted((BENCHMARKS / "recorded").glob("*.json")):
        record = json.loads(path.read_text())
        if f"<!-- {record['part']} -->" in text:
            text = tables.put_into(text, record["part"], tables.table_of(record))
        else:
            others.append(_section(record))
    return "\n\n".join([text.rstrip(), *others]) + "\n"


def _tables() -> ModuleType:
    """Import the file that makes the tables of the README."""
    path = BENCHMARKS / "accuracy_table.py"
    spec = importlib.util.spec_from_file_location("paceline_benchmark_tables", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} must be a Python file.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _section(record: dict[str, Any]) -> str:
    """Return the figures of a part that the README has no table for."""
    when = f", {record['date'][:10]}" if "date" in record else ""
    rows = [f"| {name} | {_shown(value)} |" for name, value in _flat(record["figures"])]
    return "\n".join([f"## Recorded: {record['part']}{when}", "", "| | |", "|---|---|", *rows])


def _flat(figures: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(figures, dict):
        pairs = [(str(key), value) for key, value in figures.items()]
    elif isinstance(figures, list) and any(isinstance(value, dict | list) for value in figures):
        pairs = [(str(number), value) for number, value in enumerate(figures, start=1)]
    else:
        yield name, figures
        return
    for key, value in pairs:
        yield from _flat(value, f"{name}, {key}" if name else key)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
