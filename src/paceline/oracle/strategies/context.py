"""Context parallelism: the tokens of every sequence are dealt out.

As in the training of Llama 3 (arXiv 2407.21783, section 3.3.2): each device has a piece of every
sequence, and keys and values of the others are gathered before attention; going back they are
gathered again and their gradients reduce-scattered. Weights are on every device.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._columns import Columns
from paceline.oracle.strategies._base import (
    LAYERWISE,
    Division,
    Limit,
    Message,
    Shares,
    one,
)
from paceline.workloads import GraphLayer


class ContextDivision(Division):
    """Pieces of sequences."""

    degree = "context"
    summary = "tokens of every sequence are dealt out; keys and values are gathered"
    moves_samples = True

    def limit(self, columns: Columns) -> Limit:
        """No device without a token."""
        lengths = [(x.input_shape[0], x) for x in columns.layers if x.kind == "attention"]
        lengths = [pair for pair in lengths if "sequence" in pair[1].splits]
        if not lengths:
            return Limit(largest=1, reason="no attention layer has a sequence to divide")
        n, layer = min(lengths, key=lambda pair: pair[0])
        return Limit(
            largest=n,
            layer=layer.name,
            reason=f"({layer.kind}) has {n} tokens",
            divisors_only=True,
        )

    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Divide FLOP and activations of what runs along a sequence, not weights."""
        share = np.where(columns.splits("sequence"), 1.0 / degree[:, None], 1.0)
        return Shares(compute=share, activation=share, weight=one(columns, degree))

    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """Gather keys and values twice, and reduce-scatter their gradients."""
        n_bytes = np.array([_key_value_bytes(layer) for layer in columns.layers])
        sent = np.broadcast_to(n_bytes, (len(degree), len(columns)))
        common = {"cause": LAYERWISE, "n_bytes": sent, "n": degree, "stride": np.ones_like(degree)}
        return (
            Message(collective="all_gather", forward=1, backward=1, **common),  # type: ignore[arg-type]
            Message(collective="reduce_scatter", backward=1, **common),  # type: ignore[arg-type]
        )


def _key_value_bytes(layer: GraphLayer) -> float:
    """Return the bytes of keys and values of one sample.

    The maps of queries and outputs are width x width, those of keys and values what is left of
    the parameters: fewer where several heads share them.
    """
    if layer.kind != "attention" or "sequence" not in layer.splits:
        return 0.0
    if not layer.n_parameters:
        return 2.0 * layer.output_bytes
    maps = layer.n_parameters / max(layer.n_channels, 1) ** 2
    return layer.input_bytes * min(max(maps - 2.0, 0.0), 2.0)
