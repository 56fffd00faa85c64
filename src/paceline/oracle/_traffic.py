"""Bytes that a step sends, as a counter of collectives sees them."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._block import Block
from paceline.oracle._exchange import exchanges_of, whole_replicas
from paceline.oracle._passes import Passes
from paceline.oracle.strategies import Exchange

Array = NDArray[np.float64]

COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "point_to_point",
    "parameter_server",
)


def count_traffic(block: Block, passes: Passes, scheme: str) -> dict[str, Array]:
    """Return payload bytes of a step by row, by cause and by collective.

    The payload of a collective is the tensor that it works on: the reduced or the gathered one.
    Of collectives, it is that of one device's calls (in a pipeline, of the stage with most
    weights for what replicas exchange, of the mean stage for what layers send); of transfers,
    that of the whole chain of stages, both ways.
    """
    layerwise = {
        name: block.micro_batches * block.sums(n_bytes).sum(axis=1) / block.n_stages
        for name, n_bytes in block.costs.sent_bytes.items()
    }
    exchanged = _exchanged(block, scheme)
    transfers = 2 * block.micro_batches * passes.sent_bytes.sum(axis=1)
    by_kind = {name: np.zeros(len(block)) for name in COLLECTIVES}
    for part in (layerwise, exchanged, {"point_to_point": transfers}):
        for name, n_bytes in part.items():
            by_kind[name] = by_kind[name] + n_bytes
    return {
        "exchange_payload_bytes": _total(block, exchanged),
        "layerwise_payload_bytes": _total(block, layerwise),
        "transfer_payload_bytes": transfers,
        **{f"{name}_bytes": n_bytes for name, n_bytes in by_kind.items()},
    }


def _total(block: Block, parts: dict[str, Array]) -> Array:
    return np.asarray(sum(parts.values(), np.zeros(len(block))))


def _exchanged(block: Block, scheme: str) -> dict[str, Array]:
    """Return what replicas exchange, by collective."""
    found: dict[str, Array] = {}
    shard, whole = block.table["shard"], whole_replicas(block)
    for code, is_whole in itertools.product(np.unique(shard), (False, True)):
        rows = (shard == code) & (whole == is_whole)
        if not rows.any():
            continue
        for exchange in exchanges_of(int(code), scheme, is_whole=is_whole):
            times = block.micro_batches if exchange.every_micro_batch else 1
            total = found.setdefault(exchange.collective, np.zeros(len(block)))
            total[rows] += (times * _payload(block, exchange))[rows]
    return found


def _payload(block: Block, exchange: Exchange) -> Array:
    """Return the bytes of one exchange; experts are exchanged among fewer, or none."""
    sizes = np.atleast_2d(block.parameter_bytes)
    if exchange.what == "buffers":
        sizes = block.columns["buffer_bytes"][None, :]
    own = block.columns.splits("expert")
    found = np.zeros(len(block))
    for mask, n in ((~own, block.replicas), (own, block.replicas // block.table["expert"])):
        if mask.any():
            held = block.devices(block.sums(np.where(mask, sizes, 0.0))).max(axis=1)
            found = found + held * (n > 1)
    return found
