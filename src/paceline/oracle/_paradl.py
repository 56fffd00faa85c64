"""ParaDL's table III as printed: computation, communication and memory of an epoch.

Kahira et al., An Oracle for Guiding Large-Scale Model/Hybrid Parallel Training of Convolutional
Neural Networks (HPDC 2021, arXiv 2104.09075), with its technical report and oracle
(github.com/TruongThaoNguyen/paraDL-analysis). The forms are kept for comparison; `sweep` has our
own. Letters as there: D samples, B global batch, p devices, S micro-batches, a and b latency and
seconds per byte, d bytes per item.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from paceline.errors import InfeasibleError, UnknownNameError
from paceline.oracle._paradl_nouns import ITEM_BYTES, ParadlCosts, ParadlLayers, ParadlRun


def paradl_epoch(
    strategy: str,
    layers: ParadlLayers,
    run: ParadlRun,
    stages: tuple[tuple[int, int], ...] | None = None,
) -> ParadlCosts:
    """Return what ParaDL's table III says of an epoch.

    Parameters
    ----------
    strategy
        ``serial``, ``data``, ``spatial``, ``layer`` (stages without a pipeline), ``pipeline``,
        ``filter``, ``channel``, ``data+filter`` or ``data+spatial``.
    layers, run
        What is trained, and how.
    stages
        Ranges of layers (first, behind last) of every device, for ``layer`` and ``pipeline``;
        ParaDL's greedy cut where not given.

    Raises
    ------
    InfeasibleError
        When more devices are asked for than the strategy can use.
    """
    if strategy not in FORMS:
        raise UnknownNameError("strategy of ParaDL", strategy, FORMS)
    if strategy in ("layer", "pipeline"):
        costs = FORMS[strategy](layers, run, stages or greedy_stages(layers, run.n_devices))
    else:
        costs = FORMS[strategy](layers, run)
    if run.n_devices > costs.max_devices:
        raise InfeasibleError(
            f"{strategy!r} can use at most {costs.max_devices:.0f} devices here, "
            f"but got {run.n_devices}."
        )
    return costs


def greedy_stages(layers: ParadlLayers, n_stages: int) -> tuple[tuple[int, int], ...]:
    """Cut layers as ParaDL's oracle does: close a stage once its load exceeds the mean."""
    target, edges, load = layers.compute_s.sum() / n_stages, [0], 0.0
    for i, seconds in enumerate(layers.compute_s):
        load += seconds
        left = len(layers.compute_s) - i - 1
        if len(edges) < n_stages and (load > target or left < n_stages - len(edges) + 1):
            edges.append(i + 1)
            load = 0.0
    edges.append(len(layers.compute_s))
    return tuple(pairwise(edges))


def _ring(n: int, latency_s: float, n_bytes: float, s_per_byte: float) -> float:
    """(n - 1) (a + m b / n): once round; an all-reduce is two of these."""
    return (n - 1) * (latency_s + n_bytes * s_per_byte / n)


def _memory(layers: ParadlLayers, batch: float, weights: float) -> float:
    """2 d (B (|x| + |y|) + |w|): values and gradients, buffers of both sides of a layer."""
    return float(2 * ITEM_BYTES * (batch * (layers.inputs + layers.outputs).sum() + weights))


def _serial(layers: ParadlLayers, run: ParadlRun) -> ParadlCosts:
    seconds = run.n_samples * layers.compute_s.sum() + run.n_steps * layers.update_s
    memory = _memory(layers, run.global_batch, layers.weights.sum())
    return ParadlCosts(compute_s=seconds, communication_s=0.0, memory_bytes=memory, max_devices=1)


