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
    padding: str = "same",
    bias: bool = True,
) -> Operation:
    """Return a convolution from and to so many channels.

    ``same`` padding adds ``kernel - 1`` zeros per axis, the odd one behind, at every stride: the
    output is ``ceil(size / stride)`` as in TensorFlow.
    """
    pair = [(kernel - 1) // 2, kernel // 2] if padding == "same" else [0, 0]
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


def pool(name: str, kernel: int, *, dims: int, stride: int, padding: int = 0) -> Operation:
    """Return a maximum pooling."""
    return {
        "op": "pool",
        "name": name,
        "dims": dims,
        "kernel": kernel,
        "stride": stride,
        "padding": [padding, padding],
        "kind": "max",
    }


def linear(name: str, n_in: int, n_out: int, *, bias: bool = True) -> Operation:
    """Return a linear map of the last axis."""
    return {"op": "linear", "name": name, "in": n_in, "out": n_out, "bias": bias}


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


def self_attention(name: str, channels: int, *, dims: int, inner: int) -> Operation:
    """Return 3D-ResAttNet's attention between positions."""
    return {
        "op": "self_attention",
        "name": name,
        "dims": dims,
        "channels": channels,
        "inner": inner,
    }


def embedding(name: str, vocabulary: int, width: int, length: int) -> Operation:
    """Return an embedding of tokens and positions."""
    return {
        "op": "embedding",
        "name": name,
        "vocabulary": vocabulary,
        "width": width,
        "length": length,
    }


def layer_norm(name: str, features: int) -> Operation:
    """Return a normalisation of the last axis."""
    return {"op": "layer_norm", "name": name, "features": features}


def causal_attention(name: str, width: int, heads: int) -> Operation:
    """Return attention of every position to itself and those before."""
    return {"op": "causal_attention", "name": name, "width": width, "heads": heads}
