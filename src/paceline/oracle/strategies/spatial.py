"""Spatial parallelism: height, width and depth of every sample are dealt out.

ParaDL (arXiv 2104.09075), table III, rows "spatial" and "data+spatial": every device has a block
of every activation and exchanges the rim that kernels larger than one need (halo) with its
neighbours, forward and backward; behind the last divided layer the output is gathered, and the
rest of the network runs on every device.
"""

from __future__ import annotations

import math
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
from paceline.workloads import GraphLayer

Grid = tuple[int, ...]

_MOST = 4096  # devices that anybody would cut a sample into


class SpatialDivision(Division):
    """Blocks of height, width or depth."""

    degree = "spatial"
    summary = "height, width or depth of every sample is dealt out, with halo exchange"
    moves_samples = True

    def limit(self, columns: Columns) -> Limit:
        """Bound: p = p_w p_h (p_d) <= min_l W_l H_l (table III), each axis by itself."""
        divided = [x for x in columns.layers if "spatial" in x.splits]
        if not divided:
            return Limit(largest=1, reason="no layer has height or width to divide")
        layer = min(divided, key=lambda x: (math.prod(_places(x)), x.name))
        shape = " x ".join(map(str, _places(layer)))
        return Limit(
            largest=_largest(_places(layer)),
            layer=layer.name,
            reason=f"({layer.kind}) has {shape} places",
            takes=partial(_takes, _places(layer)),
        )

    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Divide FLOP and activations, not weights."""
        shapes = [_places(x) if "spatial" in x.splits else () for x in columns.layers]
        share = np.array([[_share(shape, int(p)) for shape in shapes] for p in degree])
        share = share.reshape(len(degree), len(columns))
        return Shares(compute=share, activation=share, weight=one(columns, degree))

    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """2 (a + halo b) per axis, forward and backward, and an all-gather of |y_split|."""
        last = np.where(columns.has_role("spatial_end"), columns["output_bytes"], 0.0)
        gather = Message(
            cause=LAYERWISE,
            collective="all_gather",
            n_bytes=np.broadcast_to(last, (len(degree), len(columns))),
            n=degree,
            stride=np.ones_like(degree),
            forward=1,
            backward=1,
        )
        n_axes = max(len(_places(x)) for x in columns.layers if "spatial" in x.splits)
        return (gather, *(self._halo(columns, degree, axis, n_axes) for axis in range(n_axes)))

    def _halo(
        self, columns: Columns, degree: NDArray[np.int64], axis: int, n_axes: int
    ) -> Message:
        grids = [split_grid(int(p), n_axes) for p in degree]
        n_bytes = [[_halo_bytes(layer, grid, axis) for layer in columns.layers] for grid in grids]
        return Message(
            cause=HALO,
            collective="point_to_point",
            n_bytes=np.array(n_bytes, dtype=float).reshape(len(degree), len(columns)),
            n=np.array([grid[axis] for grid in grids]),
            stride=np.array([math.prod(grid[axis + 1 :]) for grid in grids]),
            forward=2,
            backward=2,
        )


@lru_cache(maxsize=4096)
def split_grid(p: int, n_axes: int) -> Grid:
    """Return how many parts each axis is cut into: as equal as possible, the first axis most.

    Examples
    --------
    >>> split_grid(8, 2), split_grid(8, 3), split_grid(7, 2)
    ((4, 2), (2, 2, 2), (7, 1))
    """
    if n_axes <= 1:
        return (p,) * n_axes
    inner = next(q for q in range(round(p ** (1 / n_axes)) + 1, 0, -1) if _fits(p, q, n_axes))
    return tuple(sorted((*split_grid(p // inner, n_axes - 1), inner), reverse=True))


def _fits(p: int, inner: int, n_axes: int) -> bool:
    return p % inner == 0 and inner**n_axes <= p


def _places(layer: GraphLayer) -> Grid:
    """Return the smaller of input and output along every axis."""
    inner, outer = layer.input_shape[1:], layer.output_shape[1:]
    if len(inner) != len(outer):
        return inner or outer
    return tuple(min(pair) for pair in zip(inner, outer, strict=True))


def _takes(places: Grid, p: int) -> bool:
    """Return whether every axis can be cut into its parts of the grid of `p` devices."""
    return all(a <= b for a, b in zip(split_grid(p, len(places)), places, strict=True))


@lru_cache(maxsize=4096)
def _largest(places: Grid) -> int:
    """Return the largest number of devices whose grid the places can be cut into."""
    most = min(math.prod(places), _MOST)
    return next(p for p in range(most, 0, -1) if _takes(places, p))


@lru_cache(maxsize=65536)
def _share(places: Grid, p: int) -> float:
    grid = split_grid(p, len(places))
    parts = (math.ceil(n / k) / n for n, k in zip(places, grid, strict=True) if n)
    return math.prod(parts)


@lru_cache(maxsize=65536)
def _halo_bytes(layer: GraphLayer, grid: Grid, axis: int) -> float:
    """C ((K - 1) / 2) times the other extents of a block, in bytes of one sample (table III)."""
    extents, kernel = layer.input_shape[1:], layer.kernel
    if "spatial" not in layer.splits or axis >= len(kernel) or axis >= len(extents):
        return 0.0
    rim = kernel[axis] // 2
    if not rim or grid[axis] == 1:
        return 0.0
    others = [math.ceil(n / k) for n, k in zip(extents, grid, strict=False)]
    del others[axis]
    bytes_per_number = layer.input_bytes / max(math.prod(layer.input_shape), 1)
    return layer.input_shape[0] * rim * math.prod(others) * bytes_per_number
