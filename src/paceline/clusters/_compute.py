"""What it costs a device to run one kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from paceline.clusters._cluster import Device
from paceline.clusters._spans import FloatArray
from paceline.errors import InvalidInputError


def kernel_time(
    device: Device,
    flop: ArrayLike,
    n_bytes: ArrayLike,
    *,
    kind: str = "default",
    precision: str = "float32",
) -> FloatArray:
    """Return seconds of a kernel: a roofline with a rate that small kernels do not reach.

    ``launch + max(flop / (peak e), bytes / (bandwidth e_m))``, where ``e`` is the efficiency of
    the kind times ``flop / (flop + half_flop)``.

    Parameters
    ----------
    device
        What computes.
    flop, n_bytes
        Work, and bytes read and written; arrays are broadcast.
    kind
        Of the layer: ``conv``, ``linear`` …; the device's ``default`` where it knows none.
    precision
        One of the device's.

    Raises
    ------
    InvalidInputError
        When the device has no peak in that precision.
    """
    if precision not in device.peak_flops:
        raise InvalidInputError(
            f"`precision` must be one that {device.name} has "
            f"({', '.join(device.peak_flops)}), but got {precision!r}."
        )
    share = device.efficiency.get(kind, device.efficiency.get("default", 0.5))
    rate = device.peak_flops[precision] * share
    arithmetic = (np.asarray(flop, float) + _ramp(device, flop)) / rate
    moved = np.asarray(n_bytes, float) / (device.memory_bandwidth * device.memory_efficiency)
    return device.launch_s + np.maximum(arithmetic, moved)


def _ramp(device: Device, flop: ArrayLike) -> FloatArray:
    """Return the FLOP by which small kernels seem larger than they are; none without work."""
    return np.where(np.asarray(flop) > 0, device.half_flop, 0.0)
