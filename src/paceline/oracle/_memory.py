"""What the fullest device holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._block import Block
from paceline.oracle._overlap import BUCKET_BYTES
from paceline.oracle._passes import in_flight
from paceline.oracle.strategies.sharded import held_shares

Array = NDArray[np.float64]

PARTS = ("weights", "gradients", "state", "activations", "buffers")


def hold_memory(block: Block) -> dict[str, Array]:
    """Return the bytes of the fullest device of every row, by part.

    ``weights``, ``gradients`` and the optimizer's ``state`` by what replicas share out;
    ``activations`` kept for the backward pass, of all micro-batches in flight; ``buffers``: what
    is not learned, buckets of gradients, and the largest layer's gradients of activations.
    """
    parts = held_by_device(block)
    fullest = sum(parts.values()).argmax(axis=1)  # type: ignore[union-attr]
    rows = np.arange(len(block))
    return {name: part[rows, fullest] for name, part in parts.items()}


def held_by_device(block: Block) -> dict[str, Array]:
    """Return the bytes of every device of a row, by part."""
    kept = held_shares(block.table["shard"], block.replicas)
    weights = block.devices(block.sums(np.atleast_2d(block.parameter_bytes)))
    per_weight = block.numbers.state / block.numbers.weight
    return {
        "weights": weights * kept["weights"][:, None] + _gathered(block),
        "gradients": weights * kept["gradients"][:, None],
        "state": weights * per_weight * kept["state"][:, None],
        "activations": block.devices(_stored(block)) * in_flight(block),
        "buffers": _buffers(block, weights),
    }


def _stored(block: Block) -> Array:
    """Return what one micro-batch leaves behind in every piece."""
    columns, scale = block.columns, block.numbers.scale
    samples = block.samples[:, None]
    stored = block.sums(columns["stored_bytes"] * block.costs.shares.activation)
    again = block.table["recompute"][:, None].astype(bool)
    if not again.any():
        return stored * samples * scale
    return np.where(again, _recomputed(block), stored) * samples * scale


def _recomputed(block: Block) -> Array:
    """Return inputs of units, and the largest unit: one at a time is made again."""
    columns = block.columns
    starts = columns.unit_starts
    kept = columns["input_bytes"] * block.costs.shares.activation
    bounds = columns.stage_bounds(block.n_parts)
    inputs = np.add.reduceat(np.atleast_2d(kept)[:, starts], bounds[:-1], axis=1)
    by_unit = block.sums(
        columns["stored_bytes"] * block.costs.shares.activation, columns.unit_counts
    )
    largest = np.maximum.reduceat(by_unit, bounds[:-1], axis=1)
    rows = block.key if len(inputs) > 1 else np.zeros(len(block), dtype=int)
    found: Array = inputs[rows] + largest
    return found


def _gathered(block: Block) -> Array:
    """Weights of the unit at work, gathered from all replicas that share them out (ZeRO-3)."""
    sharded = block.table["shard"] == 3
    if not sharded.any():
        return np.zeros((1, 1))
    by_unit = block.sums(np.atleast_2d(block.parameter_bytes), block.columns.unit_counts)
    return np.where(sharded, by_unit.max(axis=1), 0.0)[:, None]


def _buffers(block: Block, weights: Array) -> Array:
    columns = block.columns
    constant = block.devices(block.sums(columns["buffer_bytes"][None, :]))
    at_work = (columns["input_bytes"] + columns["output_bytes"]) * block.costs.shares.activation
    largest = at_work.max(axis=1)
    rows = block.key if len(largest) > 1 else np.zeros(len(block), dtype=int)
    moving = (largest[rows] * block.samples * block.numbers.scale)[:, None]
    # DistributedDataParallel keeps gradients in buckets besides; others one bucket at a time
    sends = (block.replicas > 1)[:, None]
    whole = sends & (block.table["shard"] == 0)[:, None]
    buckets = np.where(whole, weights, np.where(sends, np.minimum(weights, BUCKET_BYTES), 0.0))
    found: Array = constant + moving + buckets
    return found
