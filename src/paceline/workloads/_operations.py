"""Operations of networks (docs/executors.md), written shortly."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.workloads._network import Operation


def conv(
    name: str,
    channels: tuple[int, int],
    kernel: int,
    *,
    dims: int,
    stride: int = 1,
    padding: str | int = "same",
    bias: bool = True,
) -> Operation:
    """Return a convolution from and to so many channels.

    A number pads by so much on every side. ``same`` padding adds ``kernel - 1`` zeros per axis,
    the odd one behind, at every stride: the output is ``ceil(size / stride)`` as in TensorFlow.
    """
    pair = [padding, padding] if isinstance(padding, int) else [0, 0]
    if padding == "same":
        pair = [(kernel - 1) // 2, kernel // 2]
    return {
        "op": "conv",
        "name": name,
        "dims": dims,
        "in": channels[0],
        "out": channels[1],
        "kernel": kernel,
        "stride": stride,
        "padding": pair,
        "bias": bias,
    }


def pool(
    name: str, kernel: int, *, dims: int, stride: int, padding: int = 0, kind: str = "max"
) -> Operation:
    """Return a pooling, of maxima or averages."""
    return {
        "op": "pool",
        "name": name,
        "dims": dims,
        "kernel": kernel,
        "stride": stride,
        "padding": [padding, padding],
        "kind": kind,
    }


def linear(name: str, n_in: int, n_out: int, *, bias: bool = True) -> Operation:
    """Return a linear map of the last axis."""
    return {"op": "linear", "name": name, "in": n_in, "out": n_out, "bias": bias}


def tied_linear(name: str, n_in: int, n_out: int, *, tied: str) -> Operation:
    """Return a linear map that shares the weight of the embedding `tied`."""
    return {**linear(name, n_in, n_out, bias=False), "tied": tied}


def activation(name: str, function: str) -> Operation:
    """Return an activation."""
    return {"op": "activation", "name": name, "function": function}


def dropout(name: str, share: float) -> Operation:
    """Return a dropout of that share."""
    return {"op": "dropout", "name": name, "share": share}


def flatten(name: str = "flatten") -> Operation:
    """Return a flattening to one axis."""
    return {"op": "flatten", "name": name}


def batch_norm(name: str, features: int, *, dims: int) -> Operation:
    """Return a batch normalisation."""
    return {"op": "batch_norm", "name": name, "dims": dims, "features": features}


def global_pool(name: str, *, dims: int) -> Operation:
    """Return the mean over all positions."""
    return {"op": "global_pool", "name": name, "dims": dims}


def residual(
    name: str, body: Sequence[Operation], shortcut: Sequence[Operation] = ()
) -> Operation:
    """Return the sum of a body and a shortcut, the identity when empty."""
    return {"op": "residual", "name": name, "body": list(body), "shortcut": list(shortcut)}


def product(name: str, body: Sequence[Operation], shortcut: Sequence[Operation]) -> Operation:
    """Return the product of a body and a shortcut, number by number."""
    return {"op": "product", "name": name, "body": list(body), "shortcut": list(shortcut)}


def self_attention(name: str, channels: int, *, dims: int, inner: int) -> Operation:
    """Return 3D-ResAttNet's attention between positions."""
    return {
        "op": "self_attention",
        "name": name,
        "dims": dims,
        "channels": channels,
        "inner": inner,
    }


def embedding(
    name: str, vocabulary: int, width: int, length: int, *, positions: bool = True
) -> Operation:
    """Return an embedding of tokens and, unless told otherwise, positions."""
    found = {
        "op": "embedding",
        "name": name,
        "vocabulary": vocabulary,
        "width": width,
        "length": length,
    }
    return found if positions else {**found, "positions": False}


def layer_norm(name: str, features: int) -> Operation:
    """Return a normalisation of the last axis."""
    return {"op": "layer_norm", "name": name, "features": features}


def causal_attention(name: str, width: int, heads: int) -> Operation:
    """Return attention of every position to itself and those before."""
    return {"op": "causal_attention", "name": name, "width": width, "heads": heads}


def rms_norm(name: str, features: int) -> Operation:
    """Return a normalisation of the last axis by its root mean square."""
    return {"op": "rms_norm", "name": name, "features": features}


def rotary_attention(name: str, width: int, heads: int, key_heads: int) -> Operation:
    """Return causal attention with rotary positions, several queries to a key."""
    return {
        "op": "rotary_attention",
        "name": name,
        "width": width,
        "heads": heads,
        "key_heads": key_heads,
    }


def experts(name: str, width: int, inner: int, n_experts: int, n_chosen: int) -> Operation:
    """Return a mixture of gated feed-forward experts, of which each token meets some."""
    return {
        "op": "experts",
        "name": name,
        "width": width,
        "inner": inner,
        "experts": n_experts,
        "chosen": n_chosen,
    }
