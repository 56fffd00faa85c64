"""From a table with a time column to the parts of a dataset."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset._aside import note_copies
from paceline.dataset._basis import TimeBasis
from paceline.dataset._cells import Locate, Numbers, plain_column, read_levels
from paceline.dataset._options import RESERVED, TIME, ReadOptions
from paceline.dataset._roles import Roles, assign_roles, guess_batch, note_unclear_batch
from paceline.dataset._thousands import join_thousands
from paceline.dataset._times import read_times
from paceline.errors import InvalidInputError


def frame_row(position: int) -> str:
    """Name a row of a table for people."""
    return f"row {position + 1}"


def read_frame(
    frame: pd.DataFrame, options: ReadOptions, locate: Locate = frame_row
) -> dict[str, Any]:
    """Return the fields of the dataset in a table.

    Parameters
    ----------
    frame
        One row per measured run.
    options
        Which column is what.
    locate
        Names a row for people, given its position.
    """
    _check_frame(frame)
    options.check_columns(map(str, frame.columns))
    frame, notes = join_thousands(frame, options.categorical)
    times, time_notes = read_times(frame, options, locate)
    found = assign_roles(frame, options, locate)
    basis, basis_notes = _basis(options, found)
    X = build_parameters(found.columns, len(frame))
    other = _other(frame, options, found, locate)
    notes += [*time_notes, *_note_aside(frame, options), *found.notes, *note_copies(X, times)]
    notes += [*basis_notes, *note_repeats(X)]
    return {
        "X": X,
        "y": build_times(times),
        "roles": found.roles,
        "kinds": found.kinds,
        "basis": basis,
        "other": other,
        "group": options.group,
        "notes": tuple(notes),
    }


def build_parameters(columns: dict[str, Any], n_rows: int) -> pd.DataFrame:
    """Return the table of parameters: floats, and texts as plain objects."""
    # Object columns on purpose: pandas' own text type changed between its versions 2 and 3.
    series = {name: pd.Series(values, dtype=values.dtype) for name, values in columns.items()}
    return pd.DataFrame(series, index=pd.RangeIndex(n_rows))


def build_times(times_s: Numbers) -> pd.Series[float]:
    """Return the times as the column that estimators are fitted to."""
    return pd.Series(times_s, name=TIME, dtype=np.float64)


def note_repeats(X: pd.DataFrame) -> list[str]:
    """Return a note when rows repeat a configuration."""
    n_repeats = int(X.duplicated().sum()) if X.shape[1] else len(X) - 1
    if n_repeats < 1:
        return []
    return [f"{n_repeats} {'row repeats' if n_repeats == 1 else 'rows repeat'} a configuration."]


def _check_frame(frame: pd.DataFrame) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise InvalidInputError(f"A table must be a DataFrame, but got {type(frame).__name__}.")
    odd = [column for column in frame.columns if not isinstance(column, str) or not column]
    if odd:
        raise InvalidInputError(f"Names of columns must be texts, but got {odd[0]!r}.")
    repeated = [name for name, n in Counter(frame.columns).items() if n > 1]
    if repeated:
        raise InvalidInputError(f"Names of columns must differ, but got {repeated[0]!r} twice.")
    if not len(frame):
        raise InvalidInputError("A table must have at least one row, but got none.")


def _basis(options: ReadOptions, found: Roles) -> tuple[TimeBasis, list[str]]:
    time_per = "step" if options.throughput else options.time_per
    if options.batch is not None:
        return TimeBasis(time_per=time_per, batch=options.batch), []
    # A constant batch is no parameter, yet it still says which batch is held.
    names = [*found.columns, *found.constant]
    batch, notes = guess_batch(names)
    if batch is None and time_per in (None, "step"):
        notes = note_unclear_batch(names, is_used=options.throughput is not None)
    return TimeBasis(time_per=time_per, batch=batch), notes


def _other(
    frame: pd.DataFrame, options: ReadOptions, found: Roles, locate: Locate
) -> pd.DataFrame:
    taken = (*found.columns, *RESERVED) + (() if options.throughput else (options.time,))
    columns = {str(c): plain_column(frame[c]) for c in frame.columns if c not in taken}
    if options.group is not None:
        read_levels(frame[options.group], locate, is_parameter=False)  # refuses rows without one
    series = {name: column.reset_index(drop=True) for name, column in columns.items()}
    return pd.DataFrame(series, index=pd.RangeIndex(len(frame)))


def _note_aside(frame: pd.DataFrame, options: ReadOptions) -> list[str]:
    notes = []
    if options.group is not None and options.group not in options.named:
        notes.append(f"`{options.group}` groups the rows and is not a parameter.")
    time = None if options.throughput else options.time
    for name in RESERVED:
        if name in frame.columns and name != time:
            notes.append(f"`{name}` is another time than the one asked for and was left out.")
    return notes
