"""What it costs to exchange bytes within groups of devices, as arrays over sizes and groups.

Every member of a collective is a function of the spans of a group (`spans_of`), its number of
members and the bytes; the public functions take the fastest of them, as communication libraries
choose. Sources, by their names in the docstrings:

- ParaDL: Kahira et al., arXiv 2104.09075, section 4: point-to-point ``a + m b``, ring
  ``2 (p - 1) (a + m b / p)``, all-gather ``(p - 1) (a + m b / p)``, tree ``log2(p) (a + m b)``,
  contention phi on b.
- Paleo: Qi et al., ICLR 2017: parameter server ``2 m (n - 1) b`` (one to all).
- Castello: Castello et al., PDP 2021: ``2 log2(p) a + 2 (p - 1) / p m b``,
  broadcast ``ceil(log2(p)) (a + m b)``.

The arithmetic of a reduction is left out: it is small beside the transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from paceline.clusters._cluster import Cluster
from paceline.clusters._spans import FloatArray, Group, Span, spans_of
from paceline.errors import UnknownNameError

Member = Callable[[list[Span], FloatArray, FloatArray], FloatArray]


def _slowest(spans: list[Span]) -> tuple[FloatArray, FloatArray]:
    """Return latency and seconds per byte of the slowest level that a flat ring crosses."""
    latency = reduce(np.maximum, (np.where(s.members > 1, s.latency_s, 0.0) for s in spans))
    beta = reduce(np.maximum, (np.where(s.members > 1, s.beta_one, 0.0) for s in spans))
    return latency, beta


def _steps(members: FloatArray) -> FloatArray:
    return np.ceil(np.log2(members))


def _ring_pass(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """ParaDL: once around, (n - 1) (a + m b / n); every hop waits for the slowest link."""
    latency, beta = _slowest(spans)
    return (n - 1) * (latency + m / n * beta)


def _ring_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """ParaDL: a reduce-scatter and an all-gather, 2 (n - 1) (a + m b / n)."""
    return 2 * _ring_pass(spans, n, m)


def _tree_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """ParaDL: log2(n) (a + m b), the whole message exchanged in every step, level by level."""
    return sum((_steps(s.members) * (s.latency_s + m * s.beta_all) for s in spans), np.zeros(()))


def _hierarchical_pass(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Rings level by level: what is left of the message after the level below goes on."""
    return sum(
        ((s.members - 1) * (s.latency_s + m / (s.below * s.members) * s.beta_all) for s in spans),
        np.zeros(()),
    )


def _hierarchical_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Reduce-scatter inwards to outwards, all-gather back; on one level it is the ring."""
    return 2 * _hierarchical_pass(spans, n, m)


def _halving_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Castello ("bta"): 2 log2(n) a + 2 (n - 1) / n m b; not what NCCL and gloo do by default."""
    latency, beta = _slowest(spans)
    return 2 * _steps(n) * latency + 2 * (n - 1) / n * m * beta


