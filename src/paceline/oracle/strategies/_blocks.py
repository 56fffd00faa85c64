"""Blocks of space: which layers work on them, and which rows they need of each other.

A kernel of K rows that moves by S over an input padded by P before it needs P rows before a
block and K - S - P behind it, unless blocks of input and output do not begin together; the
worker files `torch_spatial` and `torch_halo` exchange just these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from paceline.errors import InfeasibleError
from paceline.workloads import GraphLayer, LayerGraph

Grid = tuple[int, ...]
Place = tuple[int, ...]

_WINDOWS = ("conv", "pool")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpatialBlocks:
    """How samples are cut into blocks of space.

    Parameters
    ----------
    grid
        Parts along every axis.
    n_layers
        Leading layers that work on blocks; behind them outputs are gathered.
    n_units
        The same in units of the graph.
    """

    grid: Grid
    n_layers: int
    n_units: int


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


def spatial_blocks(graph: LayerGraph, degree: int) -> SpatialBlocks:
    """Return the grid of blocks for so many devices, and the layers that work on them.

    They are the leading units whose layers all can, each axis at least as long as it has parts
    and no rim wider than a block; what the last of them gives must be cut evenly.

    Raises
    ------
    InfeasibleError
        When not even the first unit can.
    """
    found = leading_blocks(graph, degree)
    if not found.n_units:
        shown = " x ".join(map(str, found.grid)) or degree
        raise InfeasibleError(
            f"`spatial` must be possible in the first layers of {graph.name}, but they cannot "
            f"be cut evenly into {shown} blocks."
        )
    return found


def leading_blocks(graph: LayerGraph, degree: int) -> SpatialBlocks:
    """Return the same as `spatial_blocks`, with no layers where not even the first can."""
    grid = split_grid(degree, len(graph.layers[0].input_shape) - 1)
    n_units = last = 0
    for i, (first, end) in enumerate(graph.units, 1):
        if not all(_works_on_blocks(layer, grid) for layer in graph.layers[first:end]):
            break
        extents = graph.layers[end - 1].output_shape[1:]
        if all(n % parts == 0 for n, parts in zip(extents, grid, strict=True)):
            n_units, last = i, end
    return SpatialBlocks(grid=grid, n_layers=last, n_units=n_units)


def _works_on_blocks(layer: GraphLayer, grid: Grid) -> bool:
    inner, outer = layer.input_shape[1:], layer.output_shape[1:]
    if "spatial" not in layer.splits or len(inner) != len(grid) or len(outer) != len(grid):
        return False
    for axis, parts in enumerate(grid):
        if min(inner[axis], outer[axis]) < parts:
            return False
        if parts > 1 and not _rims_fit(_window(layer, axis), parts):
            return False
    return True


@dataclass(frozen=True, slots=True)
class _Window:
    """A kernel that moves along one axis; the padding is that before the first row."""

    n_in: int
    n_out: int
    kernel: int
    stride: int
    padding: int

    def needed(self, parts: int, part: int) -> tuple[int, int]:
        """Return the first row that a part's output needs, and the one behind the last."""
        first, end = _bounds(self.n_out, parts, part)
        low, high = first * self.stride, (end - 1) * self.stride + self.kernel
        return max(low - self.padding, 0), min(high - self.padding, self.n_in)

    def rims(self, parts: int, part: int) -> tuple[int, int]:
        """Return how many rows a part needs before and behind its own; negative: too many."""
        low, high = self.needed(parts, part)
        first, end = _bounds(self.n_in, parts, part)
        return first - low, high - end


def _bounds(n: int, parts: int, part: int) -> tuple[int, int]:
    size, left = divmod(n, parts)
    first = part * size + min(part, left)
    return first, first + size + (part < left)


def _window(layer: GraphLayer, axis: int) -> _Window:
    kernel = layer.kernel[axis] if axis < len(layer.kernel) else 1
    n_in, n_out = layer.input_shape[1 + axis], layer.output_shape[1 + axis]
    stride = layer.stride if layer.kernel else 1
    used = max((n_out - 1) * stride + kernel - n_in, 0)  # of both sides
    # by strides the last row of padding may be left out; even kernels have less before
    padding = (used + 1) // 2 if stride > 1 else used // 2
    return _Window(n_in, n_out, kernel, stride, padding)


@lru_cache(maxsize=65536)
def _rims_fit(window: _Window, parts: int) -> bool:
    """Return whether every part finds all rows that it needs with its neighbours."""
    most = window.n_in // parts
    return all(max(window.rims(parts, part)) <= most for part in _ends(parts))


def _ends(parts: int) -> Iterator[int]:
    """Yield parts that differ: first ones and last ones."""
    yield from sorted({0, 1, parts // 2, parts - 2, parts - 1} & set(range(parts)))


@dataclass(frozen=True, slots=True)
class Halo:
    """Numbers of a sample that one part sends along every axis: forward, and backward."""

    forward: tuple[int, ...]
    backward: tuple[int, ...]


def busiest_halos(layers: Sequence[GraphLayer], grid: Grid, first: int) -> list[Halo]:
    """Return what the part that sends most sends in every layer.

    Parameters
    ----------
    layers
        Those that work on blocks.
    grid
        Parts along every axis.
    first
        Place of the layer whose input needs no gradient.
    """
    places = itertools.product(*({0, min(1, n - 1), n - 1} for n in grid))
    found = (_halos(layers, grid, place, first) for place in places)
    return max(found, key=lambda halos: sum(sum(h.forward) + sum(h.backward) for h in halos))


def _halos(layers: Sequence[GraphLayer], grid: Grid, place: Place, first: int) -> list[Halo]:
    found = [_halo(layer, grid, place) for layer in layers]
    nothing = (0,) * len(grid)
    return [Halo(h.forward, nothing if i <= first else h.backward) for i, h in enumerate(found)]


@lru_cache(maxsize=65536)
def _halo(layer: GraphLayer, grid: Grid, place: Place) -> Halo:
    """Return what one part sends: along later axes with the rows that it fetched before."""
    if layer.kind not in _WINDOWS:
        return Halo((0,) * len(grid), (0,) * len(grid))
    windows = [_window(layer, axis) for axis in range(len(grid))]
    own = [_bounds(w.n_in, n, i) for w, n, i in zip(windows, grid, place, strict=True)]
    extents = [end - first for first, end in own]
    forward, backward = [], []
    for axis, (window, parts, part) in enumerate(zip(windows, grid, place, strict=True)):
        others = layer.input_shape[0] * math.prod(extents[:axis] + extents[axis + 1 :])
        given, fetched = _rows(window, parts, part)
        forward.append(given * others)
        backward.append(fetched * others)
        low, high = window.needed(parts, part)
        extents[axis] = high - low
    return Halo(tuple(forward), tuple(backward))


def _rows(window: _Window, parts: int, part: int) -> tuple[int, int]:
    """Return how many rows a part gives to its neighbours, and how many it fetches of them."""
    given = 0
    if part > 0:
        given += max(0, window.rims(parts, part - 1)[1])
    if part < parts - 1:
        given += max(0, window.rims(parts, part + 1)[0])
    return given, sum(max(0, rim) for rim in window.rims(parts, part))
