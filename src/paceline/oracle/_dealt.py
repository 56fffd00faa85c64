"""Which layers a degree deals out, and how: what the oracle costs is what workers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InfeasibleError, UnknownNameError
from paceline.oracle._roles import layer_roles
from paceline.oracle.strategies.spatial import split_grid
from paceline.workloads import GraphLayer, LayerGraph

_MAPS = ("conv", "linear")
_ROLES = ("heads", "column", "row", "vocabulary_in", "vocabulary_out")


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

    grid: tuple[int, ...]
    n_layers: int
    n_units: int


def divided_layers(graph: LayerGraph, degree: str) -> tuple[str, ...]:
    """Return the names of the layers whose weights ``filter`` or ``channel`` deals out.

    They are convolutions and linear maps; by channels not the first, whose input nobody divides.
    """
    if degree not in ("filter", "channel"):
        raise UnknownNameError("degree that deals out weights", degree, ("filter", "channel"))
    weighted = [layer for layer in graph.layers if layer.weight_shape]
    maps = [x for x in weighted if x.kind in _MAPS and degree in x.splits]
    if degree == "filter":
        return tuple(x.name for x in maps if x.n_filters > 1)
    return tuple(x.name for x in maps if x.n_channels > 1 and x is not weighted[0])


def tensor_roles(graph: LayerGraph) -> dict[str, str]:
    """Return what every layer that ``tensor`` deals out is to it, by name (`layer_roles`)."""
    found: dict[str, str] = {}
    for layer, roles in zip(graph.layers, layer_roles(graph), strict=True):
        mine = [role for role in _ROLES if role in roles]
        if mine and not (mine == ["vocabulary_out"] and graph.loss == "mse"):
            found[layer.name] = mine[0]
    return found


def spatial_blocks(graph: LayerGraph, degree: int) -> SpatialBlocks:
    """Return the grid of blocks for so many devices, and the layers that work on them.

    They are the leading units whose layers all can, each axis at least as long as it has parts
    and no rim wider than a block; what the last of them gives must be cut evenly.

    Raises
    ------
    InfeasibleError
        When not even the first unit can.
    """
    n_axes = len(graph.layers[0].input_shape) - 1
    grid = split_grid(degree, n_axes)
    n_units = last = 0
    for i, (first, end) in enumerate(graph.units, 1):
        if not all(_works_on_blocks(layer, grid) for layer in graph.layers[first:end]):
            break
        extents = graph.layers[end - 1].output_shape[1:]
        if all(n % parts == 0 for n, parts in zip(extents, grid, strict=True)):
            n_units, last = i, end
    if not n_units:
        raise InfeasibleError(
            f"`spatial` must be possible in the first layers of {graph.name}, but they cannot "
            f"be cut evenly into {' x '.join(map(str, grid)) or degree} blocks."
        )
    return SpatialBlocks(grid=grid, n_layers=last, n_units=n_units)


def _works_on_blocks(layer: GraphLayer, grid: Sequence[int]) -> bool:
    inner, outer = layer.input_shape[1:], layer.output_shape[1:]
    if "spatial" not in layer.splits or len(inner) != len(grid) or len(outer) != len(grid):
        return False
    for axis, parts in enumerate(grid):
        if min(inner[axis], outer[axis]) < parts:
            return False
        if parts > 1 and _rim(layer, axis) > inner[axis] // parts:
            return False
    return True


def _rim(layer: GraphLayer, axis: int) -> int:
    """Return the most rows that a block may need of one neighbour."""
    kernel = layer.kernel[axis] if axis < len(layer.kernel) else 1
    n_in, n_out = layer.input_shape[1 + axis], layer.output_shape[1 + axis]
    padding = (n_out - 1) * layer.stride + kernel - n_in  # of both sides, at least
    return kernel // 2 if padding >= kernel - layer.stride else max(kernel - 1, 0)