def _doubling_pass(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Recursive doubling: log2(n) a + (n - 1) / n m b, level by level."""
    return sum(
        (
            _steps(s.members) * s.latency_s
            + (s.members - 1) / (s.below * s.members) * m * s.beta_all
            for s in spans
        ),
        np.zeros(()),
    )


def _pairwise_all_to_all(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """One partner after another, m / n bytes each: (n - 1) (a + m b / n)."""
    return sum(
        ((s.members - 1) * s.below * (s.latency_s + m / n * s.beta_all) for s in spans),
        np.zeros(()),
    )


def _bruck_all_to_all(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Bruck: ceil(log2 n) steps of half the message each."""
    return sum(
        (_steps(s.members) * (s.latency_s + m / 2 * s.beta_all) for s in spans), np.zeros(())
    )


def _tree_broadcast(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Castello: ceil(log2 n) (a + m b), level by level, without its factor 3 on a."""
    return sum((_steps(s.members) * (s.latency_s + m * s.beta_one) for s in spans), np.zeros(()))


def _scattered_broadcast(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Cost a scatter and an all-gather: (log2(n) + n - 1) a + 2 (n - 1) / n m b."""
    latency, beta = _slowest(spans)
    return (_steps(n) + n - 1) * latency + 2 * (n - 1) / n * m * beta


_PASSES: Mapping[str, Member] = {
    "ring": _ring_pass,
    "doubling": _doubling_pass,
    "hierarchical": _hierarchical_pass,
}

ALGORITHMS: Mapping[str, Mapping[str, Member]] = {
    "all_reduce": {
        "ring": _ring_all_reduce,
        "tree": _tree_all_reduce,
        "hierarchical": _hierarchical_all_reduce,
        "halving": _halving_all_reduce,
    },
    "all_gather": _PASSES,
    "reduce_scatter": _PASSES,
    "all_to_all": {"pairwise": _pairwise_all_to_all, "bruck": _bruck_all_to_all},
    "broadcast": {"tree": _tree_broadcast, "scattered": _scattered_broadcast},
}

# by name only: no library takes it by default, and it would hide the ring
_NOT_CHOSEN = {("all_reduce", "halving")}


def all_reduce(
    cluster: Cluster,
    n_bytes: ArrayLike,
    n: ArrayLike,
    stride: ArrayLike = 1,
    *,
    algorithm: str | None = None,
) -> FloatArray:
    """Return seconds until every member has the sum of all members' `n_bytes`.

    Parameters
    ----------
    cluster
        Whose links.
    n_bytes
        Bytes of the tensor that each member holds.
    n, stride
        The group: so many members, so many devices apart.
    algorithm
        One of ``ALGORITHMS["all_reduce"]``; None: the fastest.

    Notes
    -----
    Arrays are broadcast against each other; one member costs nothing.
    """
    return _cost("all_reduce", cluster, n_bytes, n, stride, algorithm)


def all_gather(
    cluster: Cluster,
    n_bytes: ArrayLike,
    n: ArrayLike,
    stride: ArrayLike = 1,
    *,
    algorithm: str | None = None,
) -> FloatArray:
    """Return seconds until every member has all `n_bytes`, of which each held one n-th.

    Parameters as `all_reduce`, `n_bytes` being the whole gathered tensor.
    """
    return _cost("all_gather", cluster, n_bytes, n, stride, algorithm)


def reduce_scatter(
    cluster: Cluster,
    n_bytes: ArrayLike,
    n: ArrayLike,
    stride: ArrayLike = 1,
    *,
    algorithm: str | None = None,
) -> FloatArray:
    """Return seconds until every member has one n-th of the sum of all members' `n_bytes`.

    Parameters as `all_reduce`, `n_bytes` being the whole tensor that each holds before.
    """
    return _cost("reduce_scatter", cluster, n_bytes, n, stride, algorithm)


def all_to_all(
    cluster: Cluster,
    n_bytes: ArrayLike,
    n: ArrayLike,
    stride: ArrayLike = 1,
    *,
    algorithm: str | None = None,
) -> FloatArray:
    """Return seconds until every member has sent one n-th of its `n_bytes` to every other.

    Parameters as `all_reduce`, `n_bytes` being what one member holds, before and after.
    """
    return _cost("all_to_all", cluster, n_bytes, n, stride, algorithm)


def broadcast(
    cluster: Cluster,
    n_bytes: ArrayLike,
    n: ArrayLike,
    stride: ArrayLike = 1,
    *,
    algorithm: str | None = None,
) -> FloatArray:
    """Return seconds until every member has the `n_bytes` of one; parameters as `all_reduce`."""
    return _cost("broadcast", cluster, n_bytes, n, stride, algorithm)


def point_to_point(
    cluster: Cluster, n_bytes: ArrayLike, stride: ArrayLike = 1, *, n: ArrayLike = 2
) -> FloatArray:
    """Return seconds to send `n_bytes` to the device that is `stride` further: a + m b.

    Parameters
    ----------
    cluster
        Whose links.
    n_bytes
        Of the message.
    stride
        Distance in devices.
    n
        Members of a chain such as the stages of a pipeline: the slowest of its hops is meant.
    """
    spans, n, m = _prepare(cluster, n_bytes, n, stride)
    latency, beta = _slowest(spans)
    return _finish(cluster, spans, n, stride, latency + m * beta)


def parameter_server(
    cluster: Cluster,
    n_bytes: ArrayLike,
    n: ArrayLike,
    stride: ArrayLike = 1,
    *,
    n_servers: ArrayLike = 1,
) -> FloatArray:
    """Return seconds of a synchronous exchange through servers on `n_servers` of the workers.

    Paleo (one to all): 2 m (n - 1) b for one server, plus a latency for every message, since a
    server takes one after another. Servers hold equal shares. Asynchronous training, in which
    nobody waits for the others, is not modelled.
    """
    spans, n, m = _prepare(cluster, n_bytes, n, stride)
    latency, beta = _slowest(spans)
    share = m / np.minimum(np.asarray(n_servers, float), n)
    return _finish(cluster, spans, n, stride, 2 * (n - 1) * (latency + share * beta))


def _cost(
    kind: str,
    cluster: Cluster,
    n_bytes: ArrayLike,
    n: ArrayLike,
    stride: ArrayLike,
    algorithm: str | None,
) -> FloatArray:
    spans, n, m = _prepare(cluster, n_bytes, n, stride)
    members = _chosen(kind, algorithm)
    fastest = reduce(np.minimum, (member(spans, n, m) for member in members))
    return _finish(cluster, spans, n, stride, fastest)


def _chosen(kind: str, algorithm: str | None) -> list[Member]:
    known = ALGORITHMS[kind]
    if algorithm is None:
        return [member for name, member in known.items() if (kind, name) not in _NOT_CHOSEN]
    if algorithm not in known:
        raise UnknownNameError(f"algorithm of {kind}", algorithm, known)
    return [known[algorithm]]


def _prepare(
    cluster: Cluster, n_bytes: ArrayLike, n: ArrayLike, stride: ArrayLike
) -> tuple[list[Span], FloatArray, FloatArray]:
    group = Group(n, stride)
    return (
        spans_of(cluster, group.n, group.stride),
        np.asarray(n, float),
        np.asarray(n_bytes, float),
    )


def _finish(
    cluster: Cluster, spans: list[Span], n: FloatArray, stride: ArrayLike, seconds: FloatArray
) -> FloatArray:
    """Apply the least time of a collective and the crowding of cores; one member costs nothing."""
    floor = reduce(np.maximum, (np.where(s.members > 1, s.floor_s, 0.0) for s in spans))
    seconds = np.maximum(seconds, floor)
    if cluster.n_cores:
        seconds = seconds * np.maximum(1.0, n * np.asarray(stride, float) / cluster.n_cores)
    return np.where(n > 1, seconds, 0.0)
