"""Pipelines whose stages cut the batch into micro-batches of different sizes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InvalidInputError

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def unequal_pass_time(
    sizes: ArrayLike,
    global_batch: int,
    *,
    fixed_s: ArrayLike,
    sample_s: ArrayLike,
    latency_s: ArrayLike = 0.0,
    transfer_sample_s: ArrayLike = 0.0,
) -> Array:
    """Return the time of one pass when every stage has micro-batches of its own size.

    REFERENCE 8, our reading of UMPIPE (2025): F(l,j) = max(F(l,j-1), C(l-1,need)) + t_l(b_l), a
    micro-batch needing all its samples from the stage before; C(l,j) = max(C(l,j-1), F(l,j)) +
    transfer. A step is a forward pass, a flush, and a backward pass with the stages reversed; the
    sizes of the two are independent. (Autograd ties a gradient's micro-batch to its forward
    pass: unequal passes can be simulated, not run by it.)

    Parameters
    ----------
    sizes
        Samples of a micro-batch in every stage, divisors of `global_batch`, along the last axis;
        axes before it are candidates, all worked out at once.
    global_batch
        Samples of one pass.
    fixed_s, sample_s
        Time of a micro-batch of b samples in stage l: fixed_s[l] + b * sample_s[l].
    latency_s, transfer_sample_s
        The same of the transfer to the next stage, one per edge or one number.

    Returns
    -------
    array of float
        Seconds, one for every candidate.

    Examples
    --------
    >>> float(unequal_pass_time([2, 2, 2], 8, fixed_s=[0, 0, 0], sample_s=[0.5, 0.5, 0.5]))
    6.0
    """
    cut = np.atleast_2d(np.asarray(sizes, dtype=np.int64))
    _check_sizes(cut, global_batch)
    n_stages = cut.shape[-1]
    fixed, sample = (np.broadcast_to(np.asarray(t, float), n_stages) for t in (fixed_s, sample_s))
    edges = [
        np.broadcast_to(np.asarray(t, float), n_stages - 1) for t in (latency_s, transfer_sample_s)
    ]
    flat = cut.reshape(-1, n_stages)
    came = np.zeros((len(flat), 1))
    for stage in range(n_stages):
        b = flat[:, stage]
        ready = _needed(came, b, flat[:, stage - 1] if stage else None, global_batch)
        done = _queue(ready, fixed[stage] + b * sample[stage])
        if stage < n_stages - 1:
            came = _queue(done, edges[0][stage] + b * edges[1][stage])
    last = global_batch // flat[:, -1] - 1
    return np.asarray(done[np.arange(len(flat)), last].reshape(np.shape(sizes)[:-1]))


def _needed(came: Array, b: Ints, before: Ints | None, batch: int) -> Array:
    """Return when the input of every micro-batch has come: that of its last sample."""
    n = batch // b
    j = np.minimum(np.arange(1, n.max() + 1), n[:, None])  # beyond its last: the last again
    if before is None:
        return np.zeros(j.shape)
    need = -(-j * b[:, None] // before[:, None]) - 1
    return np.take_along_axis(came, need, axis=1)


def _queue(ready: Array, each_s: Array) -> Array:
    """Return the ends of jobs that run one after the other: end_j = max(end_(j-1), ready_j) + t.

    Unrolled: j t plus the largest of ready_i - (i - 1) t over i <= j.
    """
    turn = np.arange(ready.shape[1]) * each_s[:, None]
    return np.asarray(np.maximum.accumulate(ready - turn, axis=1) + turn + each_s[:, None])


def _check_sizes(cut: Ints, batch: int) -> None:
    if cut.size == 0 or cut.min() < 1 or (batch % cut).any():
        wrong = next((int(b) for b in cut.flat if b < 1 or batch % b), None)
        raise InvalidInputError(
            f"Every micro-batch must be a divisor of `global_batch` {batch}, but got {wrong}."
        )
