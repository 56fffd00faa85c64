"""A network as a table of layers: what each computes, moves and holds, and how it may be split."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InvalidInputError
from paceline.workloads._network import Shape

# what a layer may be divided by: samples need no word, every layer takes them
SPLITS = ("spatial", "filter", "channel", "head", "sequence", "expert")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLayer:
    """One layer, for one sample in numbers of four bytes.

    Parameters
    ----------
    name
        Unique within its graph.
    kind
        ``conv``, ``linear``, ``attention``, ``batch_norm``, ``pool``, ``activation`` …
    block
        Layers of one block follow each other and are never cut apart (a residual, attention).
    input_shape, output_shape
        Of one sample, without the batch; channels first.
    weight_shape
        Of the largest weight: (out, in, kernel …); empty without weights.
    n_parameters
        What is learned.
    forward_flop, backward_flop
        Of one sample, 2 per multiply-add, as ``torch.utils.flop_counter`` counts on the meta
        device; the first layer needs no gradient of its input.
    input_bytes, output_bytes, weight_bytes
        Read, written, and read again in every pass.
    stored_bytes
        What the backward pass needs of one sample and no other layer has stored already.
    buffer_bytes
        What is broadcast and not learned (running means of batch normalisation).
    splits
        Some of `SPLITS`.
    window, stride
        Of a pooling or a convolution, along every axis.
    n_heads, n_experts
        What ``head`` and ``expert`` divide: heads of keys and values, experts of a mixture.
    tied
        Name of the layer whose weight this one shares; its own parameters are then 0.
    """

    name: str
    kind: str
    block: str
    input_shape: Shape
    output_shape: Shape
    weight_shape: Shape = ()
    n_parameters: int = 0
    forward_flop: int = 0
    backward_flop: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    weight_bytes: int = 0
    stored_bytes: int = 0
    buffer_bytes: int = 0
    splits: tuple[str, ...] = ()
    window: Shape = ()
    stride: int = 1
    n_heads: int = 1
    n_experts: int = 1
    tied: str = ""

    @property
    def operation(self) -> str:
        """What a device runs: the kind, but volumes and images are not convolved alike."""
        is_volume = self.kind == "conv" and len(self.output_shape) == 4
        return "conv3d" if is_volume else self.kind

    @property
    def n_filters(self) -> int:
        """Number of output channels or features that a weight has; 1 without one."""
        return self.weight_shape[0] if self.weight_shape else 1

    @property
    def n_channels(self) -> int:
        """Number of input channels or features that a weight has; 1 without one."""
        return self.weight_shape[1] if len(self.weight_shape) > 1 else 1

    @property
    def kernel(self) -> Shape:
        """Window of a convolution or a pooling along every axis; empty elsewhere."""
        return self.window or tuple(self.weight_shape[2:])


@dataclass(frozen=True, kw_only=True)
class LayerGraph:
    """The layers of a network in the order in which they run.

    Parameters
    ----------
    name
        Of the workload.
    layers
        In order; those of one block adjacent.
    values
        Parameters that the workload was built with.
    loss
        ``"cross_entropy"`` or ``"mse"``.
    """

    name: str
    layers: tuple[GraphLayer, ...]
    values: tuple[tuple[str, Any], ...] = ()
    loss: str = "cross_entropy"

    def __post_init__(self) -> None:
        if not self.layers:
            raise InvalidInputError("A layer graph must have at least one layer.")

    def __len__(self) -> int:
        return len(self.layers)

    def __str__(self) -> str:
        flop, n = self.total("forward_flop"), self.total("n_parameters")
        return f"{self.name}: {len(self)} layers, {n} parameters, {flop:.3g} FLOP forward a sample"

    def column(self, field: str) -> NDArray[np.float64]:
        """Return one figure of every layer as an array."""
        return np.array([getattr(layer, field) for layer in self.layers], dtype=float)

    def total(self, field: str) -> int:
        """Return the sum of one figure over all layers."""
        return int(sum(getattr(layer, field) for layer in self.layers))

    def may_split(self, dimension: str) -> NDArray[np.bool_]:
        """Return which layers may be divided along `dimension`, one of `SPLITS`."""
        return np.array([dimension in layer.splits for layer in self.layers])

    @cached_property
    def units(self) -> tuple[tuple[int, int], ...]:
        """Ranges (first, behind last) of layers between which the network may be cut."""
        return tuple(_runs([layer.block for layer in self.layers]))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen letters that two graphs share only when their layers are equal."""
        names = [field.name for field in fields(GraphLayer)]
        # by hand, since `asdict` copies every value and takes ten times longer
        plain = [{name: getattr(layer, name) for name in names} for layer in self.layers]
        text = json.dumps(plain, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def part(self, first: int, end: int) -> LayerGraph:
        """Return the layers from `first` until before `end` as a graph."""
        return LayerGraph(
            name=self.name, layers=self.layers[first:end], values=self.values, loss=self.loss
        )


def _runs(labels: Sequence[str]) -> Iterable[tuple[int, int]]:
    first = 0
    for i in range(1, len(labels) + 1):
        if i == len(labels) or labels[i] != labels[first]:
            yield first, i
            first = i
