"""Where more devices stop paying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InvalidInputError
from paceline.oracle._survey import Survey

Array = NDArray[np.float64]

LEAST_GAIN = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The number of devices beyond which more of them gain too little.

    Parameters
    ----------
    n_devices
        The largest number that still pays.
    is_reached
        False when that is the largest number looked at.
    gain
        What the next doubling would gain, as a share of the rate; NaN at the end.
    least_gain
        What was asked for.
    """

    n_devices: int
    is_reached: bool
    gain: float
    least_gain: float


def knee(
    n_devices: Sequence[int], samples_per_s: ArrayLike, *, least_gain: float = LEAST_GAIN
) -> Knee:
    """Return the number of devices beyond which doubling gains less than `least_gain`.

    A slow link between nodes makes a dip: one doubling may gain nothing, and the next ones much.
    So a number pays that gains enough for every doubling since the last one that paid.

    Parameters
    ----------
    n_devices
        Numbers of devices, rising.
    samples_per_s
        Rate with each; steps that are no doubling count in proportion.
    least_gain
        Share of the rate that a doubling must add.

    Examples
    --------
    >>> knee([1, 2, 4, 8], [100, 195, 300, 310]).n_devices
    4
    """
    if not 0 < least_gain < 1:
        raise InvalidInputError(f"`least_gain` must lie between 0 and 1, but got {least_gain!r}.")
    n, rate = np.asarray(n_devices, dtype=float), np.asarray(samples_per_s, dtype=float)
    if len(n) < 1 or len(n) != len(rate) or (np.diff(n) <= 0).any():
        raise InvalidInputError("`n_devices` must rise, with a rate for each.")
    at = 0
    while len(paying := np.flatnonzero(_gains(n, rate, at) >= least_gain)):
        at += 1 + int(paying[0])
    is_reached = at < len(n) - 1
    return Knee(
        n_devices=int(n[at]),
        is_reached=is_reached,
        gain=float(_gains(n, rate, at)[0]) if is_reached else float("nan"),
        least_gain=least_gain,
    )


def _gains(n: Array, rate: Array, at: int) -> Array:
    """Return what all larger numbers of devices gain over one of them, by doubling."""
    doublings = np.log2(n[at + 1 :] / n[at])
    return np.asarray((rate[at + 1 :] / rate[at]) ** (1 / doublings) - 1)


def knees(found: Survey, *, least_gain: float = LEAST_GAIN) -> dict[str, Knee]:
    """Return the knee of every strategy that fits somewhere, and of the ``best`` of all.

    All are followed from one device, where that was asked about and fits.
    """
    if len(set(found.n_devices.tolist())) < 2:
        raise InvalidInputError(
            "A knee must be sought among several numbers of devices, but got "
            f"{found.n_devices[0]} alone. Try: --devices 1..{max(2, found.n_devices[0])}"
        )
    rate = found.result.global_batch / found.result.step_s
    rows_by_name = {"best": [found.best[n] for n in sorted(found.best)]}
    alone = [row for row, name in enumerate(found.names) if name == "serial"]
    alone = [row for row in alone if found.result.fits[row]]
    for row, name in enumerate(found.names):
        if found.result.fits[row] and name != "serial":
            first = alone if found.n_devices[row] > 1 else []
            rows_by_name.setdefault(name, first.copy()).append(row)
    return {
        name: knee([int(found.n_devices[r]) for r in rows], rate[rows], least_gain=least_gain)
        for name, rows in rows_by_name.items()
        if rows
    }
