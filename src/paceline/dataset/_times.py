"""The time of every row, in seconds, from a time or a throughput column."""

from __future__ import annotations

import numpy as np
import pandas as pd

from paceline.dataset._cells import Locate, Numbers, read_numbers
from paceline.dataset._options import TIME, ReadOptions
from paceline.dataset._throughput import throughput_factors
from paceline.dataset._time_names import unit_in
from paceline.errors import InvalidInputError
from paceline.units import seconds_per


def read_times(
    frame: pd.DataFrame, options: ReadOptions, locate: Locate
) -> tuple[Numbers, list[str]]:
    """Return the times in seconds, and notes on how they were made."""
    seconds, notes = _unit(options)
    if options.throughput is None:
        return _read_positive(frame, options.time, locate) * seconds, notes
    throughput = _read_positive(frame, options.throughput, locate)
    factors = throughput_factors([str(column) for column in frame.columns], options.throughput)
    work = np.ones(len(frame))
    for name in factors.above:
        work = work * _read_positive(frame, name, locate)
    for name in factors.below:
        work = work / _read_positive(frame, name, locate)
    note = f"The time of a step is {factors} / `{options.throughput}`."
    return work / throughput * seconds, [*factors.notes, note, *notes]


def _unit(options: ReadOptions) -> tuple[float, list[str]]:
    """Return the seconds of the unit that was given or that the name tells, with a note."""
    name = options.throughput or options.time
    if options.time_unit is not None:
        return seconds_per(options.time_unit), []
    if name == TIME:
        return 1.0, []
    unit = unit_in(name)
    word = unit.word if unit else "seconds"
    how = f"per {word.removesuffix('s')}" if options.throughput else f"in {word}"
    why = ", by its name" if unit else ": its name tells no unit; else give `--time-unit`"
    return unit.seconds if unit else 1.0, [f"`{name}` is taken {how}{why}."]


def _read_positive(frame: pd.DataFrame, name: str, locate: Locate) -> Numbers:
    values = read_numbers(frame[name], locate, is_parameter=False)
    bad = values <= 0
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInputError(
            f"`{name}` must be positive, but {locate(row)} has {values[row]:g}; "
            "leave the row out or correct it."
        )
    return values
