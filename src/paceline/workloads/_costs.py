"""What an operation costs beyond its forward pass: gradients, what it keeps, how it is divided.

FLOP of the backward pass are those that ``torch.utils.flop_counter`` counts on the meta device:
one product for the gradient of each factor, so twice the forward pass, but for maps of an input
that needs no gradient. What is kept is what PyTorch's autograd keeps on a CPU in training.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.workloads._network import BYTES_PER_NUMBER, Operation, Shape
from paceline.workloads._shapes import expert_tokens

BYTES_PER_INDEX = 8  # positions of maxima, tokens and labels are int64


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one operation adds to the facts of its shapes.

    Parameters
    ----------
    kind
        Of the layer in a graph.
    fields
        Further fields of a `GraphLayer`.
    input_map_flop
        Forward FLOP of maps of the input itself: their input gradient is left out where the
        input needs none.
    keeps_input, keeps_output
        Whether the backward pass needs them.
    kept_bytes
        What else it needs.
    is_view
        Whether the output is the input's memory.
    """

    kind: str
    fields: Mapping[str, Any]
    input_map_flop: int = 0
    keeps_input: bool = False
    keeps_output: bool = False
    kept_bytes: int = 0
    is_view: bool = False


def cost(operation: Operation, shape: Shape) -> Cost:
    """Return the cost of an operation on one input of that shape."""
    return _RULES[operation["op"]](operation, shape)


def following(shape: Shape) -> tuple[str, ...]:
    """Return how a layer may be divided that does the same to every number."""
    if len(shape) > 2:
        return ("spatial", "filter")
    return ("filter", "sequence") if len(shape) == 2 else ("filter",)


def numbers(*shape: int) -> int:
    """Return the bytes of so many numbers."""
    return BYTES_PER_NUMBER * math.prod(shape)


def _conv(operation: Operation, shape: Shape) -> Cost:
    dims, padding = operation["dims"], operation["padding"]
    window = (operation["kernel"],) * dims
    padded = [side + sum(padding) for side in shape[1:]]
    copied = padding[0] != padding[1]  # then a padded copy is made and kept
    return Cost(
        kind="conv",
        fields={
            "weight_shape": (operation["out"], operation["in"], *window),
            "window": window,
            "stride": operation["stride"],
            "splits": ("spatial", "filter", "channel"),
        },
        input_map_flop=-1,
        keeps_input=not copied,
        kept_bytes=numbers(shape[0], *padded) if copied else 0,
    )


