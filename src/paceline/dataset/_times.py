"""The time of every row, in seconds, from a time or a throughput column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from paceline.dataset._cells import Locate, Numbers, read_numbers
from paceline.dataset._names import batch_of, counts_all_devices, counts_what, model_degree
from paceline.dataset._options import ReadOptions
from paceline.errors import InvalidInputError
from paceline.units import seconds_per


def read_times(
    frame: pd.DataFrame, options: ReadOptions, locate: Locate
) -> tuple[Numbers, list[str]]:
    """Return the times in seconds, and notes on how they were made."""
    seconds = seconds_per(options.time_unit)
    if options.throughput is None:
        return _read_positive(frame, options.time, locate) * seconds, []
    throughput = _read_positive(frame, options.throughput, locate)
    batch, formula = _global_batch(frame, options, locate)
    note = f"The time of a step is {formula} / `{options.throughput}`."
    return batch / throughput * seconds, [note]


def _read_positive(frame: pd.DataFrame, name: str, locate: Locate) -> Numbers:
    values = read_numbers(frame[name], locate, may_be_label=False)
    bad = values <= 0
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInputError(
            f"`{name}` must be positive, but {locate(row)} has {values[row]:g}; "
            "leave the row out or correct it."
        )
    return values


def _global_batch(
    frame: pd.DataFrame, options: ReadOptions, locate: Locate
) -> tuple[Numbers, str]:
    """Return the samples of one step over all devices, and the formula in words."""
    above, below = _batch_factors([str(column) for column in frame.columns], options)
    batch = np.ones(len(frame))
    for name in above:
        batch = batch * _read_positive(frame, name, locate)
    for name in below:
        batch = batch / _read_positive(frame, name, locate)
    formula = " × ".join(f"`{name}`" for name in above)
    return batch, " / ".join([formula, *(f"`{name}`" for name in below)])


def _batch_factors(names: Sequence[str], options: ReadOptions) -> tuple[list[str], list[str]]:
    """Return the columns to multiply and those to divide by."""
    above, below = global_batch_columns(names)
    if above:
        return above, below
    raise InvalidInputError(
        f"The throughput `{options.throughput}` needs a batch column to give a time: "
        f"`global_batch`, or `device_batch` and `n_devices`; but got {', '.join(names)}."
    )


def global_batch_columns(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns whose product over those others is the global batch; none if unknown."""
    whole = [name for name in names if batch_of(name) == "global_batch"]
    if whole:
        return whole[:1], []
    part = [name for name in names if batch_of(name) == "device_batch"]
    devices = [name for name in names if counts_all_devices(name)]
    if part and devices:
        accumulation = [name for name in names if counts_what(name) == "accumulation"]
        # Devices that share the same samples are one replica: they do not multiply the batch.
        shared = {model_degree(name): name for name in names if model_degree(name)}
        return [part[0], *accumulation[:1], devices[0]], list(shared.values())
    plain = [name for name in names if batch_of(name) == "unknown"]
    return plain[:1], []
