"""What every distinct layer costs one device for one micro-batch, by distinct scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline import clusters
from paceline.clusters import Cluster
from paceline.oracle._columns import Columns
from paceline.oracle._compute import ComputeModel
from paceline.oracle._keys import distinct
from paceline.oracle.strategies import (
    DIVISIONS,
    HALO,
    LAYERWISE,
    Division,
    Message,
    Shares,
    strides,
)

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LayerCosts:
    """Figures by distinct scenario (rows) and distinct layer (columns).

    Parameters
    ----------
    forward_s, backward_s
        Compute.
    sent_s
        By cause and pass (0 forward, 1 backward), seconds that a layer waits for messages;
        causes without any are left out.
    sent_bytes
        Payload of those messages by collective, both passes.
    shares
        What one device has of each layer.
    places
        The share of its samples and their places that one device has, of each layer.
    samples
        Samples of a micro-batch, by row.
    """

    forward_s: Array
    backward_s: Array
    sent_s: Mapping[tuple[str, int], Array]
    sent_bytes: Mapping[str, Array]
    shares: Shares
    places: Array
    samples: Array


@dataclass(frozen=True, kw_only=True)
class LayerQuestion:
    """Distinct scenarios to cost layers for.

    Parameters
    ----------
    columns, cluster, model
        The network, the links, and the model of compute.
    degrees
        By name, one number per scenario.
    micro_batch
        Samples that go through the layers at once, by scenario.
    scale
        Bytes of a number by the four of a layer graph.
    """

    columns: Columns
    cluster: Cluster
    model: ComputeModel
    degrees: Mapping[str, Integers]
    micro_batch: Array
    scale: float

    @cached_property
    def strides(self) -> dict[str, Integers]:
        """Distance of the members of each degree's groups."""
        return strides(self.degrees)

    @property
    def shape(self) -> tuple[int, int]:
        """Scenarios and distinct layers."""
        return len(self.micro_batch), len(self.columns)


def cost_layers(question: LayerQuestion) -> LayerCosts:
    """Return what every distinct layer costs."""
    parts = {d.degree: _spread(question, d) for d in DIVISIONS if _used(question, d).any()}
    shares = _composed(question, list(parts.values()))
    forward, backward = question.model.times(
        question.columns, question.micro_batch, shares, question.scale
    )
    sent, payload = _all_messages(question, parts)
    return LayerCosts(
        forward_s=forward,
        backward_s=backward,
        sent_s=sent,
        sent_bytes=payload,
        shares=shares,
        places=_places(parts, len(question.columns)),
        samples=question.micro_batch,
    )


def _used(question: LayerQuestion, division: Division) -> NDArray[np.bool_]:
    return question.degrees[division.degree] > 1


def _spread(question: LayerQuestion, division: Division) -> Shares:
    """Return the shares of one division for all scenarios, worked out once per degree."""
    degrees, which = np.unique(question.degrees[division.degree], return_inverse=True)
    found = division.shares(question.columns, degrees)
    return Shares(
        compute=found.compute[which],
        activation=found.activation[which],
        weight=found.weight[which],
    )


def _composed(question: LayerQuestion, parts: list[Shares]) -> Shares:
    whole = np.ones((1, len(question.columns)))
    compute = activation = weight = whole
    for part in parts:
        compute = compute * part.compute
        activation = activation * part.activation
        weight = weight * part.weight
    return Shares(compute=compute, activation=activation, weight=weight)


def _all_messages(
    question: LayerQuestion, parts: Mapping[str, Shares]
) -> tuple[dict[tuple[str, int], Array], dict[str, Array]]:
    sent: dict[tuple[str, int], Array] = {}
    payload: dict[str, Array] = {}
    for division in DIVISIONS:
        if division.degree not in parts:
            continue
        rows = np.flatnonzero(_used(question, division))
        others = question.scale * _others(parts, division, rows)
        scales = {True: others * question.micro_batch[rows, None], False: others}
        degrees, which = np.unique(question.degrees[division.degree][rows], return_inverse=True)
        for message in division.messages(question.columns, degrees):
            scale = scales[message.of_samples]
            n_bytes = message.n_bytes[which] * scale
            total = payload.setdefault(message.collective, np.zeros(question.shape))
            total[rows] += n_bytes * (message.forward + message.backward)
            stride = question.strides[division.degree][rows] * message.stride[which]
            seconds = _seconds(question, message, n_bytes, message.n[which], stride)
            made = n_bytes if message.made_bytes is None else message.made_bytes[which] * scale
            made = np.where(n_bytes > 0, made, 0.0)
            seconds = seconds + _around(question, message, made, message.n[which] * stride)
            _add(sent, message, rows, seconds, question.shape)
    return sent, payload


def _places(parts: Mapping[str, Shares], n_layers: int) -> Array:
    found = np.ones((1, n_layers))
    for division in DIVISIONS:
        if division.moves_samples and division.degree in parts:
            found = found * parts[division.degree].activation
    return found


def _others(parts: Mapping[str, Shares], division: Division, rows: Integers) -> Array:
    """Return by how much other divisions of samples or places shrink a message."""
    found = np.ones((1, 1))
    for other in DIVISIONS:
        if other is not division and other.moves_samples and other.degree in parts:
            found = found * parts[other.degree].activation[rows]
    return found


def _seconds(
    question: LayerQuestion, message: Message, n_bytes: Array, n: Integers, stride: Integers
) -> Array:
    """Cost the layers that send anything."""
    active = np.flatnonzero(n_bytes.any(axis=0))
    found = np.zeros(n_bytes.shape)
    if len(active):
        found[:, active] = collective_time(
            question.cluster, message.collective, n_bytes[:, active], n[:, None], stride[:, None]
        )
    return np.where(n_bytes > 0, found, 0.0)


def _around(question: LayerQuestion, message: Message, made: Array, devices: Integers) -> Array:
    """Cost what devices do with what they send and receive."""
    cluster = question.cluster
    seconds = clusters.around_time(cluster.device, f"divided_{message.collective}", made)
    found: Array = seconds * cluster.crowding(devices)[:, None]
    return found


def _add(
    sent: dict[tuple[str, int], Array],
    message: Message,
    rows: Integers,
    seconds: Array,
    shape: tuple[int, int],
) -> None:
    for side, times in enumerate((message.forward, message.backward)):
        if times:
            total = sent.setdefault((message.cause, side), np.zeros(shape))
            total[rows] += times * seconds


def collective_time(
    cluster: Cluster, collective: str, n_bytes: ArrayLike, n: ArrayLike, stride: ArrayLike
) -> Array:
    """Return the seconds of a function of `paceline.clusters` by its name."""
    if collective == "point_to_point":
        seconds = clusters.point_to_point(cluster, n_bytes, stride, n=np.maximum(n, 1))
        return np.where(np.asarray(n) > 1, seconds, 0.0)
    found: Array = getattr(clusters, collective)(cluster, n_bytes, n, stride)
    return found


def group_time(
    cluster: Cluster, collective: str, n_bytes: Array, n: Integers, stride: Integers
) -> Array:
    """Return the seconds by scenario (rows) and message, worked out once per distinct group.

    Parameters
    ----------
    n_bytes
        One row for all scenarios.
    """
    groups = distinct([n, stride])
    seconds = collective_time(
        cluster,
        collective,
        n_bytes[None, :],
        n[groups.first, None],
        stride[groups.first, None],
    )
    return np.broadcast_to(seconds, (len(groups), len(n_bytes)))[groups.which]


CAUSES = (LAYERWISE, HALO)
