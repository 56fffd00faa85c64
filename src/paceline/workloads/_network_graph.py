"""The layer graph of a network of operations, in plain arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.workloads._costs import BYTES_PER_INDEX, Cost, cost, following, numbers
from paceline.workloads._graph import GraphLayer, LayerGraph
from paceline.workloads._layers import layer_table
from paceline.workloads._network import JOINS, Layer, Network, Operation, Shape


class _Memory:
    """Bytes that are kept for the backward pass at most once."""

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes = n_bytes
        self._is_kept = False

    def keep(self) -> int:
        """Return the bytes that keeping adds; none when kept already."""
        added = 0 if self._is_kept else self.n_bytes
        self._is_kept = True
        return added


@dataclass(frozen=True, slots=True)
class _Value:
    """What flows between operations; views share their memory."""

    shape: Shape
    memory: _Memory
    has_gradient: bool = True


def layer_graph(
    network: Network, *, name: str = "network", values: Iterable[tuple[str, Any]] = ()
) -> LayerGraph:
    """Return the layers of a network with all that an oracle must know of them.

    The loss is the last layer, in the block of the one before it: it is never cut off.

    Examples
    --------
    >>> head = {"op": "linear", "name": "head", "in": 4, "out": 2, "bias": True}
    >>> graph = layer_graph(Network(operations=(head,), sample={"shape": [4], "n_classes": 2}))
    >>> [(layer.name, layer.backward_flop, layer.stored_bytes) for layer in graph.layers]
    [('head', 16, 16), ('loss', 0, 16)]
    """
    layers = _Walk(network).layers()
    return LayerGraph(name=name, layers=layers, values=tuple(values), loss=network.loss)


class _Walk:
    """One way through the operations, in the order of `layer_table`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._facts = {layer.name: layer for layer in layer_table(network)}
        self._layers: list[GraphLayer] = []

    def layers(self) -> tuple[GraphLayer, ...]:
        shape = self._network.input_shape
        size = BYTES_PER_INDEX if "vocabulary" in self._network.sample else numbers(1)
        given = _Value(shape, _Memory(size * math.prod(shape)), has_gradient=False)
        value = self._run(self._network.operations, given)
        self._layers.append(self._loss(value, given))
        return tuple(self._layers)

    def _run(self, operations: Sequence[Operation], value: _Value) -> _Value:
        for operation in operations:
            joins = operation["op"] in JOINS
            value = self._join(operation, value) if joins else self._step(operation, value)
        return value

    def _join(self, operation: Operation, value: _Value) -> _Value:
        """Append both ways and where they meet."""
        ends = [self._run(operation[way], value) for way in ("body", "shortcut")]
        n_bytes = ends[0].memory.n_bytes
        has_gradient = any(end.has_gradient for end in ends)
        kept = 0  # a sum needs nothing, a product the other factor
        if operation["op"] == "product" and has_gradient:
            kept = sum(end.memory.keep() for end in ends)
        self._append(
            self._facts[operation["name"]],
            ends[0].shape,
            2 * n_bytes,
            kind=operation["op"],
            stored_bytes=kept,
            splits=following(ends[0].shape),
        )
        return _Value(ends[0].shape, _Memory(n_bytes), has_gradient)

    def _step(self, operation: Operation, value: _Value) -> _Value:
        facts, found = self._facts[operation["name"]], cost(operation, value.shape)
        learns = bool(facts.n_parameters) or bool(found.fields.get("tied"))
        has_gradient = value.has_gradient or learns
        output = _output(facts, found, value, has_gradient)
        self._append(
            facts,
            value.shape,
            value.memory.n_bytes,
            kind=found.kind,
            backward_flop=_backward(facts, found, value, has_gradient),
            stored_bytes=_kept(found, value, output) if has_gradient else 0,
            **found.fields,
        )
        return output

    def _append(self, facts: Layer, shape: Shape, n_bytes: int, **fields: Any) -> None:
        self._layers.append(
            GraphLayer(
                name=facts.name,
                block=facts.block,
                input_shape=shape,
                output_shape=facts.output_shape,
                n_parameters=facts.n_parameters,
                forward_flop=facts.forward_flop,
                input_bytes=n_bytes,
                output_bytes=facts.activation_bytes,
                weight_bytes=facts.weight_bytes,
                **fields,
            )
        )

    def _loss(self, value: _Value, given: _Value) -> GraphLayer:
        if self._network.loss == "mse":
            kept = value.memory.keep() + given.memory.keep()
        else:  # the logarithms of the probabilities, and the labels
            kept = value.memory.n_bytes + BYTES_PER_INDEX * math.prod(value.shape[:-1])
        return GraphLayer(
            name="loss" if "loss" not in self._facts else "loss of the network",
            kind="loss",
            block=self._layers[-1].block,
            input_shape=value.shape,
            output_shape=(),
            input_bytes=value.memory.n_bytes,
            stored_bytes=kept,
            splits=("sequence",) if len(value.shape) == 2 else (),
        )


def _output(facts: Layer, found: Cost, value: _Value, has_gradient: bool) -> _Value:
    memory = value.memory if found.is_view else _Memory(facts.activation_bytes)
    return _Value(facts.output_shape, memory, has_gradient)


def _backward(facts: Layer, found: Cost, value: _Value, has_gradient: bool) -> int:
    if not has_gradient:
        return 0
    whole = found.input_map_flop < 0
    skipped = facts.forward_flop if whole else found.input_map_flop
    return 2 * facts.forward_flop - (0 if value.has_gradient else skipped)


def _kept(found: Cost, value: _Value, output: _Value) -> int:
    kept = found.kept_bytes
    kept += value.memory.keep() if found.keeps_input else 0
    return kept + (output.memory.keep() if found.keeps_output else 0)
