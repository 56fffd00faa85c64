"""What the columns of a table seem to be, for a person to agree or to change."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from paceline.dataset import Dataset, read_table
from paceline.errors import PacelineError

_TIMES = re.compile(r"time|second|duration|latency|elapsed|runtime|_s$|_ms$|_us$", re.I)
_UNITS = (
    (re.compile(r"(?<![a-z])ms$|milli", re.I), "ms"),
    (re.compile(r"_us$|micro", re.I), "us"),
)
_N_SAMPLES = 4


def guess_roles(
    path: Path, time: str | None = None, time_unit: str | None = None
) -> dict[str, Any]:
    """Return every column with its guessed part, and what was guessed why.

    Parameters
    ----------
    path
        A table.
    time
        Column of the time, where a person has said it.
    time_unit
        Its unit, likewise.
    """
    frame = read_table(path)
    time = time or _guess_time(frame)
    unit = time_unit or next((u for p, u in _UNITS if time and p.search(time)), "s")
    notes, error, dataset = [], "", None
    try:
        dataset = Dataset.from_frame(frame, time=time or "time_s", time_unit=unit)
        notes = list(dataset.notes)
    except PacelineError as problem:
        error = str(problem)
    return {
        "n_rows": len(frame),
        "time": time,
        "time_unit": unit,
        "columns": [_column(frame, str(name), time, dataset) for name in frame.columns],
        "notes": notes,
        "error": error,
    }


def _guess_time(frame: pd.DataFrame) -> str | None:
    names = [str(n) for n in frame.columns if pd.api.types.is_numeric_dtype(frame[n])]
    if "time_s" in names:
        return "time_s"
    return next((name for name in reversed(names) if _TIMES.search(name)), None)


def _column(
    frame: pd.DataFrame, name: str, time: str | None, dataset: Dataset | None
) -> dict[str, Any]:
    values = frame[name]
    shown = [_short(value) for value in values.dropna().unique()[:_N_SAMPLES].tolist()]
    return {
        "name": name,
        "part": _part(name, time, dataset),
        "is_numeric": bool(pd.api.types.is_numeric_dtype(values)),
        "n_values": int(values.nunique()),
        "examples": shown,
    }


def _short(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)[:24]


def _part(name: str, time: str | None, dataset: Dataset | None) -> str:
    if name == time:
        return "time"
    if dataset is None or name not in dataset.roles:
        return "ignore"
    if dataset.roles[name] == "extrinsic":
        return "extrinsic"
    return "category" if name in dataset.categorical else "intrinsic"
