"""Which kind of layer a place in a module is, and how it may be divided.

Imported only where a module is traced: the rest of Paceline needs no PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from paceline.workloads._costs import following
from paceline.workloads._network import Shape
from paceline.workloads._torch_record import Place

# by the name that begins a class of torch.nn
_CLASSES = {
    "ConvTranspose": "conv_transpose",
    "Conv": "conv",
    "Linear": "linear",
    "Bilinear": "linear",
    "BatchNorm": "batch_norm",
    "SyncBatchNorm": "batch_norm",
    "LayerNorm": "layer_norm",
    "RMSNorm": "rms_norm",
    "GroupNorm": "group_norm",
    "MaxPool": "pool",
    "AvgPool": "pool",
    "LPPool": "pool",
    "AdaptiveAvgPool": "global_pool",
    "AdaptiveMaxPool": "global_pool",
    "Dropout": "dropout",
    "Flatten": "flatten",
    "Unflatten": "flatten",
    "Embedding": "embedding",
    "MultiheadAttention": "attention",
    "LSTM": "recurrent",
    "GRU": "recurrent",
    "RNN": "recurrent",
}
# by what an operation's name holds, the first that fits
_OPERATIONS = (
    ("convolution", "conv"),
    ("addmm", "linear"),
    ("bmm", "linear"),
    ("mm", "linear"),
    ("embedding", "embedding"),
    ("batch_norm", "batch_norm"),
    ("layer_norm", "layer_norm"),
    ("group_norm", "group_norm"),
    ("pool", "pool"),
    ("cat", "concat"),
    ("mean", "global_pool"),
    ("bernoulli", "dropout"),
)
_ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "sigmoid", "elu", "hardtanh", "hardswish", "mish")
_POINTWISE = ("activation", "dropout", "residual", "product")
_QUIET = ("view", "transpose", "permute", "clone", "t", "expand", "unsqueeze", "detach")


def kind_of(place: Place) -> str:
    """Return the kind of a layer."""
    if place.path == "loss" and place.module is None:
        return "loss"
    if isinstance(place.module, nn.Module) and type(place.module).__module__.startswith(
        "torch.nn"
    ):
        known = _of_class(type(place.module).__name__)
        if known and (place.is_leaf or known == "attention"):
            return known
    return _of_operations(place)


def _of_class(name: str) -> str:
    for start, kind in _CLASSES.items():
        if name.startswith(start):
            return kind
    return "activation" if any(word in name.lower() for word in _ACTIVATIONS) else ""


def _of_operations(place: Place) -> str:
    names = place.operations
    if _looks_at_itself(place):
        return "attention"
    for word, kind in _OPERATIONS:
        if any(word in name for name in names):
            return kind
    if any(word in name for name in names for word in _ACTIVATIONS):
        return "activation"
    loud = [name.rstrip("_") for name in names if name not in _QUIET]
    last = loud[-1] if loud else "flatten"
    joins = {"add": "residual", "mul": "product"} if len(place.reads) > 1 else {}
    return joins.get(last, last)


def _looks_at_itself(place: Place) -> bool:
    products = sum("bmm" in name for name in place.operations)
    return products > 1 and not place.weights and any("softmax" in n for n in place.operations)


def label_of(place: Place, kind: str) -> str:
    """Return a name: that of the module, with what is done inside where it has parts."""
    if place.is_leaf or kind == "loss" or isinstance(place.module, nn.MultiheadAttention):
        return place.path or kind
    return f"{place.path}.{kind}" if place.path else kind


def splits_of(place: Place, kind: str, output: Shape) -> tuple[str, ...]:
    """Return how a layer may be divided; nothing for what is not known."""
    sequence = ("sequence",) if len(output) == 2 else ()
    if kind == "conv":
        grouped = getattr(place.module, "groups", 1) > 1
        return ("spatial", "filter") if grouped else ("spatial", "filter", "channel")
    if kind in ("linear", "embedding") and len(weight_shape(place, kind)) == 2:
        return ("filter", "channel", *sequence)
    if kind in ("batch_norm", "pool", *_POINTWISE):
        return following(output)
    if kind in ("layer_norm", "rms_norm"):
        return sequence
    if kind in ("global_pool", "flatten"):
        return ("filter",)
    return ("head", "sequence") if kind == "attention" else ()


def weight_shape(place: Place, kind: str) -> Shape:
    """Return the shape of the largest weight, outputs before inputs."""
    if not place.weights:
        return ()
    shape = tuple(max(place.weights.values(), key=lambda w: w.numel()).shape)
    turned = kind in ("embedding", "conv_transpose") and len(shape) > 1
    return (shape[1], shape[0], *shape[2:]) if turned else shape


def window(place: Place) -> dict[str, Any]:
    """Return the window and stride of a convolution or a pooling."""
    size, stride = (getattr(place.module, name, None) for name in ("kernel_size", "stride"))
    if size is None or not place.is_leaf:
        return {}
    n_axes = len(place.returned.shape) - 2 if place.returned is not None else 1
    steps = _each(stride if stride is not None else size, n_axes)
    return {"window": _each(size, n_axes), "stride": int(max(steps, default=1))}


def _each(value: int | Sequence[int], n: int) -> Shape:
    return (value,) * n if isinstance(value, int) else tuple(value)


def n_heads(place: Place, kind: str, batch: int) -> int:
    """Return the number of heads of attention, 1 of others."""
    if kind != "attention":
        return 1
    return int(getattr(place.module, "num_heads", 0)) or max(place.n_products // batch, 1)
