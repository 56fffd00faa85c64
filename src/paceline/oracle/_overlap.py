"""How much of the gradient exchange a backward pass does not hide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InvalidInputError, UnknownNameError

FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20

Array = NDArray[np.float64]
Cost = Callable[[Array], ArrayLike]
Rule = Callable[[Array, Array, Cost], Array]


def exposed_communication(
    backward_s: ArrayLike, n_bytes: ArrayLike, cost: Cost, *, rule: str = "ddp"
) -> Array:
    """Return the time of the gradient exchange behind the end of the backward pass.

    MG-WFBP's recurrence (Shi, Chu, Li 2019, `distributed_optimizer.py`): a message starts when
    its gradients are ready and the message before it is through. Assumes that exchange and
    compute do not slow each other down.

    Parameters
    ----------
    backward_s
        Seconds of the backward pass of every layer, in the order of the forward pass along the
        last axis; axes before it are scenarios.
    n_bytes
        Bytes of the gradients of every layer, likewise.
    cost
        Seconds of an exchange of so many bytes: takes an array whose last axis is messages and
        whose other axes are 1 or scenarios, and returns one that broadcasts with it.
    rule
        ``layers`` (each by itself), ``ddp`` (buckets as `assign_buckets` has them), ``merged``
        (one message at the end), ``greedy`` (MG-WFBP's rule, which a faster link can mislead),
        ``best`` (the least of the first three), ``optimal`` (the least of all ways to merge
        neighbours).

    Returns
    -------
    array of float
        Seconds by scenario; never negative.

    Examples
    --------
    >>> def cost(n_bytes):
    ...     return 1e-3 + n_bytes / 1e9
    >>> float(exposed_communication([0.01, 0.01], [4e6, 4e6], cost, rule="layers").round(6))
    0.005
    """
    if rule not in RULES:
        raise UnknownNameError("rule of merging gradients", rule, RULES)
    backward, sizes = _backwards(backward_s, n_bytes)
    ready_s = np.cumsum(backward, axis=-1)
    end_s = RULES[rule](ready_s, sizes, cost)
    return np.maximum(end_s - ready_s[..., -1], 0.0)


def communication_time(n_bytes: ArrayLike, cost: Cost, *, rule: str = "ddp") -> Array:
    """Return the time of all messages of `rule`, ``layers``, ``ddp`` or ``merged``, hidden or not.

    The other rules merge by when gradients are ready; parameters are those of
    `exposed_communication`.
    """
    if rule not in FIXED_RULES:
        raise UnknownNameError("rule that merges by size alone", rule, FIXED_RULES)
    _, sizes = _backwards(0.0, n_bytes)
    nothing = np.zeros(sizes.shape)
    return FIXED_RULES[rule](nothing, sizes, cost)


def assign_buckets(
    n_bytes: ArrayLike,
    *,
    first_bytes: float = FIRST_BUCKET_BYTES,
    bucket_bytes: float = BUCKET_BYTES,
) -> NDArray[np.int64]:
    """Return the bucket of every layer, 0 for the one that is sent first.

    As `torch.nn.parallel.DistributedDataParallel` keeps them from its second step on: gradients
    in the order in which they come (last layer first); a bucket is closed by the gradient that
    fills it, the first at 1 MiB and the others at 25 MiB. A layer's gradients stay together.

    Parameters
    ----------
    n_bytes
        Bytes of the gradients of every layer, in the order of the forward pass.
    first_bytes, bucket_bytes
        When the first and the other buckets are full.

    Examples
    --------
    >>> assign_buckets([20e6, 10e6, 5e6, 2e6]).tolist()
    [1, 1, 1, 0]
    """
    sizes = np.asarray(n_bytes, dtype=float)[::-1]
    found = np.zeros(len(sizes), dtype=np.int64)
    bucket, held, limit = 0, 0.0, first_bytes
    for i, size in enumerate(sizes):
        found[i] = bucket
        held += size
        if held >= limit:
            bucket, held, limit = bucket + 1, 0.0, bucket_bytes
    return found[::-1]


def _backwards(backward_s: ArrayLike, n_bytes: ArrayLike) -> tuple[Array, Array]:
    """Return both in the order of the backward pass, with the same number of layers."""
    sizes = np.atleast_1d(np.asarray(n_bytes, dtype=float))
    backward = np.asarray(backward_s, dtype=float)
    if backward.ndim == 0:
        backward = np.full(sizes.shape[-1], backward)
    if backward.shape[-1] != sizes.shape[-1]:
        raise InvalidInputError(
            "`backward_s` and `n_bytes` must have as many layers, but got "
            f"{backward.shape[-1]} and {sizes.shape[-1]}."
        )
    return backward[..., ::-1], sizes[..., ::-1]


def _last_end(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    """Return when the last of some messages is through.

    end_k = max(end_(k-1), ready_k) + cost_k unrolled: the largest of ready_k plus all costs from
    k on. Messages of no bytes are not sent.
    """
    cost_s = np.where(sizes > 0, cost(sizes), 0.0)
    rest_s = np.cumsum(cost_s[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray((ready_s + rest_s).max(axis=-1))


def _layers(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    sent = sizes.reshape(-1, sizes.shape[-1]).any(axis=0)
    if not sent.any():
        return np.asarray(ready_s[..., -1])
    return _last_end(ready_s[..., sent], sizes[..., sent], cost)


def _merged(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    return _last_end(ready_s[..., -1:], sizes.sum(axis=-1, keepdims=True), cost)


def _ddp(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    """Group scenarios by the bytes of their layers: each group shares its buckets."""
    if sizes.ndim == 1:
        return _ddp_alike(ready_s, sizes, cost)
    shape = np.broadcast_shapes(ready_s.shape, sizes.shape)
    kinds, which = np.unique(sizes.reshape(-1, sizes.shape[-1]), axis=0, return_inverse=True)
    which = np.broadcast_to(which.reshape(sizes.shape[:-1]), shape[:-1])
    found = np.zeros(shape[:-1])
    for i, kind in enumerate(kinds):
        found = np.where(which == i, _ddp_alike(ready_s, kind, cost), found)
    return found


def _ddp_alike(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    buckets = assign_buckets(sizes[::-1])[::-1]
    last = np.flatnonzero(np.diff(buckets, append=buckets[-1] + 1))
    bucket_bytes = np.diff(np.cumsum(sizes)[last], prepend=0.0)
    return _last_end(ready_s[..., last], bucket_bytes, cost)


def _greedy(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    """Merge a message into the next while that is ready soon enough (REFERENCE: MG-WFBP)."""
    first = sizes[..., :1]
    startup_s = np.asarray(cost(np.zeros_like(first)))[..., 0]
    end_s, held = np.zeros(ready_s.shape[:-1]), first[..., 0]
    for i in range(1, sizes.shape[-1]):
        start_s = np.maximum(end_s, ready_s[..., i - 1])
        through_s = start_s + _one(held, cost)
        wait_s = ready_s[..., i] - start_s
        merge = (ready_s[..., i] < through_s) & ((wait_s < 0) | (wait_s < startup_s))
        end_s = np.where(merge, end_s, np.where(held > 0, through_s, end_s))
        held = np.where(merge, held, 0.0) + sizes[..., i]
    return np.where(held > 0, np.maximum(end_s, ready_s[..., -1]) + _one(held, cost), end_s)


def _optimal(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    """Find the least end by dynamic programming over the last message.

    E_i = min over h < i of max(E_h, ready_i) + cost(bytes of h+1 .. i); exact, since an earlier
    end of the first h never delays what follows.
    """
    sums = np.cumsum(sizes, axis=-1)
    ends: list[Array] = [np.zeros(ready_s.shape[:-1])]
    for i in range(sizes.shape[-1]):
        before = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :i]], axis=-1)
        message = sums[..., i : i + 1] - before
        cost_s = np.where(message > 0, cost(message), 0.0)
        start_s = np.maximum(_stacked(ends), ready_s[..., i : i + 1])
        # nothing to send: no need to wait either
        through_s = np.where(message > 0, start_s + cost_s, _stacked(ends))
        ends.append(np.asarray(through_s.min(axis=-1)))
    return ends[-1]


def _stacked(ends: list[Array]) -> Array:
    return np.stack(np.broadcast_arrays(*ends), axis=-1)


def _one(held: Any, cost: Cost) -> Array:
    return np.where(held > 0, np.asarray(cost(np.asarray(held)[..., None]))[..., 0], 0.0)


def _best(ready_s: Array, sizes: Array, cost: Cost) -> Array:
    ends = [rule(ready_s, sizes, cost) for rule in FIXED_RULES.values()]
    return np.asarray(np.min(np.broadcast_arrays(*ends), axis=0))


# the grouping depends on sizes alone, so that a faster link is never slower
FIXED_RULES: dict[str, Rule] = {"layers": _layers, "ddp": _ddp, "merged": _merged}
RULES: dict[str, Rule] = {**FIXED_RULES, "greedy": _greedy, "best": _best, "optimal": _optimal}
