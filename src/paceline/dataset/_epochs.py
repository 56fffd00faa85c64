"""From the time of a step to that of an epoch or a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from paceline.dataset._basis import TimeBasis, TimePer
from paceline.dataset._cells import Numbers
from paceline.errors import InvalidInputError

if TYPE_CHECKING:
    from paceline.dataset._dataset import Dataset


def convert_time(dataset: Dataset, time_per: TimePer) -> Dataset:
    """Return the dataset with the time of an epoch or a sample instead of a step.

    An epoch takes ceil(n_samples / global_batch) steps: its last step counts whole. A sample
    takes 1 / global_batch of a step. The global batch is the column `global_batch`, or
    `device_batch` times `n_devices`.

    Raises
    ------
    InvalidInputError
        When the time is not that of a step, or the samples or the batch are not known.
    """
    if dataset.basis.time_per != "step":
        raise InvalidInputError(
            f"Only the time of a step can be converted, but got {dataset.basis} to be per "
            f"{time_per}."
        )
    if time_per == "epoch":
        n_samples = _column(dataset, "n_samples", "The samples of an epoch")
        factor = np.ceil(n_samples / _global_batch(dataset, time_per))
        how = "ceil(`n_samples` / global batch) steps"
    else:
        factor, how = 1 / _global_batch(dataset, time_per), "a step / global batch"
    times_s = dataset.times_s
    if times_s is not None:
        pairs = zip(times_s, factor.tolist(), strict=True)
        times_s = tuple(tuple(time_s * f for time_s in row) for row, f in pairs)
    return replace(
        dataset,
        y=dataset.y * factor,
        times_s=times_s,
        basis=TimeBasis(time_per=time_per, batch=dataset.basis.batch),
        notes=(*dataset.notes, f"The time is per {time_per}: {how}."),
    )


def _global_batch(dataset: Dataset, time_per: TimePer) -> Numbers:
    if _has(dataset, "global_batch"):
        return _column(dataset, "global_batch", "The global batch")
    what = f"The global batch, for a time per {time_per},"
    batch = _column(dataset, "device_batch", what)
    return batch * (_column(dataset, "n_devices", what) if _has(dataset, "n_devices") else 1.0)


def _has(dataset: Dataset, name: str) -> bool:
    return name in dataset.X or name in dataset.other


def _column(dataset: Dataset, name: str, what: str) -> Numbers:
    table = dataset.X if name in dataset.X else dataset.other
    try:
        values = np.asarray(table[name], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        values = np.full(len(dataset), np.nan)
    if not np.all(values > 0):
        raise InvalidInputError(
            f"{what} must be known in every row, but `{name}` is not a positive number in all of "
            "them. Keep the time per step."
        )
    return values
