"""Which layers a degree deals out, and how: what the oracle costs is what workers do."""

from __future__ import annotations

from paceline.errors import UnknownNameError
from paceline.oracle._columns import columns_of
from paceline.oracle._roles import layer_roles
from paceline.oracle.strategies._blocks import SpatialBlocks, spatial_blocks
from paceline.oracle.strategies._maps import divided_maps
from paceline.workloads import LayerGraph

__all__ = ["SpatialBlocks", "divided_layers", "spatial_blocks", "tensor_roles"]

_ROLES = ("heads", "column", "row", "vocabulary_in", "vocabulary_out")


def divided_layers(graph: LayerGraph, degree: str) -> tuple[str, ...]:
    """Return the names of the layers whose weights ``filter`` or ``channel`` deals out.

    They are convolutions and linear maps; by channels not the first, whose input nobody divides;
    a weight that is shared with another layer stays whole.
    """
    if degree not in ("filter", "channel"):
        raise UnknownNameError("degree that deals out weights", degree, ("filter", "channel"))
    columns = columns_of(graph)
    mask = divided_maps(columns, degree)[columns.which]
    return tuple(x.name for x, is_divided in zip(graph.layers, mask, strict=True) if is_divided)


def tensor_roles(graph: LayerGraph) -> dict[str, str]:
    """Return what every layer that ``tensor`` deals out is to it, by name (`layer_roles`)."""
    found: dict[str, str] = {}
    for layer, roles in zip(graph.layers, layer_roles(graph), strict=True):
        mine = [role for role in _ROLES if role in roles]
        if mine and not (mine == ["vocabulary_out"] and graph.loss == "mse"):
            found[layer.name] = mine[0]
    return found
