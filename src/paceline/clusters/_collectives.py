"""What it costs to exchange bytes within groups of devices, as arrays over sizes and groups.

Each takes the fastest of its `ALGORITHMS`, as communication libraries choose.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from paceline.clusters._algorithms import ALGORITHMS, NOT_CHOSEN, Member, slowest_of
from paceline.clusters._cluster import Cluster
from paceline.clusters._spans import FloatArray, Group, Span, spans_of
from paceline.errors import UnknownNameError


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
    hops = (s.message_s + m * s.beta_one * s.message_factor for s in spans)
    crossed = (np.where(s.members > 1, hop, 0.0) for s, hop in zip(spans, hops, strict=True))
    return np.where(n > 1, reduce(np.maximum, crossed), 0.0)


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
    latency, beta = slowest_of(spans)
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
        return [member for name, member in known.items() if (kind, name) not in NOT_CHOSEN]
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
    n_near = n * np.asarray(stride, float)
    floor = reduce(np.maximum, (np.where(s.members > 1, s.floor_s, 0.0) for s in spans))
    seconds = np.maximum(seconds, np.maximum(floor, cluster.exchange_floor(n_near)))
    seconds = seconds * cluster.exchange_crowding(n_near)
    return np.where(n > 1, seconds, 0.0)
