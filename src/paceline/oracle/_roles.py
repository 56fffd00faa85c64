"""What a layer is to the strategies: by where it stands, not by what it computes."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.workloads import GraphLayer, LayerGraph

_AHEAD = 2  # linear maps to look at for the partner: a gated map has two before it


def layer_roles(graph: LayerGraph) -> list[frozenset[str]]:
    """Return the roles of every layer.

    ``first``
        The first with weights: its input needs no gradient.
    ``column``, ``inside``, ``row``
        A linear map divided by outputs, what follows it on its share, and the linear map divided
        by inputs that adds the shares up (Megatron-LM, arXiv 1909.08053, section 3).
    ``heads``
        Attention with its own maps, divided by heads: column and row in one.
    ``mixture``
        Experts, every one of which is divided by its inner width: column and row in one, too.
    ``vocabulary_in``, ``vocabulary_out``
        Embedding, and the last map, divided by words (the same, section 3).
    """
    layers = graph.layers
    found: list[set[str]] = [set() for _ in layers]
    weighted = [i for i, layer in enumerate(layers) if layer.weight_shape]
    if weighted:
        found[weighted[0]].add("first")
    _mark_tensor(layers, found)
    return [frozenset(roles) for roles in found]


def _mark_tensor(layers: Sequence[GraphLayer], found: list[set[str]]) -> None:
    width = 0  # of what is divided at this place; 0: nothing is
    for i, layer in enumerate(layers):
        if "head" in layer.splits:
            found[i].add("heads")
        elif layer.kind == "experts":
            found[i].add("mixture")
        elif layer.kind == "embedding":
            found[i].add("vocabulary_in")
        elif layer.kind == "linear":
            width = _mark_linear(layers, i, width, found[i])
        elif _is_inside(layer, width) or _follows_words(layer, found[i - 1]):
            found[i].add("inside")


def _is_inside(layer: GraphLayer, width: int) -> bool:
    return bool(width and layer.output_shape and layer.output_shape[-1] == width)


def _follows_words(layer: GraphLayer, before: set[str]) -> bool:
    """Return whether a loss is of words that are dealt out."""
    return layer.kind == "loss" and "vocabulary_out" in before


def _mark_linear(layers: Sequence[GraphLayer], i: int, width: int, roles: set[str]) -> int:
    """Mark one linear map, and return the width of what is divided behind it."""
    layer = layers[i]
    if width and layer.n_channels == width:
        roles.add("row")
        return 0
    ahead = [x for x in layers[i + 1 :] if x.kind == "linear"][:_AHEAD]
    if any(x.n_channels == layer.n_filters for x in ahead):
        roles.add("column")
        return layer.n_filters
    if not ahead:
        roles.add("vocabulary_out")
    return 0
