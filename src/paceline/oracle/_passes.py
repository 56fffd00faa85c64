"""Time of the passes of all micro-batches through the stages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import around_time, update_time
from paceline.oracle._block import Block
from paceline.oracle._compute import ComputeModel
from paceline.oracle._keys import distinct
from paceline.oracle._layer_costs import collective_time
from paceline.oracle.strategies import HALO, LAYERWISE
from paceline.oracle.strategies.layerwise import sequential_time
from paceline.oracle.strategies.pipeline import (
    early_end,
    gpipe_time,
    interleaved_time,
    one_forward_one_backward_time,
)
from paceline.scenario import SCHEDULES

Array = NDArray[np.float64]

_ONE_BY_ONE = ("1f1b", "interleaved")  # one piece per device, those are the same


@dataclass(frozen=True, kw_only=True)
class Passes:
    """Seconds of one micro-batch by row and piece of the network.

    Parameters
    ----------
    forward_s, backward_s
        Compute; recomputation is part of the backward pass.
    layerwise_s, halo_s
        Messages that layers wait for, forward and backward.
    sent_s
        To the next piece, one column less.
    """

    forward_s: Array
    backward_s: Array
    layerwise_s: tuple[Array, Array]
    halo_s: tuple[Array, Array]
    sent_s: Array
    sent_bytes: Array

    @cached_property
    def whole(self) -> tuple[Array, Array]:
        """Compute and messages together, forward and backward."""
        forward = self.forward_s + self.layerwise_s[0] + self.halo_s[0]
        return forward, self.backward_s + self.layerwise_s[1] + self.halo_s[1]


def time_passes(block: Block, model: ComputeModel) -> Passes:
    """Return the seconds of one micro-batch in every piece."""
    again = block.table["recompute"][:, None].astype(float)  # the forward pass once more
    forward = block.sums(block.costs.forward_s) * block.crowding
    backward = block.sums(block.costs.backward_s) * block.crowding + again * forward
    backward = backward + _accumulated(block, model) * block.crowding
    sent_s, sent_bytes = _transfers(block)
    half = 0.5 * _around(block, sent_bytes) * block.crowding
    forward, backward = forward + half, backward + half
    return Passes(
        forward_s=forward,
        backward_s=backward,
        layerwise_s=_messages(block, LAYERWISE, again),
        halo_s=_messages(block, HALO, again),
        sent_s=sent_s,
        sent_bytes=sent_bytes,
    )


def _accumulated(block: Block, model: ComputeModel) -> Array:
    """Return what it takes to add the gradients of a micro-batch to those before it.

    As much is read and written as by plain gradient descent; the first has nothing before it.
    """
    if model.name != "roofline" or (block.micro_batches == 1).all():
        return np.zeros((1, 1))
    weights = np.atleast_2d(block.parameter_bytes)
    seconds = block.sums(update_time(model.device, weights, optimizer="sgd"))
    return np.asarray(seconds * (1.0 - 1.0 / block.micro_batches)[:, None])


def _messages(block: Block, cause: str, again: Array) -> tuple[Array, Array]:
    nothing = np.zeros((1, 1))
    forward, backward = (
        block.sums(block.costs.sent_s[cause, side])
        if (cause, side) in block.costs.sent_s
        else nothing
        for side in (0, 1)
    )
    return forward, backward + again * forward if again.any() else backward


def _transfers(block: Block) -> tuple[Array, Array]:
    """Return seconds and bytes of what is handed over behind every piece but the last."""
    if block.n_parts == 1:
        return np.zeros((len(block), 0)), np.zeros((len(block), 0))
    table, columns = block.table, block.columns
    ends = columns.unit_ends[columns.stage_bounds(block.n_parts)[1:-1] - 1]
    rows = distinct([block.key, block.strides["pipeline"], table["pipeline"]])
    places = np.broadcast_to(block.costs.places, (len(block.costs.samples), len(columns)))
    key = block.key[rows.first]
    n_bytes = columns["output_bytes"][ends] * places[key][:, ends] * block.numbers.scale
    n_bytes = n_bytes * block.costs.samples[key][:, None]
    seconds = collective_time(
        block.cluster,
        "point_to_point",
        n_bytes,
        table["pipeline"][rows.first, None],
        block.strides["pipeline"][rows.first, None],
    )
    return seconds[rows.which], n_bytes[rows.which]


def _around(block: Block, sent_bytes: Array) -> Array:
    """Return what a piece does around its messages to and from both neighbours, both passes."""
    if block.n_parts != block.n_stages * block.virtual_stages:
        return np.zeros((1, 1))  # units by themselves, whose stages are not known yet
    between = around_time(block.cluster.device, "piped_point_to_point", sent_bytes)
    return np.pad(between, ((0, 0), (0, 1))) + np.pad(between, ((0, 0), (1, 0)))


def time_schedule(block: Block, passes: Passes) -> tuple[Array, Array]:
    """Return the seconds of all micro-batches, with and without transfers."""
    forward, backward = (np.broadcast_to(t, passes.forward_s.shape) for t in passes.whole)
    still = np.zeros_like(passes.sent_s)
    if block.n_parts == 1:  # gradient accumulation: one piece after another
        alone = block.micro_batches * (forward[:, 0] + backward[:, 0])
        return alone, alone
    return (
        _by_schedule(block, forward, backward, passes.sent_s),
        _by_schedule(block, forward, backward, still),
    )


def _by_schedule(block: Block, forward: Array, backward: Array, sent: Array) -> Array:
    found = np.zeros(len(block))
    for code in np.unique(block.table["schedule"]):
        rows = block.table["schedule"] == code
        found[rows] = _scheduled(
            SCHEDULES[code],
            forward[rows],
            backward[rows],
            sent[rows],
            block.micro_batches[rows],
            block.virtual_stages,
        )
    return found


def _scheduled(
    name: str, forward: Array, backward: Array, sent: Array, n: NDArray[np.int64], virtual: int
) -> Array:
    count = n.astype(float)
    if name == "sequential":
        return sequential_time(forward, backward, sent, count)
    if name == "gpipe":
        return gpipe_time(forward, backward, sent, count)
    if name == "interleaved" and virtual > 1:
        return interleaved_time(forward, backward, sent, count, virtual)
    return one_forward_one_backward_time(forward, backward, sent, count)


def earlier_ends(block: Block, passes: Passes, rows: NDArray[np.int64]) -> Array:
    """Return by row and device how much earlier than the way back says it is through."""
    found = np.zeros((len(rows), block.n_stages))
    if block.virtual_stages == 1:
        schedule = block.table["schedule"][rows]
        here = np.isin(schedule, [SCHEDULES.index(name) for name in _ONE_BY_ONE])
        rows = rows[here]
        forward, backward = (np.broadcast_to(t, passes.forward_s.shape) for t in passes.whole)
        n = block.micro_batches[rows].astype(float)
        found[here] = early_end(forward[rows], backward[rows], passes.sent_s[rows], n)
    return found


def in_flight(block: Block) -> Array:
    """Return how many micro-batches each device holds activations of, by row and device.

    GPipe all of them; 1F1B one per stage that follows and its own (PipeDream); interleaved as
    Megatron-LM fills up (arXiv 2104.04473), counted in whole micro-batches of a device.
    """
    n, stages, virtual = block.micro_batches[:, None], block.n_stages, block.virtual_stages
    behind = stages - np.arange(stages)
    code = block.table["schedule"][:, None]
    warm = (2 * (behind - 1) + (virtual - 1) * stages + 1) / virtual
    found = np.select(
        [code == SCHEDULES.index(name) for name in ("gpipe", "sequential", "interleaved")],
        [n * np.ones(stages), np.ones((len(block), stages)), np.minimum(n, warm)],
        np.minimum(n, behind),
    )
    return found if block.n_parts > 1 else np.ones((len(block), 1))
