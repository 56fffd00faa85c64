"""Closed forms of a pipeline's time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InvalidInputError, UnknownNameError

Array = NDArray[np.float64]


def pipeline_time(
    forward_s: ArrayLike,
    backward_s: ArrayLike,
    n_micro_batches: ArrayLike,
    *,
    form: str = "exact",
    virtual_stages: ArrayLike = 1,
) -> Array:
    """Return the time of a step of a pipeline without communication.

    Parameters
    ----------
    forward_s, backward_s
        Seconds of one micro-batch in every stage, along the last axis; axes before it are
        scenarios.
    n_micro_batches, virtual_stages
        One number, or one for every scenario.
    form
        ``exact``: for each pass the sum over the stages and, for all micro-batches but one, the
        slowest; what a simulation of ``gpipe`` gives. ``paradl``: ParaDL, table III, where every
        stage is as slow as the slowest. ``jansen``: Jansen (2020), where every stage is as slow
        as the mean. ``1f1b``: a lower bound of that schedule, seldom more than 2 % below it, which
        gains on gpipe where the slowest stage is not the last.

    Examples
    --------
    >>> [float(pipeline_time([1, 2], [2, 4], 4, form=f)) for f in ("exact", "paradl", "jansen")]
    [27.0, 30.0, 22.5]
    """
    if form not in FORMS:
        raise UnknownNameError("form of a pipeline's time", form, FORMS)
    forward, backward = (np.asarray(t, dtype=float) for t in (forward_s, backward_s))
    n, virtual = (np.asarray(x, dtype=float) for x in (n_micro_batches, virtual_stages))
    return FORMS[form](forward, backward, n, virtual)


def _exact(forward: Array, backward: Array, n: Array, virtual: Array) -> Array:
    """Fill and drain once per piece of a stage, then the slowest stage without a gap."""
    total = forward.sum(axis=-1) + backward.sum(axis=-1)
    slowest = forward.max(axis=-1) + backward.max(axis=-1)
    return np.asarray(total / virtual + (n - 1 / virtual) * slowest)


def _paradl(forward: Array, backward: Array, n: Array, _: Array) -> Array:
    """ParaDL, table III, pipeline: (p + S - 1)/S of the slowest stage's whole batch."""
    slowest = forward.max(axis=-1) + backward.max(axis=-1)
    return np.asarray((forward.shape[-1] + n - 1) * slowest)


def _jansen(forward: Array, backward: Array, n: Array, _: Array) -> Array:
    """Jansen (2020): T_seq (W + m - 1)/(W m), T_seq being all micro-batches on one device."""
    n_stages = forward.shape[-1]
    one_s = forward.sum(axis=-1) + backward.sum(axis=-1)
    return np.asarray(n * one_s * (n_stages + n - 1) / (n_stages * n))


def _one_forward_one_backward(forward: Array, backward: Array, n: Array, _: Array) -> Array:
    """Return the longest of two paths through any stage k.

    All its passes after the first has come to it and before the last has gone back to the first
    stage; or: one micro-batch to the end and back to k, then all that k may not run before.
    """
    n_stages = forward.shape[-1]
    before = np.cumsum(forward + backward, axis=-1) - forward - backward
    behind = np.cumsum(backward[..., ::-1], axis=-1)[..., ::-1] - backward
    before_back = np.cumsum(backward, axis=-1) - backward
    n = n[..., None]
    ahead = np.minimum(n, n_stages - np.arange(n_stages))
    busy = before + n * (forward + backward)
    turned = forward.sum(axis=-1, keepdims=True) + behind + before_back
    late = turned + n * backward + (n - ahead) * forward
    return np.asarray(np.maximum(busy, late).max(axis=-1))


FORMS: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "exact": _exact,
    "paradl": _paradl,
    "jansen": _jansen,
    "1f1b": _one_forward_one_backward,
}


def torchgpipe_transfer_time(transfer_s: ArrayLike, n_micro_batches: int) -> float:
    """Return the time that torchgpipe spends on transfers, which it does not overlap.

    Jansen (2020): 2 (sum over i <= W-2 of max c_1..c_i + (m - (W-2)) max c + sum over i >= 2 of
    max c_i..c_(W-1)), with c_j = latency + bytes of a micro-batch / bandwidth.

    Parameters
    ----------
    transfer_s
        Seconds of one micro-batch from each stage to the next: one fewer than stages.
    n_micro_batches
        At least as many as edges.
    """
    edges = np.asarray(transfer_s, dtype=float)
    n_middle = n_micro_batches - (len(edges) - 1)
    if n_middle < 0:
        raise InvalidInputError(
            f"`n_micro_batches` must be at least {len(edges) - 1} for {len(edges) + 1} stages, "
            f"but got {n_micro_batches}."
        )
    if not len(edges):
        return 0.0
    filling = np.maximum.accumulate(edges)[:-1].sum()
    draining = np.maximum.accumulate(edges[::-1])[:-1].sum()
    return float(2 * (filling + n_middle * edges.max() + draining))


def steady_step_time(
    forward_s: ArrayLike, backward_s: ArrayLike, *, unlocked: str = "both", transfer_s: float = 0.0
) -> float:
    """Return the time of a step long after the start when passes do not wait for each other.

    REFERENCE 2: ``both`` (FDG: one step of the slowest module), ``backward`` (DDG: the whole
    forward pass and the slowest backward pass), ``none`` (plain backpropagation: all of it).

    Parameters
    ----------
    forward_s, backward_s
        Seconds of a batch in every module.
    unlocked
        What does not wait.
    transfer_s
        Of the slowest transfer, where it is not overlapped.
    """
    forward, backward = (np.asarray(t, dtype=float) for t in (forward_s, backward_s))
    found = {
        "both": (forward + backward).max(),
        "backward": forward.sum() + backward.max(),
        "none": forward.sum() + backward.sum(),
    }
    if unlocked not in found:
        raise UnknownNameError("kind of unlocking", unlocked, found)
    return float(found[unlocked]) + transfer_s
