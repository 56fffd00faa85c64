"""Where a group of devices lies: which levels it spans, and who shares their links with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.clusters._cluster import Cluster, Link
from paceline.errors import InvalidInputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group:
    """Members of a collective, `stride` devices apart, both numbers or arrays.

    A tensor group has stride 1; the data groups outside a tensor degree t have stride t, and so
    on. Every device is in some such group, and all groups talk at the same time.

    Parameters
    ----------
    n
        Number of members.
    stride
        Distance between neighbours, in devices.
    """

    n: Any
    stride: Any = 1

    def __post_init__(self) -> None:
        for name in ("n", "stride"):
            value = np.asarray(getattr(self, name))
            if not np.all(np.isfinite(value)) or np.any(value < 1) or np.any(value % 1):
                raise InvalidInputError(
                    f"`{name}` of a group must be a positive whole number, "
                    f"but got {value.tolist()!r}."
                )


@dataclass(frozen=True, slots=True)
class Span:
    """What a group has of one level.

    Parameters
    ----------
    members
        How many units of the level below it joins here; 1: it does not cross this level.
    below
        Members within one such unit.
    latency_s, floor_s
        Of the level's link.
    beta_one
        Seconds per byte when one flow of every group crosses at once, as in a flat ring.
    beta_all
        Seconds per byte when every member sends across at once.
    message_s, message_factor
        Latency of a plain message, and its seconds per byte by those of a collective.
    """

    members: FloatArray
    below: FloatArray
    latency_s: float
    floor_s: float
    beta_one: FloatArray
    beta_all: FloatArray
    message_s: float
    message_factor: float


def spans_of(cluster: Cluster, n: ArrayLike, stride: ArrayLike = 1) -> list[Span]:
    """Return what a group of `n` devices, `stride` apart, has of every level, inside out.

    Contention multiplies beta, as phi in ParaDL (arXiv 2104.09075): flows that leave one unit
    share its link, in proportion to the share of its devices that talk.
    """
    n, stride = np.asarray(n, float), np.asarray(stride, float)
    spans: list[Span] = []
    capacity, above, oversubscription = 1.0, np.ones_like(n * stride), 1.0
    crossing_one = crossing_all = np.zeros_like(above)
    for i, level in enumerate(cluster.levels):
        unit, below = capacity, above
        capacity = capacity * level.size if level.size else np.inf
        is_last = i == len(cluster.levels) - 1
        above = n * np.ones_like(below) if is_last else np.clip(np.ceil(capacity / stride), 1, n)
        beta = 1.0 / level.link.bandwidth
        factor = level.link.contention * oversubscription
        if i == 0:
            one = all_ = beta * _inner_contention(factor, above, stride, capacity)
        else:
            flows = np.minimum(stride, unit)
            crossing_one = one = np.maximum(
                crossing_one, beta * _contention(factor, flows / unit, flows)
            )
            flows = np.minimum(n * stride, unit)
            crossing_all = all_ = np.maximum(
                crossing_all, beta * _contention(factor, flows / unit, flows)
            )
        spans.append(_span(level.link, np.ceil(above / below), below, (one, all_)))
        oversubscription = level.oversubscription
    return spans


def _span(
    link: Link, members: FloatArray, below: FloatArray, betas: tuple[FloatArray, FloatArray]
) -> Span:
    message_s = link.latency_s if link.message_latency_s is None else link.message_latency_s
    factor = link.bandwidth / (link.message_bandwidth or link.bandwidth)
    return Span(members, below, link.latency_s, link.floor_s, *betas, message_s, factor)


def _inner_contention(
    factor: float, members: FloatArray, stride: FloatArray, size: float
) -> FloatArray:
    """Return phi among the devices of a node: groups that interleave share its links."""
    groups = np.minimum(stride, max(1.0, size / 2))
    share = np.minimum(1.0, members * stride / size)
    return _contention(factor, share, np.where(members > 1, groups, 1.0))


def _contention(factor: float, share: FloatArray, flows: FloatArray) -> FloatArray:
    """Return phi: none for one flow, `factor` when all devices talk, in proportion between."""
    return np.where(flows > 1, np.maximum(1.0, factor * share), 1.0)
