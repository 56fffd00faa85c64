"""What ParaDL's forms are given and give."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InvalidInputError
from paceline.workloads import LayerGraph

ITEM_BYTES = 4.0

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ParadlLayers:
    """What ParaDL knows of a network: one entry per layer, items of one sample.

    Parameters
    ----------
    inputs, outputs, weights
        Numbers of items: x, y and w of a layer.
    compute_s
        Seconds of forward and backward pass of one sample (FW + BW).
    split
        Which layers filter, channel and spatial parallelism divide; the others are repeated.
    halo
        Items that go to one neighbour when the width is divided.
    filters, channels, positions
        Upper limits of dividing a layer by each.
    update_s
        Seconds of the weight update of a step (WU); ParaDL's own figures have none.
    """

    inputs: Array
    outputs: Array
    weights: Array
    compute_s: Array
    split: NDArray[np.bool_]
    halo: Array
    filters: Array
    channels: Array
    positions: Array
    update_s: float = 0.0

    @classmethod
    def from_graph(cls, graph: LayerGraph, sample_s: float) -> ParadlLayers:
        """Return a layer graph as ParaDL sees it, a profiled total spread over it by FLOP.

        Parameters
        ----------
        graph
            Of any workload; its convolutions are what is divided.
        sample_s
            Seconds of forward and backward pass of one sample, all layers together.
        """
        flop = graph.column("forward_flop") + graph.column("backward_flop")
        split = np.array([layer.kind.startswith("conv") for layer in graph.layers])
        shapes = [(layer.input_shape, layer.kernel) for layer in graph.layers]
        return cls(
            inputs=graph.column("input_bytes") / ITEM_BYTES,
            outputs=graph.column("output_bytes") / ITEM_BYTES,
            weights=graph.column("n_parameters"),
            compute_s=sample_s * flop / flop.sum(),
            split=split,
            halo=np.array([_halo(shape, kernel) for shape, kernel in shapes]) * split,
            filters=graph.column("n_filters"),
            channels=graph.column("n_channels"),
            positions=np.array([float(np.prod(x.output_shape[1:])) for x in graph.layers]),
        )


def _halo(shape: tuple[int, ...], kernel: tuple[int, ...]) -> float:
    """C ((K - 1)/2) times the other axes: what a cut across the first axis leaves open."""
    if not kernel or len(shape) < 2:
        return 0.0
    return shape[0] * (kernel[0] - 1) // 2 * math.prod(shape[2:])


@dataclass(frozen=True, kw_only=True)
class ParadlRun:
    """What is run, on what links.

    Parameters
    ----------
    n_samples, global_batch
        D and B.
    n_devices
        p = `outer` x `inner`.
    inner
        Devices that share a replica in the hybrids (p2); their links are the inner ones.
    micro_batches
        S of a pipeline.
    latency_s, s_per_byte
        Of the links that all devices share, or between replicas in the hybrids.
    inner_latency_s, inner_s_per_byte
        Of the links within a replica.
    halo_latency_s, halo_s_per_byte, gather_s_per_byte
        Of the halo exchange and the all-gather behind it in ``data+spatial``, which in ParaDL go
        through the host.
    contention
        phi, on `s_per_byte` between replicas.
    """

    n_samples: int
    global_batch: int
    n_devices: int = 1
    inner: int = 1
    micro_batches: int = 1
    latency_s: float = 0.0
    s_per_byte: float = 0.0
    inner_latency_s: float = 0.0
    inner_s_per_byte: float = 0.0
    halo_latency_s: float = 0.0
    halo_s_per_byte: float = 0.0
    gather_s_per_byte: float = 0.0
    contention: float = 1.0

    def __post_init__(self) -> None:
        if self.n_devices % self.inner:
            raise InvalidInputError(
                f"`inner` must divide `n_devices`, but got {self.inner} and {self.n_devices}."
            )

    @property
    def n_steps(self) -> int:
        """Number of steps of an epoch, D/B rounded up."""
        return math.ceil(self.n_samples / self.global_batch)

    @property
    def outer(self) -> int:
        """Number of replicas in the hybrids (p1)."""
        return self.n_devices // self.inner


@dataclass(frozen=True, slots=True, kw_only=True)
class ParadlCosts:
    """Seconds of an epoch and bytes of a device, and how many devices the strategy may have."""

    compute_s: float
    communication_s: float
    memory_bytes: float
    max_devices: float

    @property
    def total_s(self) -> float:
        """Both together: ParaDL overlaps nothing."""
        return self.compute_s + self.communication_s
