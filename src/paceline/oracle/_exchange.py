"""What replicas exchange, and how much of it compute does not hide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import around_time
from paceline.oracle._block import Block
from paceline.oracle._keys import distinct
from paceline.oracle._layer_costs import collective_time, group_time
from paceline.oracle._overlap import assign_buckets, exposed_communication
from paceline.oracle._passes import Passes, earlier_ends
from paceline.oracle.strategies import Exchange
from paceline.oracle.strategies.data import data_exchanges
from paceline.oracle.strategies.sharded import EXCHANGES

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_WEIGHTS = ("filter", "channel", "tensor", "expert")  # degrees that divide weights


@dataclass(frozen=True, slots=True)
class Exchanged:
    """By row: what a step waits for, and what is sent in all.

    Parameters
    ----------
    exposed_s
        Not hidden by compute.
    total_s
        With what is hidden.
    """

    exposed_s: Array
    total_s: Array


def time_exchange(block: Block, passes: Passes, scheme: str) -> Exchanged:
    """Return the exchange among replicas of every row."""
    found = Exchanged(np.zeros(len(block)), np.zeros(len(block)))
    time_rows = _overlapped if block.n_parts == 1 else _drained
    for rows, exchanges in _alike(block, scheme):
        part = time_rows(block, passes, rows, exchanges)
        hides = block.cluster.can_overlap(block.table.n_devices[rows])
        found.exposed_s[rows] = np.where(hides, part.exposed_s, part.total_s)
        found.total_s[rows] = part.total_s
    return found


def _alike(block: Block, scheme: str) -> Iterator[tuple[Integers, Sequence[Exchange]]]:
    """Yield rows that hold the same weights and exchange them in the same way."""
    shared = np.flatnonzero(block.replicas > 1)
    if not len(shared):
        return
    table, whole = block.table, whole_replicas(block)
    groups = distinct([*(table[name][shared] for name in (*_WEIGHTS, "shard")), whole[shared]])
    for i, first in enumerate(groups.first):
        row = shared[first]
        exchanges = exchanges_of(int(table["shard"][row]), scheme, is_whole=bool(whole[row]))
        yield shared[groups.which == i], exchanges


def whole_replicas(block: Block) -> NDArray[np.bool_]:
    """Return which rows are replicas of the whole network, one to a device, by row."""
    found: NDArray[np.bool_] = block.table["data"] == block.table.n_devices
    return found


def exchanges_of(shard: int, scheme: str, *, is_whole: bool) -> Sequence[Exchange]:
    """Return what replicas exchange that share out so much.

    Only what wraps a whole network (DistributedDataParallel) broadcasts buffers.
    """
    found = EXCHANGES[shard] if shard else data_exchanges(scheme)
    return tuple(e for e in found if is_whole or e.what != "buffers")


def _overlapped(
    block: Block, passes: Passes, rows: Integers, exchanges: Sequence[Exchange]
) -> Exchanged:
    """Send in buckets while the only stage still computes (REFERENCE 9)."""
    alike = distinct([column[rows] for column in _matters(block)])
    pieces, rows = block.micro_batches[rows], rows[alike.first]
    shard = int(block.table["shard"][rows[0]])
    key = block.key[rows[0]]
    weights = block.parameter_bytes[key if len(block.parameter_bytes) > 1 else 0]
    found = Exchanged(np.zeros(len(pieces)), np.zeros(len(pieces)))
    for together in _by_time(exchanges):
        one = _least(block, rows, together, weights, _segments(block, weights, shard))
        times = pieces if together[0].every_micro_batch else 1
        found.exposed_s[:] += times * one.exposed_s[alike.which]
        found.total_s[:] += times * one.total_s[alike.which]
    return found


def _least(
    block: Block,
    rows: Integers,
    exchanges: Sequence[Exchange],
    weights: Array,
    ways: Sequence[Array],
) -> Exchanged:
    """Return the exchange in messages as one of some ways divides them, the least exposed."""
    best: Exchanged | None = None
    for segments in ways:
        cost = _costs(block, rows, exchanges, weights, segments)
        exposed = _exposed(_hiding(block, rows, exchanges[0], segments), cost)
        total = cost.sum(axis=1)
        if best is not None:
            total = np.where(exposed < best.exposed_s, total, best.total_s)
            exposed = np.minimum(exposed, best.exposed_s)
        best = Exchanged(exposed, total)
    assert best is not None  # there is always one way
    return best


def _segments(block: Block, weights: Array, shard: int) -> list[Array]:
    """Return ways to divide the layers into messages: distinct layers (rows) by message."""
    if shard >= 2:  # what is gathered and scattered is a block of the network, as FSDP does
        return [block.columns.unit_counts]
    if block.overlap == "best":
        whole = block.columns.counts[:, None]
        return [_buckets(block, weights), whole, _by_layer(block)]
    return [_buckets(block, weights)]


def _by_layer(block: Block) -> Array:
    which = block.columns.which
    found = np.zeros((len(block.columns), len(which)))
    found[which, np.arange(len(which))] = 1
    return found


def _matters(block: Block) -> tuple[NDArray[np.generic], ...]:
    """Return what an exchange of the same weights depends on, by row."""
    stride, again = block.strides["spatial"], block.table["recompute"]
    return block.key, block.replicas, stride, again, block.crowding[:, 0]


def _by_time(exchanges: Sequence[Exchange]) -> Iterator[list[Exchange]]:
    """Yield exchanges that share the time they may hide behind."""
    groups: dict[tuple[str, bool, bool], list[Exchange]] = {}
    for exchange in exchanges:
        key = (exchange.when, exchange.every_micro_batch, exchange.overlaps)
        groups.setdefault(key, []).append(exchange)
    yield from groups.values()


def _buckets(block: Block, weights: Array) -> Array:
    """Return distinct layers (rows) by bucket (columns), in the order of the forward pass."""
    which = block.columns.which
    bucket = assign_buckets(weights[which])
    found = np.zeros((len(block.columns), int(bucket.max()) + 1))
    np.add.at(found, (which, bucket.max() - bucket), 1)
    return found


def _costs(
    block: Block, rows: Integers, exchanges: Sequence[Exchange], weights: Array, segments: Array
) -> Array:
    """Return seconds by row and segment; experts have groups of their own."""
    columns, n, stride = block.columns, block.replicas[rows], block.strides["spatial"][rows]
    expert = block.table["expert"][rows]
    own = columns.splits("expert")
    seconds = np.zeros((len(rows), segments.shape[1]))
    for exchange in exchanges:
        sizes = _sizes(block, exchange, weights)
        for mask, degree in ((~own, 1), (own, expert)):
            messages = np.where(mask, sizes, 0.0) @ segments
            if exchange.what == "buffers":  # one call for all of them
                messages = np.where(np.arange(len(messages)) == 0, messages.sum(), 0.0)
            if not messages.any():
                continue
            members, apart = n // degree, stride * degree
            cost = group_time(block.cluster, exchange.collective, messages, members, apart)
            around = _around(block, exchange, messages, members * apart)
            seconds += np.where(messages > 0, cost + around, 0.0)
    return seconds


def _around(block: Block, exchange: Exchange, messages: Array, devices: Integers) -> Array:
    """Return what devices do around the exchange of a unit that replicas share out."""
    kind = f"sharded_{exchange.collective}"
    found: Array = around_time(block.cluster.device, kind, messages)
    return found * block.cluster.crowding(devices)[:, None]


def _sizes(block: Block, exchange: Exchange, weights: Array) -> Array:
    return block.columns["buffer_bytes"] if exchange.what == "buffers" else weights


def _hiding(block: Block, rows: Integers, exchange: Exchange, segments: Array) -> Array | None:
    """Return the seconds by row and segment that an exchange may hide behind."""
    if not exchange.overlaps or block.overlap == "none":
        return None
    keys = distinct([block.key[rows]])
    key, side = block.key[rows[keys.first]], int(exchange.when == "backward")
    costs = block.costs

    def summed(compute: Array, side: int) -> Array:
        waits = sum(_rows(costs.sent_s[name], key) for name in costs.sent_s if name[1] == side)
        crowding = block.crowding[rows]
        found = (_rows(compute, key) @ segments)[keys.which] * crowding
        return found + (waits @ segments)[keys.which] if np.ndim(waits) else found

    forward = summed(costs.forward_s, 0) if not side or _again(block, rows).any() else 0.0
    if not side:
        return np.asarray(forward)
    return summed(costs.backward_s, 1) + _again(block, rows) * forward


def _again(block: Block, rows: Integers) -> Integers:
    return block.table["recompute"][rows, None]


def _rows(figures: Array, key: Integers) -> Array:
    return figures[key] if len(figures) > 1 else figures


def _exposed(hidden_by: Array | None, cost: Array) -> Array:
    if hidden_by is None:
        return np.asarray(cost.sum(axis=1))
    backwards = cost[:, ::-1]  # it is asked for in the order of the backward pass
    found: Array = exposed_communication(
        hidden_by, np.ones_like(cost), lambda _: backwards, rule="layers"
    )
    return found


def _drained(
    block: Block, passes: Passes, rows: Integers, exchanges: Sequence[Exchange]
) -> Exchanged:
    """Exchange a stage's gradients when it is through; later stages are through earlier."""
    rows_alike = distinct([block.replicas[rows], block.strides["spatial"][rows]])
    chosen = rows[rows_alike.first]
    cost = np.zeros((len(chosen), block.n_stages))
    for exchange in exchanges:
        cost = cost + _stage_costs(block, chosen, exchange)
    cost = cost[rows_alike.which]
    backward = np.broadcast_to(passes.whole[1], passes.forward_s.shape)[rows]
    device = block.devices(backward) / block.virtual_stages
    behind = np.cumsum(device, axis=1) - device + earlier_ends(block, passes, rows)
    exposed = np.maximum((cost - behind).max(axis=1), 0.0)
    return Exchanged(exposed, cost.max(axis=1))


def _stage_costs(block: Block, rows: Integers, exchange: Exchange) -> Array:
    """Return seconds by row and stage."""
    n, stride = block.replicas[rows, None], block.strides["spatial"][rows, None]
    expert = block.table["expert"][rows, None]
    own = block.columns.splits("expert")
    key = block.key[rows[0]]
    weights = block.parameter_bytes[key if len(block.parameter_bytes) > 1 else 0]
    sizes = _sizes(block, exchange, weights)
    seconds = np.zeros((len(rows), block.n_stages))
    for mask, degree in ((~own, 1), (own, expert)):
        messages = block.devices((np.where(mask, sizes, 0.0) @ block.stage_counts)[None, :])
        if messages.any():
            cost = collective_time(
                block.cluster, exchange.collective, messages, n // degree, stride * degree
            )
            seconds = seconds + np.where(messages > 0, cost, 0.0)
    return seconds
