"""What one operation makes of one input: shape, parameters and FLOP, in plain arithmetic.

FLOP are counted as ``torch.utils.flop_counter`` counts them on the meta device: 2 per
multiply-add of convolutions, linear maps and products of matrices; bias, activations,
normalisation, pooling and sums count 0; masked products of causal attention count in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.workloads._network import JOINS, Operation, Shape, format_shape


class Outcome(NamedTuple):
    """What an operation gives for one sample."""

    shape: Shape
    n_parameters: int = 0
    forward_flop: int = 0


def infer(operation: Operation, shape: Shape) -> Outcome:
    """Return what an operation other than a residual makes of an input.

    Raises
    ------
    InfeasibleError
        When the operation cannot work on an input of this shape.
    InvalidInputError
        When the operation does not follow from its description.
    """
    kind = operation.get("op", "")
    if kind not in _RULES:
        raise UnknownNameError("operation", str(kind), (*_RULES, *JOINS))
    _check_keys(operation, _KEYS[kind])
    return _RULES[kind](operation, shape)


def _conv(operation: Operation, shape: Shape) -> Outcome:
    _check_axes(operation, shape)
    _check_size(operation, "in", shape[0])
    n_in, n_out = operation["in"], operation["out"]
    volume = operation["kernel"] ** operation["dims"]
    positions = _window(operation, shape[1:])
    return Outcome(
        (n_out, *positions),
        n_in * n_out * volume + n_out * bool(operation["bias"]),
        2 * math.prod(positions) * n_in * n_out * volume,
    )


def _pool(operation: Operation, shape: Shape) -> Outcome:
    _check_axes(operation, shape)
    if 2 * max(operation["padding"]) > operation["kernel"]:
        raise InfeasibleError(
            f"{operation['name']}: padding {max(operation['padding'])} is more than half of the "
            f"window of {operation['kernel']}."
        )
    return Outcome((shape[0], *_window(operation, shape[1:])))


def _linear(operation: Operation, shape: Shape) -> Outcome:
    _check_size(operation, "in", shape[-1])
    n_in, n_out = operation["in"], operation["out"]
    rows = math.prod(shape[:-1])
    n_parameters = n_in * n_out * (not operation.get("tied")) + n_out * bool(operation["bias"])
    return Outcome((*shape[:-1], n_out), n_parameters, 2 * rows * n_in * n_out)


def _unchanged(operation: Operation, shape: Shape) -> Outcome:
    return Outcome(shape)


def _flatten(operation: Operation, shape: Shape) -> Outcome:
    return Outcome((math.prod(shape),))


def _batch_norm(operation: Operation, shape: Shape) -> Outcome:
    _check_axes(operation, shape)
    _check_size(operation, "features", shape[0])
    return Outcome(shape, 2 * shape[0])


def _layer_norm(operation: Operation, shape: Shape) -> Outcome:
    _check_size(operation, "features", shape[-1])
    return Outcome(shape, 2 * shape[-1])


def _rms_norm(operation: Operation, shape: Shape) -> Outcome:
    _check_size(operation, "features", shape[-1])
    return Outcome(shape, shape[-1])


def _global_pool(operation: Operation, shape: Shape) -> Outcome:
    _check_axes(operation, shape)
    return Outcome(shape[:1])


def _self_attention(operation: Operation, shape: Shape) -> Outcome:
    _check_axes(operation, shape)
    _check_size(operation, "channels", shape[0])
    channels, inner = operation["channels"], operation["inner"]
    n = math.prod(shape[1:])
    weights = 2 * channels * inner + 2 * channels**2  # key, query; value, projection
    return Outcome(
        shape,
        weights + 2 * inner + 2 * channels + 1,  # four biases and gamma
        2 * n * weights + 2 * n**2 * (inner + channels),  # query by key, attention by value
    )


def _embedding(operation: Operation, shape: Shape) -> Outcome:
    if len(shape) != 1 or shape[0] > operation["length"]:
        raise InfeasibleError(
            f"{operation['name']}: needs at most {operation['length']} tokens in a row, but its "
            f"input is {format_shape(shape)}."
        )
    rows = operation["vocabulary"] + operation["length"] * operation.get("positions", True)
    return Outcome((*shape, operation["width"]), rows * operation["width"])


def _causal_attention(operation: Operation, shape: Shape) -> Outcome:
    length, width = _check_heads(operation, shape)
    return Outcome(
        shape,
        4 * width**2 + 4 * width,
        2 * length * 4 * width**2 + 4 * length**2 * width,  # maps; scores and weighted values
    )


def _rotary_attention(operation: Operation, shape: Shape) -> Outcome:
    length, width = _check_heads(operation, shape)
    heads, key_heads = operation["heads"], operation["key_heads"]
    if heads % key_heads or width // heads % 2:
        raise InfeasibleError(
            f"{operation['name']}: {key_heads} heads of keys must divide {heads} of queries, and "
            f"the {width // heads} numbers of a head must be even to be rotated."
        )
    weights = 2 * width**2 + 2 * width * (width // heads * key_heads)
    return Outcome(shape, weights, 2 * length * weights + 4 * length**2 * width)


def _experts(operation: Operation, shape: Shape) -> Outcome:
    _check_size(operation, "width", shape[-1])
    length, width, n = shape[0], operation["width"], operation["experts"]
    n_tokens = n * expert_tokens(operation, shape)
    expert = 3 * width * operation["inner"]  # gate, up and down
    return Outcome(shape, n * expert + n * width, 2 * (length * n * width + n_tokens * expert))


def expert_tokens(operation: Operation, shape: Shape) -> int:
    """Return how many tokens of a sequence an expert of a mixture takes."""
    if operation["chosen"] > operation["experts"]:
        raise InfeasibleError(
            f"{operation['name']}: a token cannot meet {operation['chosen']} of "
            f"{operation['experts']} experts."
        )
    return -int(-shape[0] * operation["chosen"] // operation["experts"])


def _check_heads(operation: Operation, shape: Shape) -> tuple[int, int]:
    width, heads = operation["width"], operation["heads"]
    _check_size(operation, "width", shape[-1])
    if len(shape) != 2:
        raise InvalidInputError(
            f"{operation['name']}: its input must be length x width, but is {format_shape(shape)}."
        )
    if width % heads:
        raise InfeasibleError(
            f"{operation['name']}: {heads} heads do not divide a width of {width}."
        )
    return shape[0], width


def _window(operation: Operation, sizes: Shape) -> Shape:
    """Return how often a window fits along every axis."""
    kernel, stride, padding = operation["kernel"], operation["stride"], operation["padding"]
    if min(sizes) + sum(padding) < kernel:
        what = "kernel" if operation["op"] == "conv" else "window"
        padded = f" padded by {padding[0]} + {padding[1]}" if any(padding) else ""
        raise InfeasibleError(
            f"{operation['name']}: {what} {kernel} is larger than its input of "
            f"{format_shape(sizes)}{padded}."
        )
    return tuple((size + sum(padding) - kernel) // stride + 1 for size in sizes)


_RULES: Mapping[str, Callable[[Operation, Shape], Outcome]] = {
    "conv": _conv,
    "pool": _pool,
    "linear": _linear,
    "activation": _unchanged,
    "dropout": _unchanged,
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "global_pool": _global_pool,
    "self_attention": _self_attention,
    "embedding": _embedding,
    "layer_norm": _layer_norm,
    "causal_attention": _causal_attention,
    "rms_norm": _rms_norm,
    "rotary_attention": _rotary_attention,
    "experts": _experts,
}

_KEYS: Mapping[str, tuple[str, ...]] = {
    "conv": ("dims", "in", "out", "kernel", "stride", "padding", "bias"),
    "pool": ("dims", "kernel", "stride", "padding", "kind"),
    "linear": ("in", "out", "bias"),
    "activation": ("function",),
    "dropout": ("share",),
    "flatten": (),
    "batch_norm": ("dims", "features"),
    "global_pool": ("dims",),
    "self_attention": ("dims", "channels", "inner"),
    "embedding": ("vocabulary", "width", "length"),
    "layer_norm": ("features",),
    "causal_attention": ("width", "heads"),
    "rms_norm": ("features",),
    "rotary_attention": ("width", "heads", "key_heads"),
    "experts": ("width", "inner", "experts", "chosen"),
}

# what must be at least 1; padding, bias and shares are none of these
_SIZES = (
    *("in", "out", "kernel", "stride", "inner", "vocabulary", "width", "length"),
    *("heads", "key_heads", "experts", "chosen"),
)


def _check_keys(operation: Operation, keys: tuple[str, ...]) -> None:
    for key in ("name", *keys):
        if key not in operation:
            raise InvalidInputError(
                f"The operation {operation['op']!r} must have the key `{key}`, but got "
                f"{operation!r}."
            )
    for key in _SIZES:
        if key in operation and operation[key] < 1:
            raise InfeasibleError(
                f"{operation['name']}: `{key}` must be at least 1, but is {operation[key]}."
            )


def _check_axes(operation: Operation, shape: Shape) -> None:
    if len(shape) != operation["dims"] + 1:
        raise InvalidInputError(
            f"{operation['name']}: its input must have channels and {operation['dims']} axes, "
            f"but is {format_shape(shape)}."
        )


def _check_size(operation: Operation, key: str, size: int) -> None:
    if operation[key] != size:
        raise InvalidInputError(
            f"{operation['name']}: `{key}` must be the {size} of its input, but is "
            f"{operation[key]}."
        )
