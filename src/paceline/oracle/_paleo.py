"""Paleo's sum over layers and its exchanges of gradients.

Qi, Sparks, Talwalkar, Paleo: A Performance Model for Deep Neural Networks (ICLR 2017), from its
code (github.com/TalwalkarLab/paleo). PPP, the platform percent of peak, is one share for compute
and memory and another for communication. There is no latency, and nothing overlaps but where
`overlap` says so. cuDNN's choice of FFT algorithms is left out: every convolution is a product of
matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.clusters import Device
from paceline.errors import UnknownNameError
from paceline.workloads import LayerGraph

Array = NDArray[np.float64]


def paleo_layer_times(
    graph: LayerGraph,
    device: Device,
    device_batch: ArrayLike,
    *,
    share: float = 0.62,
    precision: str = "float32",
    overlap: bool = False,
) -> tuple[Array, Array, Array]:
    """Return seconds of forward pass, backward pass and update of every layer.

    T = R(parents) + C(op) + W(out): FLOP over the peak, and bytes read and written over the
    memory bandwidth, are added. The backward pass is one such operation for the gradient of the
    input and one for that of the weights; the update has 2 FLOP and 12 bytes per weight.

    Parameters
    ----------
    graph, device
        What runs on what.
    device_batch
        Samples of one step; an array adds leading axes.
    share
        PPP of compute and memory; 0.62 in Paleo's tests of layers.
    precision
        Of the device's peak.
    overlap
        Whether the larger of the two is taken instead of the sum (Paleo's lower bound).
    """
    peak, bandwidth = device.peak_flops[precision] * share, device.memory_bandwidth * share
    batch = np.asarray(device_batch, dtype=float)[..., None]
    moved = batch * (graph.column("input_bytes") + graph.column("output_bytes"))
    moved = moved + graph.column("weight_bytes")

    def times(flop: Array, n_bytes: Array) -> Array:
        compute_s, memory_s = flop / peak, n_bytes / bandwidth
        return np.maximum(compute_s, memory_s) if overlap else compute_s + memory_s

    weights = graph.column("n_parameters")
    n_gradients = 1 + (weights > 0)  # of the input, and of the weights where there are some
    return (
        times(batch * graph.column("forward_flop"), moved),
        times(batch * graph.column("backward_flop"), n_gradients * moved),
        times(2 * weights, 3 * graph.column("weight_bytes")),
    )


def paleo_exchange_time(
    scheme: str, n_bytes: ArrayLike, n_workers: ArrayLike, bandwidth: float, *, share: float = 1.0
) -> Array:
    """Return seconds to exchange gradients.

    Parameters
    ----------
    scheme
        ``one_to_all`` (a parameter server: 2 M (n - 1)), ``tree`` (2 ceil(log2 n) M),
        ``butterfly`` (ceil(log2 n) M) or ``mixing`` (butterfly mixing: M).
    n_bytes, n_workers
        M and n.
    bandwidth
        Bytes per second of a link.
    share
        PPP of communication.

    Examples
    --------
    >>> float(paleo_exchange_time("tree", 1e9, 5, 1e9))
    6.0
    """
    if scheme not in SCHEMES:
        raise UnknownNameError("exchange of Paleo", scheme, SCHEMES)
    n = np.asarray(n_workers, dtype=float)
    times = SCHEMES[scheme](n) * np.asarray(n_bytes, dtype=float) / (bandwidth * share)
    return np.asarray(np.where(n > 1, times, 0.0))


def _rounds(n: Array) -> Array:
    return np.ceil(np.log2(n))


SCHEMES: dict[str, Callable[[Array], Array]] = {
    "one_to_all": lambda n: 2 * (n - 1),
    "tree": lambda n: 2 * _rounds(n),
    "butterfly": _rounds,
    "mixing": np.ones_like,
}


def paleo_step_time(
    graph: LayerGraph,
    device: Device,
    n_workers: int,
    batch: int,
    bandwidth: float,
    *,
    scaling: str = "weak",
    scheme: str = "tree",
    share: float = 0.62,
    communication_share: float = 1.0,
    precision: str = "float32",
) -> float:
    """Return seconds of a data-parallel step: all layers, then the exchange.

    Parameters
    ----------
    graph, device, n_workers
        What runs on how many of what.
    batch
        Of one worker for ``weak`` scaling, of all for ``strong`` (each has its share, rounded up).
    bandwidth
        Bytes per second between workers.
    scaling, scheme
        As above and as `paleo_exchange_time`.
    share, communication_share
        PPP of compute and of communication.
    precision
        Of the device's peak.
    """
    if scaling not in ("weak", "strong"):
        raise UnknownNameError("scaling", scaling, ("weak", "strong"))
    own = batch if scaling == "weak" else math.ceil(batch / n_workers)
    parts = paleo_layer_times(graph, device, own, share=share, precision=precision)
    exchange = paleo_exchange_time(
        scheme, graph.total("weight_bytes"), n_workers, bandwidth, share=communication_share
    )
    return float(sum(part.sum() for part in parts) + exchange)


def paleo_hybrid_time(
    graph: LayerGraph,
    device: Device,
    n_workers: int,
    device_batch: int,
    bandwidth: float,
    *,
    share: float = 0.46,
    communication_share: float = 0.75,
    precision: str = "float32",
) -> float:
    """Return seconds of a step of One Weird Trick: data parallel until the first linear layer.

    The weights before it are exchanged by a tree; behind it the model is divided, each worker's
    samples pass one after the other (n times the n-th part), and the fetch of the others'
    activations, (n - 1) times, is counted once, since it is pipelined. PPP as in Paleo's script
    for AlexNet on K20.
    """
    n = n_workers
    linear = [i for i, layer in enumerate(graph.layers) if layer.kind == "linear"]
    cut = linear[0] if linear else len(graph)
    before = graph.column("weight_bytes")[:cut].sum()
    parts = paleo_layer_times(graph, device, device_batch, share=share, precision=precision)
    passes = sum(part[:cut].sum() for part in parts) + sum(
        n * (part[cut:].sum() / n) for part in parts[:2]
    )
    update = parts[2][cut:].sum() / n
    fetched = (n - 1) * device_batch * graph.column("input_bytes")[cut : cut + 1].sum()
    exchange = paleo_exchange_time("tree", before, n, bandwidth, share=communication_share)
    return float(passes + update + fetched / (bandwidth * communication_share) + exchange)
