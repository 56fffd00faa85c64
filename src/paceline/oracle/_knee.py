"""Where more devices stop paying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from paceline.errors import InvalidInputError
from paceline.oracle._survey import Survey

LEAST_GAIN = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The number of devices beyond which a further doubling gains too little.

    Parameters
    ----------
    n_devices
        The largest number that still pays.
    is_reached
        False when every doubling that was looked at still pays.
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
    gains = (rate[1:] / rate[:-1]) ** (1 / np.log2(n[1:] / n[:-1])) - 1
    short = np.flatnonzero(gains < least_gain)
    at = int(short[0]) if len(short) else len(n) - 1
    return Knee(
        n_devices=int(n[at]),
        is_reached=bool(len(short)),
        gain=float(gains[at]) if len(short) else float("nan"),
        least_gain=least_gain,
    )


def knees(found: Survey, *, least_gain: float = LEAST_GAIN) -> dict[str, Knee]:
    """Return the knee of every strategy that fits somewhere, and of the ``best`` of all."""
    rate = found.result.global_batch / found.result.step_s
    rows_by_name = {"best": [found.best[n] for n in sorted(found.best)]}
    for row, name in enumerate(found.names):
        if found.result.fits[row] and name != "serial":
            rows_by_name.setdefault(name, []).append(row)
    return {
        name: knee([int(found.n_devices[r]) for r in rows], rate[rows], least_gain=least_gain)
        for name, rows in rows_by_name.items()
        if rows
    }
