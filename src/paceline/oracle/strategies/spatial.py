"""Spatial parallelism: height, width and depth of every sample are dealt out.

ParaDL (arXiv 2104.09075), table III, rows "spatial" and "data+spatial": every device has a block
of every activation and exchanges the rim that kernels larger than one need (halo) with its
neighbours, forward and backward; behind the last divided layer the output is gathered, and the
rest of the network runs on every device: the gradient of what was gathered is there already.
The divided layers are the leading ones that can be (`spatial_blocks`); more blocks are fewer
layers. Batch normalisation adds up its means and variances over the blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._columns import Columns
from paceline.oracle.strategies._base import (
    HALO,
    LAYERWISE,
    Division,
    Limit,
    Message,
    Shares,
    one,
)
from paceline.oracle.strategies._blocks import (
    Grid,
    SpatialBlocks,
    busiest_halos,
    leading_blocks,
    spatial_blocks,
    split_grid,
)
from paceline.workloads import GraphLayer

__all__ = ["SpatialBlocks", "SpatialDivision", "spatial_blocks", "split_grid"]

Array = NDArray[np.float64]
_MOST = 4096  # devices that anybody would cut a sample into
_BYTES_PER_NUMBER = 4


class SpatialDivision(Division):
    """Blocks of height, width or depth."""

    degree = "spatial"
    summary = "height, width or depth of every sample is dealt out, with halo exchange"
    moves_samples = True

    def limit(self, columns: Columns) -> Limit:
        """Bound: as many blocks as the first layers can be cut into, each axis by itself."""
        first = columns.graph.layers[0]
        if "spatial" not in first.splits:
            return Limit(largest=1, reason="the first layer has no height or width to divide")
        shape = " x ".join(map(str, _places(first)))
        return Limit(
            largest=_largest(_Known(columns)),
            layer=first.name,
            reason=f"({first.kind}) has {shape} places",
            takes=partial(_takes, columns),
        )

    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Divide FLOP and activations, not weights."""
        share = np.stack([_cut(_Known(columns), int(p)).share for p in degree])
        return Shares(compute=share, activation=share, weight=one(columns, degree))

    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """Halos along every axis, an all-gather of |y_split|, and sums of normalisation."""
        cuts = [_cut(_Known(columns), int(p)) for p in degree]
        stride = np.ones_like(degree)
        gather = Message(
            cause=LAYERWISE,
            collective="all_gather",
            n_bytes=np.stack([cut.gathered for cut in cuts]),
            n=degree,
            stride=stride,
            forward=1,
        )
        sums = Message(
            cause=LAYERWISE,
            collective="all_reduce",
            n_bytes=np.stack([cut.summed for cut in cuts]),
            n=degree,
            stride=stride,
            forward=2,
            backward=2,
            of_samples=False,
        )
        n_axes = max(len(cut.grid) for cut in cuts)
        halos = (_halo(cuts, axis, side) for axis in range(n_axes) for side in (0, 1))
        return (gather, sums, *halos)


def _halo(cuts: list[_Cut], axis: int, side: int) -> Message:
    return Message(
        cause=HALO,
        collective="point_to_point",
        n_bytes=np.stack([cut.halos[axis][side] for cut in cuts]),
        made_bytes=np.stack([cut.made for cut in cuts]),
        n=np.array([cut.grid[axis] for cut in cuts]),
        stride=np.array([math.prod(cut.grid[axis + 1 :]) for cut in cuts]),
        forward=1 - side,
        backward=side,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """What a number of devices does to the distinct layers.

    Where a layer occurs both on blocks and behind them, figures are means of all its places.

    Parameters
    ----------
    grid
        Parts along every axis.
    share
        Of a layer that one device has.
    gathered
        Bytes of a sample behind the last layer on blocks.
    summed
        Bytes of a mean of normalisation.
    made
        Bytes of a sample that a block has with its rims.
    halos
        By axis, bytes of a sample forward and backward.
    """

    grid: Grid
    share: Array
    gathered: Array
    summed: Array
    made: Array
    halos: tuple[tuple[Array, Array], ...]


class _Known:
    """Columns that are the same as others when their layers are."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def __hash__(self) -> int:
        return hash(self.columns.graph.fingerprint)

    def __eq__(self, other: object) -> bool:
        mine = self.columns.graph.fingerprint
        return isinstance(other, _Known) and mine == other.columns.graph.fingerprint


@lru_cache(maxsize=512)
def _cut(known: _Known, degree: int) -> _Cut:
    columns, all_layers = known.columns, known.columns.graph.layers
    blocks = leading_blocks(columns.graph, degree)
    layers, grid = all_layers[: blocks.n_layers], blocks.grid
    first = next((i for i, x in enumerate(all_layers) if x.weight_shape), 0)
    halos = list(zip(layers, busiest_halos(layers, grid, first), strict=True))
    mean = partial(_mean, columns)
    return _Cut(
        grid=grid,
        share=1.0 + mean([_share(x, grid) - 1.0 for x in layers]),
        gathered=mean(_gathered(layers, len(all_layers))),
        summed=mean([_summed(x) for x in layers]),
        made=mean([_share(x, grid) * x.input_bytes for x in layers]),
        halos=tuple(
            (
                mean([h.forward[axis] * _bytes_per_number(x) for x, h in halos]),
                mean([h.backward[axis] * _bytes_per_number(x) for x, h in halos]),
            )
            for axis in range(len(grid))
        ),
    )


def _mean(columns: Columns, figures: list[float]) -> Array:
    """Return means over all places of the distinct layers, of figures of the leading layers."""
    found = np.zeros(len(columns))
    np.add.at(found, columns.which[: len(figures)], figures)
    return found / columns.counts


def _share(layer: GraphLayer, grid: Grid) -> float:
    parts = (math.ceil(n / k) / n for n, k in zip(_places(layer), grid, strict=True) if n)
    return math.prod(parts)


def _gathered(layers: tuple[GraphLayer, ...], n_layers: int) -> list[float]:
    found = [0.0] * len(layers)
    if 0 < len(layers) < n_layers:
        found[-1] = float(layers[-1].output_bytes)
    return found


def _summed(layer: GraphLayer) -> float:
    """Return the bytes of one number per channel, of batch normalisation."""
    return float(_BYTES_PER_NUMBER * layer.n_filters) if layer.kind == "batch_norm" else 0.0


def _bytes_per_number(layer: GraphLayer) -> float:
    return layer.input_bytes / max(math.prod(layer.input_shape), 1)


def _places(layer: GraphLayer) -> Grid:
    """Return the smaller of input and output along every axis."""
    inner, outer = layer.input_shape[1:], layer.output_shape[1:]
    if len(inner) != len(outer):
        return inner or outer
    return tuple(min(pair) for pair in zip(inner, outer, strict=True))


def _takes(columns: Columns, degree: int) -> bool:
    return leading_blocks(columns.graph, degree).n_units > 0


@lru_cache(maxsize=64)
def _largest(known: _Known) -> int:
    """Return the largest number of devices that the first layers can be cut for."""
    most = min(math.prod(_places(known.columns.graph.layers[0])), _MOST)
    return next((p for p in range(most, 0, -1) if _takes(known.columns, p)), 1)