def _pool(operation: Operation, shape: Shape) -> Cost:
    kernel, stride, padding = operation["kernel"], operation["stride"], operation["padding"]
    sides = [(side + sum(padding) - kernel) // stride + 1 for side in shape[1:]]
    n_out = shape[0] * math.prod(sides)
    return Cost(
        kind="pool",
        fields={
            "window": (kernel,) * operation["dims"],
            "stride": stride,
            "splits": following(shape),
        },
        keeps_input=True,
        kept_bytes=BYTES_PER_INDEX * n_out if operation["kind"] == "max" else 0,
    )


def _linear(operation: Operation, shape: Shape) -> Cost:
    sequence = ("sequence",) if len(shape) == 2 else ()
    return Cost(
        kind="linear",
        fields={
            "weight_shape": (operation["out"], operation["in"]),
            "splits": ("filter", "channel", *sequence),
            "tied": operation.get("tied", ""),
        },
        input_map_flop=-1,
        keeps_input=True,
    )


_KEEPING_INPUT = ("gelu", "silu", "leaky_relu")  # the others keep their output


def _activation(operation: Operation, shape: Shape) -> Cost:
    keeps_input = operation["function"] in _KEEPING_INPUT
    return Cost(
        kind="activation",
        fields={"splits": following(shape)},
        keeps_input=keeps_input,
        keeps_output=not keeps_input,
    )


def _dropout(operation: Operation, shape: Shape) -> Cost:
    acts = operation["share"] > 0
    return Cost(
        kind="dropout",
        fields={"splits": following(shape)},
        kept_bytes=numbers(*shape) if acts else 0,  # the mask, in numbers
        is_view=not acts,
    )


def _flatten(operation: Operation, shape: Shape) -> Cost:
    return Cost(kind="flatten", fields={"splits": ("filter",)}, is_view=True)


def _batch_norm(operation: Operation, shape: Shape) -> Cost:
    features = operation["features"]
    return Cost(
        kind="batch_norm",
        fields={
            "weight_shape": (features,),
            "buffer_bytes": numbers(2, features) + BYTES_PER_INDEX,  # and the number of batches
            "splits": following(shape),
        },
        keeps_input=True,
    )


def _layer_norm(operation: Operation, shape: Shape) -> Cost:
    return Cost(
        kind="layer_norm",
        fields={"weight_shape": shape[-1:], "splits": ("sequence",)},
        keeps_input=True,
        kept_bytes=numbers(2, *shape[:-1]),  # mean and scale of every row
    )


def _global_pool(operation: Operation, shape: Shape) -> Cost:
    return Cost(kind="global_pool", fields={"splits": ("filter",)})


def _self_attention(operation: Operation, shape: Shape) -> Cost:
    channels, inner = operation["channels"], operation["inner"]
    n = math.prod(shape[1:])
    # key, query; value, weighted values, their projection; who looks at whom
    kept = numbers(2 * inner + 3 * channels, n) + numbers(n, n)
    return Cost(
        kind="attention",
        fields={"weight_shape": (channels, channels, *(1,) * operation["dims"])},
        input_map_flop=2 * n * channels * (2 * inner + channels),
        keeps_input=True,
        kept_bytes=kept,
    )


def _embedding(operation: Operation, shape: Shape) -> Cost:
    return Cost(
        kind="embedding",
        fields={
            "weight_shape": (operation["width"], operation["vocabulary"]),
            "splits": ("filter", "channel", "sequence"),
        },
        keeps_input=True,
    )


def _causal_attention(operation: Operation, shape: Shape) -> Cost:
    length, width = shape
    heads = operation["heads"]
    return Cost(
        kind="attention",
        fields={
            "weight_shape": (3 * width, width),
            "splits": ("head", "sequence"),
            "n_heads": heads,
        },
        input_map_flop=2 * length * 3 * width**2,
        keeps_input=True,
        # query, key, value and what they give; the normaliser of every row
        kept_bytes=numbers(length, 4 * width) + numbers(length, heads),
    )


def _rms_norm(operation: Operation, shape: Shape) -> Cost:
    return Cost(
        kind="rms_norm",
        fields={"weight_shape": shape[-1:], "splits": ("sequence",)},
        keeps_input=True,
        kept_bytes=numbers(*shape) + numbers(*shape[:-1]),  # before the scale; of every row
    )


def _rotary_attention(operation: Operation, shape: Shape) -> Cost:
    length, width = shape
    heads, key_heads = operation["heads"], operation["key_heads"]
    key_width = width // heads * key_heads
    return Cost(
        kind="attention",
        fields={
            "weight_shape": (width, width),
            "splits": ("head", "sequence"),
            "n_heads": key_heads,
        },
        input_map_flop=2 * length * width * (width + 2 * key_width),
        keeps_input=True,
        kept_bytes=numbers(length, 2 * width + 2 * key_width) + numbers(length, heads),
    )


def _experts(operation: Operation, shape: Shape) -> Cost:
    width, inner, n = operation["width"], operation["inner"], operation["experts"]
    rows = n * expert_tokens(operation, shape)
    # tokens taken and given; gate before and after, up, their product; shares and who was chosen
    kept = numbers(rows, 2 * width + 4 * inner + 1) + BYTES_PER_INDEX * rows
    return Cost(
        kind="experts",
        fields={
            "weight_shape": (inner, width),
            "splits": ("expert", "sequence"),
            "n_experts": n,
        },
        input_map_flop=2 * width * (shape[0] * n + 2 * rows * inner),
        keeps_input=True,
        kept_bytes=kept + numbers(shape[0], n),
    )


_RULES: Mapping[str, Callable[[Operation, Shape], Cost]] = {
    "conv": _conv,
    "pool": _pool,
    "linear": _linear,
    "activation": _activation,
    "dropout": _dropout,
    "flatten": _flatten,
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "global_pool": _global_pool,
    "self_attention": _self_attention,
    "embedding": _embedding,
    "causal_attention": _causal_attention,
    "rms_norm": _rms_norm,
    "rotary_attention": _rotary_attention,
    "experts": _experts,
}
