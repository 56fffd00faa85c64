"""Which columns are no parameters when roles are guessed, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd

from paceline.dataset._cells import (
    BLANK,
    Column,
    Numbers,
    count_missing,
    is_empty,
    is_numeric,
)
from paceline.dataset._outcome_names import is_outcome

# More levels than a few need rows to tell each of them, and a fit takes longer with every one:
# 100 levels in 1000 rows 16 s of one core, 200 levels 34 s.
_FEW_LEVELS = 30
_MOST_LEVELS = 200
_FEWEST_ROWS = 5

_ALMOST_ONE = 0.9999
_FEWEST_VALUES = 8


def reason_aside(column: Column) -> str | None:
    """Return why a column is set aside, as the rest of a sentence; None when it is kept."""
    if is_empty(column):
        return "is empty and was dropped"
    if is_numeric(column):
        if not is_outcome(str(column.name)):
            return None
        return (
            "is an outcome of the run by its name (a time, a rate or a utilisation) and was set "
            "aside; keep it by naming all parameters with `--intrinsic` and `--extrinsic`"
        )
    if is_date(column):
        return f"holds dates and was set aside; keep it with `--categorical {column.name}`"
    if is_identifier(column):
        return (
            f"has {column.nunique()} different texts, as an identifier has, and was set aside; "
            f"group by it with `--group {column.name}`, or keep it with `--categorical`"
        )
    n_missing = count_missing(column)
    if not n_missing or column.value_counts().median() > 1:
        return None
    return (
        f"holds remarks, in {len(column) - n_missing} of {len(column)} rows, and was set aside; "
        f"keep it with `--categorical {column.name}`"
    )


def is_date(column: Column) -> bool:
    """Whether a column of text says when rows were measured: 2026-05-01, perhaps with a time."""
    texts = column.dropna().astype(str).str.strip()
    return bool(texts.str.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?").all())


def is_identifier(column: Column) -> bool:
    """Whether a column of text names its rows rather than a choice between a few levels."""
    counts = column.value_counts()
    if len(counts) <= _FEW_LEVELS:
        return False
    return len(counts) > _MOST_LEVELS or float(counts.median()) < _FEWEST_ROWS


def note_blanks(name: str, column: Column) -> list[str]:
    """Return a note for a column of levels in which some cells are blank."""
    n_missing = count_missing(column)
    if not n_missing:
        return []
    what = f"has no value in {n_missing} of {len(column)} rows"
    return [f"`{name}` {what}, which is taken as a level of its own, {BLANK}."]


def note_copies(columns: pd.DataFrame, times_s: Numbers) -> list[str]:
    """Return a note for every column of numbers that is nearly a power of the time."""
    return [
        f"`{name}` follows the time almost exactly: if it was made from the time, leave it out by "
        "naming the parameters with `--intrinsic` and `--extrinsic`."
        for name in columns.select_dtypes("number")
        if _is_power_of(times_s, columns[name].to_numpy(dtype=np.float64))
    ]


def _is_power_of(times_s: Numbers, values: Numbers) -> bool:
    if not (values > 0).all() or min(map(_n_values, (values, times_s))) < _FEWEST_VALUES:
        return False
    correlation = np.corrcoef(np.log(values), np.log(times_s))[0, 1]
    return bool(abs(correlation) > _ALMOST_ONE)


def _n_values(values: Numbers) -> int:
    return len(np.unique(values))
