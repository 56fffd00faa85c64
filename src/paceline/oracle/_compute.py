"""Time that layers compute for, by several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import Device, kernel_time
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle._columns import Columns
from paceline.oracle._paleo import paleo_layer_times
from paceline.oracle.strategies import Shares
from paceline.workloads import LayerGraph

Array = NDArray[np.float64]
Passes = tuple[Array, Array]  # forward and backward seconds, by scenario and distinct layer


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeModel:
    """Which model of compute, and on what.

    Parameters
    ----------
    device
        What computes.
    precision
        One of the device's.
    name
        ``roofline``, ``profiled`` or ``paleo``.
    sample_s
        For ``profiled``: measured seconds of one sample, forward and backward together.
    """

    device: Device
    precision: str = "float32"
    name: str = "roofline"
    sample_s: float | None = None

    def __post_init__(self) -> None:
        if self.name not in COMPUTE_MODELS:
            raise UnknownNameError("model of compute", self.name, COMPUTE_MODELS)
        if self.precision not in self.device.peak_flops:
            raise InvalidInputError(
                f"`precision` must be one that {self.device.name} has "
                f"({', '.join(self.device.peak_flops)}), but got {self.precision!r}."
            )
        if self.name == "profiled" and not (self.sample_s and self.sample_s > 0):
            raise InvalidInputError(
                f"`sample_s` must be positive for the model 'profiled', but got {self.sample_s!r}."
            )

    def times(self, columns: Columns, micro_batch: Array, shares: Shares, scale: float) -> Passes:
        """Return the seconds of every distinct layer by scenario.

        Parameters
        ----------
        columns
            The distinct layers.
        micro_batch
            Samples that go through at once, by scenario.
        shares
            What one device has of each layer.
        scale
            Bytes of a number by the four of a layer graph.
        """
        samples = micro_batch[:, None]
        return COMPUTE_MODELS[self.name](self, columns, samples, shares, scale)


def _roofline(
    model: ComputeModel, columns: Columns, samples: Array, shares: Shares, scale: float
) -> Passes:
    """Cost every layer by `kernel_time`; what does nothing costs nothing."""
    kinds = [layer.operation for layer in columns.layers]
    moved = samples * shares.activation * scale
    inputs, outputs = moved * columns["input_bytes"], moved * columns["output_bytes"]
    weights = columns["weight_bytes"] * shares.weight * scale
    work = samples * shares.compute
    idle = columns["forward_flop"] + columns["input_bytes"] + columns["output_bytes"] == 0

    def time(flop: Array, backward: bool) -> Array:
        seconds = kernel_time(
            model.device,
            kind=kinds,
            flop=work * flop,
            input_bytes=inputs,
            output_bytes=outputs,
            weight_bytes=weights,
            samples=samples,
            precision=model.precision,
            backward=backward,
        )
        return np.where(idle, 0.0, seconds)

    return time(columns["forward_flop"], False), time(columns["backward_flop"], True)


def _profiled(
    model: ComputeModel, columns: Columns, samples: Array, shares: Shares, scale: float
) -> Passes:
    """ParaDL (arXiv 2104.09075, section 5): a measured total, spread over layers by FLOP."""
    total = (columns["forward_flop"] + columns["backward_flop"]) @ columns.counts
    rate = (model.sample_s or 0.0) / max(float(total), 1.0)
    work = samples * shares.compute * rate
    return work * columns["forward_flop"], work * columns["backward_flop"]


def _paleo(
    model: ComputeModel, columns: Columns, samples: Array, shares: Shares, scale: float
) -> Passes:
    """Paleo (ICLR 2017): a layer's arithmetic and traffic are added; divided, it takes a share."""
    distinct = LayerGraph(name=columns.graph.name, layers=columns.layers)
    forward, backward, _ = paleo_layer_times(
        distinct, model.device, samples[:, 0], precision=model.precision
    )
    return forward * shares.compute, backward * shares.compute


Model = Callable[[ComputeModel, Columns, Array, Shares, float], Passes]

COMPUTE_MODELS: Mapping[str, Model] = {
    "roofline": _roofline,
    "profiled": _profiled,
    "paleo": _paleo,
}
