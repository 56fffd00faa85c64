"""The parts of a step put together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import update_time
from paceline.oracle._block import Block
from paceline.oracle._compute import ComputeModel
from paceline.oracle._exchange import time_exchange
from paceline.oracle._memory import hold_memory
from paceline.oracle._passes import time_passes, time_schedule
from paceline.oracle._traffic import count_traffic
from paceline.oracle.strategies import Shares
from paceline.oracle.strategies.sharded import held_shares

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def step_figures(
    block: Block, model: ComputeModel, optimizer: str, scheme: str, global_batch: Integers
) -> dict[str, Array]:
    """Return the figures of every row: seconds that add up to the step, bytes, and efficiency.

    Stages of a pipeline and its replicas are placed so that the step is shorter.
    """
    found = _placed(block, model, optimizer, scheme, global_batch)
    other = block.placed_inside()
    if other is not None:
        rows, inner = other
        inside = _placed(inner, model, optimizer, scheme, global_batch[rows])
        better = inside["step_s"] < found["step_s"][rows]
        for name, values in inside.items():
            found[name][rows[better]] = values[better]
    return found | {f"{name}_bytes": part for name, part in hold_memory(block).items()}


def _placed(
    block: Block, model: ComputeModel, optimizer: str, scheme: str, global_batch: Integers
) -> dict[str, Array]:
    passes = time_passes(block, model)
    with_transfers, without = time_schedule(block, passes)
    exchanged = time_exchange(block, passes, scheme)
    forward, backward = (_mean(block, t) for t in (passes.forward_s, passes.backward_s))
    layerwise, halo = (
        _mean(block, sides[0] + sides[1]) for sides in (passes.layerwise_s, passes.halo_s)
    )
    update = _update(block, model, optimizer)
    found = {
        "forward_s": forward,
        "backward_s": backward,
        "update_s": update,
        "bubble_s": without - (forward + backward + layerwise + halo),
        "layerwise_s": layerwise,
        "halo_s": halo,
        "transfer_s": with_transfers - without,
        "gradient_s": exchanged.exposed_s,
    }
    # rounding must not turn a bubble of nothing into less than nothing
    found["bubble_s"] = np.where(found["bubble_s"] > 1e-12 * without, found["bubble_s"], 0.0)
    found["step_s"] = np.sum(list(found.values()), axis=0)
    found["stage_stride"] = block.strides["pipeline"].astype(float)
    found["gradient_total_s"] = exchanged.total_s
    found |= count_traffic(block, passes, scheme)
    alone = _alone(block, model, optimizer, global_batch)
    found["efficiency"] = alone / (block.table.n_devices * found["step_s"])
    return found


def _mean(block: Block, pieces: Array) -> Array:
    """Return what a device does on average in all micro-batches."""
    total = np.broadcast_to(pieces, (len(block), block.n_parts)).sum(axis=1)
    return np.asarray(block.micro_batches * total / block.n_stages)


def _update(block: Block, model: ComputeModel, optimizer: str) -> Array:
    """Return the optimizer's step of the device that it takes longest on.

    A share of the state takes that share of the time, but for what every tensor takes anyway.
    """
    weights = np.atleast_2d(block.parameter_bytes)
    least, all_ = (
        block.devices(block.sums(update_time(model.device, part, optimizer=optimizer)))
        for part in (weights * 1e-12, weights)
    )
    share = held_shares(block.table["shard"], block.replicas)["state"][:, None]
    return np.asarray((least + share * (all_ - least)).max(axis=1) * block.crowding[:, 0])


def _alone(block: Block, model: ComputeModel, optimizer: str, global_batch: Integers) -> Array:
    """Return the step of one device that has as many samples at a time as each has here.

    It holds all weights and updates them once, behind its last piece of the batch.
    """
    samples = np.maximum(global_batch / block.table.n_devices, 1.0)
    distinct_samples, which = np.unique(samples, return_inverse=True)
    whole = np.ones((1, len(block.columns)))
    shares = Shares(compute=whole, activation=whole, weight=whole)
    forward, backward = model.times(block.columns, distinct_samples, shares, block.numbers.scale)
    one = ((forward + backward) @ block.columns.counts)[which]
    weights = block.columns["n_parameters"] * block.numbers.weight
    update = update_time(model.device, weights, optimizer=optimizer) @ block.columns.counts
    crowding = float(block.cluster.crowding(1))
    return np.asarray((global_batch / samples * one + update) * crowding)
