"""The layers of a network and their sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.workloads._network import (
    BYTES_PER_NUMBER,
    JOINS,
    Layer,
    Network,
    Operation,
    Shape,
    format_shape,
)
from paceline.workloads._shapes import Outcome, infer


def layer_table(network: Network) -> tuple[Layer, ...]:
    """Return every layer of a network, in order, from its operations alone.

    A residual gives the layers of its body, those of its shortcut, and itself as their sum.

    Raises
    ------
    InfeasibleError
        When a layer cannot work on what the one before it gives; says which and why.

    Examples
    --------
    >>> head = {"op": "linear", "name": "head", "in": 4, "out": 2, "bias": True}
    >>> network = Network(operations=(head,), sample={"shape": [4], "n_classes": 2})
    >>> print(layer_table(network)[0])
    head (linear) -> 2: 16 FLOP, 10 parameters
    """
    layers: list[Layer] = []
    shape = network.input_shape
    for operation in network.operations:
        shape = _append(layers, operation, shape, operation.get("name", ""))
    _check_names(layers)
    return tuple(layers)


def totals(network: Network) -> dict[str, int]:
    """Return the sums over all layers, for one sample.

    ``activation_bytes`` leaves out flattening, which shares the memory of its input.

    Examples
    --------
    >>> head = {"op": "linear", "name": "head", "in": 4, "out": 2, "bias": True}
    >>> totals(Network(operations=(head,), sample={"shape": [4], "n_classes": 2}))
    {'forward_flop': 16, 'n_parameters': 10, 'weight_bytes': 40, 'activation_bytes': 8}
    """
    return sum_layers(layer_table(network))


def sum_layers(layers: Iterable[Layer]) -> dict[str, int]:
    """Return the sums over some layers."""
    sums = {"forward_flop": 0, "n_parameters": 0, "weight_bytes": 0, "activation_bytes": 0}
    for layer in layers:
        sums["forward_flop"] += layer.forward_flop
        sums["n_parameters"] += layer.n_parameters
        sums["weight_bytes"] += layer.weight_bytes
        sums["activation_bytes"] += layer.activation_bytes * (layer.kind != "flatten")
    return sums


def output_shape(operations: Sequence[Operation], shape: Shape) -> Shape:
    """Return what operations in a row make of an input of that shape."""
    layers: list[Layer] = []
    for operation in operations:
        shape = _append(layers, operation, shape, operation["name"])
    return shape


def _append(layers: list[Layer], operation: Operation, shape: Shape, block: str) -> Shape:
    """Append the layers of one operation and return the shape of its output."""
    if operation.get("op") in JOINS:
        outcome = _append_join(layers, operation, shape, block)
    else:
        outcome = infer(operation, shape)
    layers.append(
        Layer(
            name=operation["name"],
            kind=operation["op"],
            block=block,
            output_shape=outcome.shape,
            n_parameters=outcome.n_parameters,
            weight_bytes=BYTES_PER_NUMBER * outcome.n_parameters,
            forward_flop=outcome.forward_flop,
            activation_bytes=BYTES_PER_NUMBER * math.prod(outcome.shape),
        )
    )
    return outcome.shape


def _append_join(layers: list[Layer], operation: Operation, shape: Shape, block: str) -> Outcome:
    for key in ("name", "body", "shortcut"):
        if key not in operation:
            raise InvalidInputError(
                f"The operation {operation['op']!r} must have the key `{key}`, but got "
                f"{operation!r}."
            )
    ends = []
    for path in ("body", "shortcut"):
        end = shape
        for inner in operation[path]:
            end = _append(layers, inner, end, block)
        ends.append(end)
    if ends[0] != ends[1]:
        raise InfeasibleError(
            f"{operation['name']}: its body gives {format_shape(ends[0])}, but its shortcut "
            f"{format_shape(ends[1])}, which cannot be "
            f"{'summed' if operation['op'] == 'residual' else 'multiplied'}."
        )
    return Outcome(shape=ends[0])


def _check_names(layers: Sequence[Layer]) -> None:
    repeated = [name for name, n in _count(layers) if n > 1]
    if repeated:
        raise InvalidInputError(
            f"Names of layers must differ, but got {repeated[0]!r} more than once."
        )


def _count(layers: Sequence[Layer]) -> Iterator[tuple[str, int]]:
    yield from Counter(layer.name for layer in layers).items()