def _data(layers: ParadlLayers, run: ParadlRun) -> ParadlCosts:
    w, p = layers.weights.sum(), run.n_devices
    gradient = 2 * _ring(p, run.latency_s, w * ITEM_BYTES, run.s_per_byte)
    return ParadlCosts(
        compute_s=math.ceil(run.n_samples / p) * layers.compute_s.sum()
        + run.n_steps * layers.update_s,
        communication_s=run.n_steps * gradient,
        memory_bytes=_memory(layers, run.global_batch / p, w),
        max_devices=run.global_batch,
    )


def _halo_s(layers: ParadlLayers, batch: float, latency_s: float, s_per_byte: float) -> float:
    """To both neighbours, forward and backward, in every divided layer with a wide kernel."""
    sizes = layers.halo[layers.halo > 0] * batch * ITEM_BYTES
    return float((4 * (latency_s + sizes * s_per_byte)).sum())


def _spatial(layers: ParadlLayers, run: ParadlRun) -> ParadlCosts:
    w, p = layers.weights.sum(), run.n_devices
    gradient = 2 * _ring(p, run.latency_s, w * ITEM_BYTES, run.s_per_byte)
    halo = _halo_s(layers, run.global_batch, run.latency_s, run.s_per_byte)
    return ParadlCosts(
        compute_s=run.n_samples / p * layers.compute_s.sum() + run.n_steps * layers.update_s,
        communication_s=run.n_steps * (gradient + halo),
        memory_bytes=_memory(layers, run.global_batch / p, w),
        max_devices=float(layers.positions[layers.split].min()),
    )


Stages = tuple[tuple[int, int], ...]


def _stage_memory(layers: ParadlLayers, run: ParadlRun, stages: Stages) -> float:
    items = run.global_batch * (layers.inputs + layers.outputs) + layers.weights
    return 2 * ITEM_BYTES * max(float(items[a:b].sum()) for a, b in stages)


def _layer(layers: ParadlLayers, run: ParadlRun, stages: Stages) -> ParadlCosts:
    sent = np.array([layers.outputs[b - 1] for _, b in stages[:-1]]) * run.global_batch
    moved = 2 * (run.latency_s + sent * ITEM_BYTES * run.s_per_byte).sum()
    return ParadlCosts(
        compute_s=_serial(layers, run).compute_s,
        communication_s=run.n_steps * float(moved),
        memory_bytes=_stage_memory(layers, run, stages),
        max_devices=len(layers.compute_s),
    )


def _pipeline(layers: ParadlLayers, run: ParadlRun, stages: Stages) -> ParadlCosts:
    """D (p + S - 1)/S (max FW + max BW); the update once a step, which is dimensionally right."""
    p, s = run.n_devices, run.micro_batches
    slowest = max(float(layers.compute_s[a:b].sum()) for a, b in stages)
    sent = np.array([layers.outputs[b - 1] for _, b in stages[:-1]]) * run.global_batch / s
    moved = (run.latency_s + sent * ITEM_BYTES * run.s_per_byte).max(initial=0.0)
    return ParadlCosts(
        compute_s=run.n_samples * (p + s - 1) / s * slowest + run.n_steps * layers.update_s / p,
        communication_s=2 * run.n_samples * (p + s - 2) / run.global_batch * float(moved),
        memory_bytes=_stage_memory(layers, run, stages),
        max_devices=len(layers.compute_s),
    )


def _divided(layers: ParadlLayers, p: int) -> float:
    """Seconds of a sample when the divided layers share out their work among p devices."""
    return float((layers.compute_s / np.where(layers.split, p, 1)).sum())


def _layer_wise_s(
    layers: ParadlLayers, batch: float, p: int, latency_s: float, s_per_byte: float
) -> float:
    """3 (p - 1) sum (a + B |y| d b / p): an all-gather forward, an all-reduce (two) backward."""
    split = layers.split.copy()
    split[-1] = False  # the last layer's output stays divided
    n_bytes = batch * layers.outputs[split].sum() * ITEM_BYTES
    return float(3 * (p - 1) * (latency_s * split.sum() + n_bytes * s_per_byte / p))


