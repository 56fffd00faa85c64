"""What it costs a device to run the layers of a network, forward and backward, and to update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from paceline.clusters._cluster import Device, Kernel
from paceline.clusters._spans import FloatArray
from paceline.errors import InvalidInputError

# bytes that one update moves for every byte of weights: gradients and weights are read, weights
# written; every state of the optimizer is read and written too
_UPDATE_TRAFFIC = {"sgd": 3.0, "momentum": 5.0, "adam": 7.0, "adamw": 7.0}
_SORT_OF = {"conv3d": "conv"}  # for devices that have no figures of their own for it
_BACKWARD_TRAFFIC = 2.0  # a gradient of the input and one of the weights


def kernel_time(
    device: Device,
    flop: ArrayLike = 0.0,
    n_bytes: ArrayLike = 0.0,
    *,
    kind: str | Sequence[str] = "default",
    input_bytes: ArrayLike = 0.0,
    output_bytes: ArrayLike = 0.0,
    weight_bytes: ArrayLike = 0.0,
    samples: ArrayLike = 1.0,
    precision: str = "float32",
    backward: bool = False,
) -> FloatArray:
    """Return seconds of one pass of a layer.

    A calibrated device has its own line for every kind of layer and pass (`Kernel`), which is
    used unless `n_bytes` says that nobody knows which bytes they are. Otherwise a roofline:
    ``launch + max(flop / (peak e), bytes / (bandwidth e_m))`` with the efficiency ``e`` of the
    kind times ``flop / (flop + half_flop)``.

    Parameters
    ----------
    device
        What computes.
    flop
        Work of this pass, of all samples together.
    n_bytes
        Bytes that are moved besides those named below, or instead of them.
    kind
        Of the layer, ``conv``, ``linear`` …; a sequence for layers along the last axis.
    input_bytes, output_bytes, weight_bytes
        What the layer reads and writes going forward, of all samples together; backward, the
        same figures are meant, and the factor is applied here.
    samples
        How many of them there are.
    precision
        One of the device's.
    backward
        Which pass.

    Raises
    ------
    InvalidInputError
        When the device has no peak in that precision.
    """
    rate = _peak(device, precision)
    kinds = [kind] if isinstance(kind, str) else list(kind)
    figures = [np.asarray(x, float) for x in (flop, input_bytes, output_bytes, weight_bytes)]
    lines = [_line(device, name, backward) for name in kinds]
    moved = sum(figures[1:], np.asarray(n_bytes, float))
    times = _roofline(device, kinds, rate, (figures[0], moved), backward)
    if not np.any(n_bytes) and any(line is not None for line in lines):
        known = np.array([line is not None for line in lines])
        again = np.asarray(samples, float) * figures[-1]
        times = np.where(known, _linear(device, lines, rate, [*figures, again]), times)
    scalar = isinstance(kind, str) and not moved.ndim and not figures[0].ndim
    return times[..., 0] if scalar else times


def update_time(device: Device, weight_bytes: ArrayLike, *, optimizer: str = "adam") -> FloatArray:
    """Return seconds that an optimizer takes for the weights of a layer.

    Parameters
    ----------
    device
        What computes.
    weight_bytes
        Of one layer, or of each layer of an array; a layer without weights costs nothing.
    optimizer
        ``sgd``, ``momentum``, ``adam`` or ``adamw``.
    """
    if optimizer not in _UPDATE_TRAFFIC:
        raise InvalidInputError(
            f"`optimizer` must be one of {', '.join(_UPDATE_TRAFFIC)}, but got {optimizer!r}."
        )
    weights = np.asarray(weight_bytes, float)
    line = device.kernels.get(f"update_{optimizer}")
    if line is None:
        bandwidth = device.memory_bandwidth * device.memory_efficiency
        times = device.launch_s + weights * _UPDATE_TRAFFIC[optimizer] / bandwidth
    else:
        times = line.launch_s + weights * line.s_per_weight_byte
    return np.where(weights > 0, times, 0.0)


def around_time(device: Device, exchange: str, n_bytes: ArrayLike) -> FloatArray:
    """Return seconds that a device works around an exchange, where a calibration measured them.

    Copies into and out of messages, and the books that libraries keep.

    Parameters
    ----------
    device
        What computes.
    exchange
        ``divided_``, ``sharded_`` or ``piped_`` and a collective: between the parts of a layer,
        of weights and gradients that replicas share out, or a message to the next stage of a
        pipeline and one back.
    n_bytes
        Of the tensor that is made up; none costs nothing.
    """
    line = device.kernels.get(exchange, Kernel())
    sizes = np.asarray(n_bytes, float)
    return np.where(sizes > 0, line.launch_s + sizes * line.s_per_output_byte, 0.0)


def _peak(device: Device, precision: str) -> float:
    if precision not in device.peak_flops:
        raise InvalidInputError(
            f"`precision` must be one that {device.name} has "
            f"({', '.join(device.peak_flops)}), but got {precision!r}."
        )
    return device.peak_flops[precision]


def _line(device: Device, kind: str, backward: bool) -> Kernel | None:
    """Return the calibrated line of a kind, or of the one that it is a sort of."""
    ending = "_backward" if backward else ""
    own = device.kernels.get(f"{kind}{ending}")
    return own or device.kernels.get(f"{_SORT_OF.get(kind, kind)}{ending}")


def _efficiency(device: Device, kind: str) -> float:
    named = device.efficiency.get(kind, device.efficiency.get(_SORT_OF.get(kind, kind)))
    return device.efficiency.get("default", 0.5) if named is None else named


def _roofline(
    device: Device,
    kinds: list[str],
    peak: float,
    figures: tuple[FloatArray, FloatArray],
    backward: bool,
) -> FloatArray:
    rates = peak * np.array([_efficiency(device, kind) for kind in kinds])
    flop, moved = figures
    ramp = np.where(flop > 0, device.half_flop, 0.0)  # small kernels are slower than their work
    bandwidth = device.memory_bandwidth * device.memory_efficiency
    traffic = (_BACKWARD_TRAFFIC if backward else 1.0) * moved / bandwidth
    return device.launch_s + np.maximum((flop + ramp) / rates, traffic)


def _linear(
    device: Device, lines: Sequence[Kernel | None], peak: float, figures: list[FloatArray]
) -> FloatArray:
    """Return the calibrated lines; their rates are of float32, others scale with the peak."""
    known = [line or Kernel() for line in lines]
    scale = device.peak_flops.get("float32", peak) / peak
    columns = np.array([line.slopes for line in known], float).T
    columns[0] *= scale
    launch = np.array([line.launch_s for line in known], float)
    slopes = zip(columns, figures, strict=True)
    return launch + sum((slope * figure for slope, figure in slopes), np.zeros(()))
