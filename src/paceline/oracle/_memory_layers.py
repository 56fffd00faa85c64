"""What the backward pass holds besides what the forward pass left, layer by layer.

As PyTorch's autograd does it: the gradient of a layer's output is there until that of its input
is made, gradients of weights stay as they are made, and where two ways of the network meet, the
gradient of one waits until the other has been gone through backwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.workloads import GraphLayer, LayerGraph

Array = NDArray[np.float64]

_JOINS = ("residual", "product")
_BYTES_PER_NUMBER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMemory:
    """Figures by layer of a graph, in its order.

    Parameters
    ----------
    at_work
        Bytes of a sample's gradients of activations while the layer's backward pass runs.
    besides
        Bytes of a sample that are there from the layer on, though no layer has stored them.
    lasting
        Bytes of a sample that are there from the loss to the end of the step: a mean square is
        a number in the memory of all squares.
    made
        Parameters whose gradients are there from that layer on.
    copies
        Parameters of gradients that are there once more while it runs.
    largest
        Parameters of its largest tensor.
    """

    at_work: Array
    besides: Array
    lasting: float
    made: Array
    copies: Array
    largest: Array


def layer_memory(graph: LayerGraph) -> LayerMemory:
    """Return what every layer of a graph holds while it goes back."""
    at_work = np.array([_own(layer) for layer in graph.layers])
    if graph.loss == "mse":
        at_work[-1] = graph.layers[-1].input_bytes
    first = next((i for i, x in enumerate(graph.layers) if x.weight_shape), 0)
    for i in range(first + 1):  # nobody needs the gradient of the network's input
        at_work[i] = graph.layers[i].output_bytes if i == first else 0.0
    for unit in graph.units:
        _add_waiting(graph.layers, unit, at_work)
    made, copies = _made(graph.layers)
    return LayerMemory(
        at_work=at_work,
        besides=_besides(graph.layers),
        lasting=float(graph.layers[-1].input_bytes) if graph.loss == "mse" else 0.0,
        made=made,
        copies=copies,
        largest=np.array([_largest(layer) for layer in graph.layers]),
    )


def _besides(layers: Sequence[GraphLayer]) -> Array:
    """Return the input, where a convolution has stored a padded copy in its place."""
    found = np.zeros(len(layers))
    if layers[0].kind == "conv" and layers[0].stored_bytes != layers[0].input_bytes:
        found[0] = layers[0].input_bytes
    return found


def _own(layer: GraphLayer) -> float:
    """Return the gradients of a layer's output and input that are there at once."""
    if layer.kind == "loss":
        return 2.0 * layer.input_bytes  # of logarithms of probabilities, and of what they are of
    if layer.kind in ("flatten", "residual") or (layer.kind == "dropout" and _is_idle(layer)):
        return float(layer.output_bytes)  # what goes back is the same memory
    if layer.kind == "attention":
        return float(_attention(layer))
    return float(layer.input_bytes + layer.output_bytes)


def _is_idle(layer: GraphLayer) -> bool:
    return layer.stored_bytes == 0


def _attention(layer: GraphLayer) -> int:
    """Of what was mixed, and of queries, keys and values; or of who looks at whom, twice."""
    if "head" in layer.splits:
        return 4 * layer.input_bytes
    n = math.prod(layer.input_shape[1:])
    return 2 * layer.input_bytes + 2 * _BYTES_PER_NUMBER * n * n


def _add_waiting(layers: Sequence[GraphLayer], unit: tuple[int, int], at_work: Array) -> None:
    """Add gradients that wait at a fork or a join while another way is gone through."""
    for start, fork, join in _ways(layers, unit):
        joined, given = layers[join].output_bytes, layers[start].input_bytes
        way_back = range(fork, join) if fork < join else range(start, join)
        for i in way_back[:-1]:  # the last one works on that very gradient
            at_work[i] += joined
        for i in range(start, fork if fork < join else start):
            at_work[i] += given
        # both gradients and their sum, when what the first layer kept is gone
        at_work[start] = max(at_work[start], 3 * given - layers[start].stored_bytes)


def _ways(layers: Sequence[GraphLayer], unit: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield for every join where its ways begin, where the second one does, and itself.

    Layers are in order, so a second way begins where a layer does not take what the one before
    gives; without one, the second way is nothing but the input.
    """
    first, end = unit
    joins = [i for i in range(first, end) if layers[i].kind in _JOINS]
    forks = [i for i in range(first + 1, end) if _begins(layers, i)]
    for join in joins:
        mine = [i for i in forks if i < join]
        fork = mine[-1] if mine else join
        forks = [i for i in forks if i not in mine[-1:]]
        yield _start(layers, first, fork, is_outer=join == joins[-1]), fork, join


def _begins(layers: Sequence[GraphLayer], i: int) -> bool:
    is_plain = layers[i].kind not in (*_JOINS, "loss")
    return is_plain and layers[i].input_shape != layers[i - 1].output_shape


def _start(layers: Sequence[GraphLayer], first: int, fork: int, *, is_outer: bool) -> int:
    if is_outer or layers[fork].kind in _JOINS:
        return first
    wanted = layers[fork].input_shape
    return next((i for i in range(fork - 1, first, -1) if layers[i].input_shape == wanted), first)


def _made(layers: Sequence[GraphLayer]) -> tuple[Array, Array]:
    """Return new gradients by layer, and copies: those of shared weights are added up."""
    made = np.array([float(layer.n_parameters) for layer in layers])
    copies = np.zeros(len(layers))
    places = {layer.name: i for i, layer in enumerate(layers)}
    for i, layer in enumerate(layers):
        if layer.tied in places:
            shared = float(math.prod(layer.weight_shape))
            owner = places[layer.tied]
            made[i] += shared
            made[owner] -= shared
            copies[owner] += 2 * shared  # its own, and the sum
    return made, copies


def _largest(layer: GraphLayer) -> float:
    whole = math.prod(layer.weight_shape) * layer.n_experts if layer.weight_shape else 0
    return float(min(whole, layer.n_parameters))