def _filter(layers: ParadlLayers, run: ParadlRun) -> ParadlCosts:
    p, batch = run.n_devices, run.global_batch
    moved = _layer_wise_s(layers, batch, p, run.latency_s, run.s_per_byte)
    kept = (layers.weights / np.where(layers.split, p, 1)).sum()
    return ParadlCosts(
        compute_s=run.n_steps * (batch * _divided(layers, p) + layers.update_s / p),
        communication_s=run.n_steps * moved,
        memory_bytes=_memory(layers, batch, kept),
        max_devices=float(layers.filters[layers.split].min()),
    )


def _channel(layers: ParadlLayers, run: ParadlRun) -> ParadlCosts:
    """As filter: the all-reduce is in the forward pass, the all-gather in the backward pass."""
    costs = _filter(layers, run)
    channels = layers.channels[layers.split][1:]  # the first layer has too few
    return ParadlCosts(
        compute_s=costs.compute_s,
        communication_s=costs.communication_s,
        memory_bytes=costs.memory_bytes,
        max_devices=float(channels.min()),
    )


def _data_filter(layers: ParadlLayers, run: ParadlRun) -> ParadlCosts:
    """Divide filters within a replica; between replicas all weights are exchanged (its code)."""
    batch, beta = run.global_batch / run.outer, run.s_per_byte * run.contention
    inside = _layer_wise_s(layers, batch, run.inner, run.inner_latency_s, run.inner_s_per_byte)
    gradient = 2 * _ring(run.outer, run.latency_s, layers.weights.sum() * ITEM_BYTES, beta)
    kept = (layers.weights / np.where(layers.split, run.inner, 1)).sum()
    return ParadlCosts(
        compute_s=run.n_steps
        * (batch * _divided(layers, run.inner) + layers.update_s / run.inner),
        communication_s=run.n_steps * (inside + gradient),
        memory_bytes=_memory(layers, batch, kept),
        max_devices=run.global_batch * float(layers.filters[layers.split].min()),
    )


def _data_spatial(layers: ParadlLayers, run: ParadlRun) -> ParadlCosts:
    """Divide the width within a replica, as its code has it.

    Four exchanges: halos, an all-gather behind the last divided layer, gradients within a replica
    and between leaders. Layers behind the last divided one are left out of the compute there.
    """
    batch, beta = run.global_batch / run.outer, run.s_per_byte * run.contention
    inner = (run.inner_latency_s, run.inner_s_per_byte)
    weight_bytes = layers.weights.sum() * ITEM_BYTES
    last = int(np.flatnonzero(layers.split)[-1])
    gathered = batch * layers.outputs[last] * ITEM_BYTES
    moved = (
        _halo_s(layers, batch, run.halo_latency_s, run.halo_s_per_byte)
        + 2 * _ring(run.inner, run.halo_latency_s, gathered, run.gather_s_per_byte)
        + 2 * _ring(run.inner, inner[0], weight_bytes, inner[1])  # within a replica
        + 2 * _ring(run.outer, run.latency_s, weight_bytes, beta)  # between leaders
    )
    shared = np.where(layers.split, run.inner, 1)
    items = ((layers.inputs + layers.outputs) / shared)[: last + 1].sum()
    return ParadlCosts(
        compute_s=run.n_samples / run.outer * float((layers.compute_s / shared)[: last + 1].sum()),
        communication_s=run.n_steps * moved,
        memory_bytes=2 * ITEM_BYTES * (batch * items + layers.weights.sum()),
        max_devices=run.global_batch * float(layers.positions[layers.split].min() ** 0.5),
    )


FORMS: dict[str, Callable[..., ParadlCosts]] = {
    "serial": _serial,
    "data": _data,
    "spatial": _spatial,
    "layer": _layer,
    "pipeline": _pipeline,
    "filter": _filter,
    "channel": _channel,
    "data+filter": _data_filter,
    "data+spatial": _data_spatial,
}
