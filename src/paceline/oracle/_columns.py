"""The distinct layers of a graph as arrays, and how many of each lie in which part of it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._cut import cut_units
from paceline.oracle._memory_layers import LayerMemory, layer_memory
from paceline.oracle._roles import layer_roles
from paceline.workloads import GraphLayer, LayerGraph

Array = NDArray[np.float64]

_NAMES = ("name", "block", "tied")  # in which layers differ without costing anything else


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Distinct layers of a graph; deep networks repeat few of them.

    Parameters
    ----------
    graph
        Whose layers.
    layers
        One of every kind, layers of one kind of operation together.
    roles
        What tensor parallelism makes of each, and marks of place, as `layer_roles` has them.
    which
        By layer of the graph, its place among `layers`.
    """

    graph: LayerGraph
    layers: tuple[GraphLayer, ...]
    roles: tuple[frozenset[str], ...]
    which: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, field: str) -> Array:
        return self._figures[field]

    @cached_property
    def _figures(self) -> dict[str, Array]:
        names = [f.name for f in fields(GraphLayer) if f.type == "int"]
        names += ["n_filters", "n_channels"]
        return {n: np.array([getattr(x, n) for x in self.layers], dtype=float) for n in names}

    @cached_property
    def counts(self) -> Array:
        """How often each distinct layer occurs."""
        return np.bincount(self.which, minlength=len(self)).astype(float)

    @cached_property
    def unit_counts(self) -> Array:
        """How often each distinct layer (rows) occurs in each unit (columns)."""
        found = np.zeros((len(self), len(self.graph.units)))
        for unit, (first, end) in enumerate(self.graph.units):
            np.add.at(found[:, unit], self.which[first:end], 1)
        return found

    @cached_property
    def unit_ends(self) -> NDArray[np.int64]:
        """Distinct layer that ends each unit: what it gives is handed over at a cut."""
        return self.which[[end - 1 for _, end in self.graph.units]]

    @cached_property
    def unit_starts(self) -> NDArray[np.int64]:
        """Distinct layer that begins each unit."""
        return self.which[[first for first, _ in self.graph.units]]

    def splits(self, dimension: str) -> NDArray[np.bool_]:
        """Return which distinct layers may be divided along `dimension`."""
        return np.array([dimension in layer.splits for layer in self.layers])

    def has_role(self, *names: str) -> NDArray[np.bool_]:
        """Return which distinct layers have one of these roles."""
        return np.array([bool(roles.intersection(names)) for roles in self.roles])

    def stage_bounds(self, n_parts: int) -> NDArray[np.int64]:
        """Return the first unit of every part, and the end."""
        return cut_units(tuple(self._unit_weights), n_parts)

    def layer_bounds(self, n_parts: int = 0) -> NDArray[np.int64]:
        """Return the first layer of every part, or of every unit, and the end."""
        firsts = np.array([*(first for first, _ in self.graph.units), len(self.graph)])
        return firsts[self.stage_bounds(n_parts)] if n_parts else firsts

    @cached_property
    def memory(self) -> LayerMemory:
        """What the layers of the graph, in its order, hold while they go back."""
        return layer_memory(self.graph)

    def stage_counts(self, n_parts: int) -> Array:
        """Return how often each distinct layer (rows) occurs in each part (columns)."""
        return np.add.reduceat(self.unit_counts, self.stage_bounds(n_parts)[:-1], axis=1)

    @cached_property
    def _unit_weights(self) -> Array:
        """Work of every unit, the same for any cluster: a faster one never moves a cut."""
        flop = self["forward_flop"] + self["backward_flop"]
        moved = 3 * (self["input_bytes"] + self["output_bytes"])
        return (flop + _FLOP_PER_BYTE * moved) @ self.unit_counts + 1.0


_FLOP_PER_BYTE = 15.0  # about what devices compute while they move a byte


def columns_of(graph: LayerGraph) -> Columns:
    """Return the distinct layers of a graph; kept for the graphs seen last."""
    return _columns(_Known(graph))


class _Known:
    """A graph that is the same as another when its layers are."""

    def __init__(self, graph: LayerGraph) -> None:
        self.graph = graph

    def __hash__(self) -> int:
        return hash(self.graph.fingerprint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Known) and self.graph.fingerprint == other.graph.fingerprint


@lru_cache(maxsize=32)
def _columns(known: _Known) -> Columns:
    graph = known.graph
    roles = layer_roles(graph)
    keys = [(*_key(layer), tuple(sorted(r))) for layer, r in zip(graph.layers, roles, strict=True)]
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    order = sorted(first, key=lambda key: (graph.layers[first[key]].kind, first[key]))
    place = {key: i for i, key in enumerate(order)}
    return Columns(
        graph=graph,
        layers=tuple(graph.layers[first[key]] for key in order),
        roles=tuple(roles[first[key]] for key in order),
        which=np.array([place[key] for key in keys]),
    )


def _key(layer: GraphLayer) -> tuple[object, ...]:
    return tuple(getattr(layer, f.name) for f in fields(layer) if f.name not in _NAMES)
