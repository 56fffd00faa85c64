"""Pipelines: layers are cut into stages, and micro-batches follow each other through them.

ParaDL (arXiv 2104.09075), table III, row "pipeline", bounds a step by the largest stage alone;
here it is the time of a flow shop with equal jobs, exact per pass: the sum over stages and
transfers plus (M - 1) times the largest of them. GPipe (arXiv 1811.06965) runs all forward passes
before the backward ones; 1F1B (PipeDream, arXiv 1806.03377) lets a stage hold no more
micro-batches than stages follow it, so that it waits for transfers to and fro; interleaved stages
(Megatron-LM, arXiv 2104.04473, section 2.2) divide the bubble by the pieces per device.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._columns import Columns
from paceline.oracle.strategies._base import Limit
from paceline.units import format_count

Array = NDArray[np.float64]

SUMMARY = "layers are cut into stages that micro-batches follow each other through"


def pipeline_limit(columns: Columns) -> Limit:
    """Bound: p <= G (table III, last column), G counting what may be cut apart."""
    n = len(columns.graph.units)
    words = f"{format_count(n, 'part')} that may be cut apart"
    return Limit(largest=n, reason=f"the network has {words}")


def gpipe_time(forward: Array, backward: Array, sent: Array, n: Array) -> Array:
    """Return the step of GPipe: per pass, sum_k t_k + (M - 1) max_k t_k, links as stages.

    Parameters
    ----------
    forward, backward
        Seconds of a micro-batch by scenario (rows) and stage (columns).
    sent
        Seconds of a transfer to the next stage, one column less.
    n
        Micro-batches, by scenario.
    """
    widest = sent.max(axis=1, initial=0.0)
    passes = [
        stage.sum(axis=1) + sent.sum(axis=1) + (n - 1) * np.maximum(stage.max(axis=1), widest)
        for stage in (forward, backward)
    ]
    return np.asarray(passes[0] + passes[1])


def one_forward_one_backward_time(forward: Array, backward: Array, sent: Array, n: Array) -> Array:
    """Return the step of 1F1B; parameters as `gpipe_time`.

    The longest of four kinds of paths through a stage k, each of which a step has to wait for,
    so that this is a lower bound: all passes of k, after the first micro-batch has come and
    before the last has gone back; one micro-batch to the end and back, then all backward passes
    of k and the forward passes that had to wait for them; rounds from k to the end and back, as
    many as k may not hold at once; and one link's transfers.
    """
    own, through = _paths(forward, backward, sent, n)
    return np.asarray(np.maximum(own.max(axis=1), through))


def early_end(forward: Array, backward: Array, sent: Array, n: Array) -> Array:
    """Return how much earlier than the way back from it says each stage of 1F1B is through.

    Where the passes of an early stage make the step, those behind it have been through for long.
    Parameters as `gpipe_time`.
    """
    own, through = _paths(forward, backward, sent, n)
    last = np.maximum.accumulate(own[:, ::-1], axis=1)[:, ::-1]  # of the stage and all behind it
    ends = np.maximum(last, through[:, None])
    return np.asarray(ends.max(axis=1, keepdims=True) - ends)


def _paths(forward: Array, backward: Array, sent: Array, n: Array) -> tuple[Array, Array]:
    """Return the first kind of path of every stage, and the longest that goes through all."""
    hop = np.pad(sent, ((0, 0), (0, 1)))  # behind every stage; none behind the last
    both, n = forward + backward, n[:, None]
    way = both + 2 * hop
    before = np.cumsum(way, axis=1) - way
    whole = way.sum(axis=1, keepdims=True)
    held = np.minimum(n, both.shape[1] - np.arange(both.shape[1]))
    rounds, rest = np.divmod(n - 1, held)
    through = (
        whole + (n - 1) * backward + (n - held) * forward,
        before + (rounds + 1) * (whole - before) + rest * np.maximum(forward, backward),
        whole + (n - 1) * hop,
    )
    return before + n * both, np.asarray(np.maximum.reduce(through).max(axis=1))


def interleaved_time(forward: Array, backward: Array, sent: Array, n: Array, v: int) -> Array:
    """Return the step of interleaved 1F1B with `v` pieces per device (2104.04473, section 2.2).

    Piece i is on device i mod S; the bubble is a v-th of that of 1F1B, but every micro-batch is
    handed over v times as often. Parameters as `gpipe_time`, columns being pieces.
    """
    pieces = forward + backward
    n_rows, n_pieces = pieces.shape
    device = pieces.reshape(n_rows, v, n_pieces // v).sum(axis=1)
    links = np.pad(2 * sent, ((0, 0), (0, 1))).reshape(n_rows, v, n_pieces // v).sum(axis=1)
    fill = (device.sum(axis=1) + links.sum(axis=1)) / v
    slowest, widest = device.max(axis=1), links.max(axis=1, initial=0.0)
    # links are all filled once where a device makes the step, and devices where a link does
    return np.asarray(fill + np.maximum(n * slowest - slowest / v, n * widest))
