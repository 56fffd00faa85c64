"""Tensor parallelism of Transformers and of chains of linear maps.

Megatron-LM (Shoeybi et al., arXiv 1909.08053, section 3): a linear map divided by its outputs is
followed by one divided by its inputs, so that one all-reduce forward and one backward serve both;
attention is divided by heads in the same way, every expert of a mixture by its inner width;
embedding and output map are divided by words.
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
    share_of,
    smallest,
)

_PAIRS = ("heads", "row", "mixture")  # behind which shares are added up


class TensorDivision(Division):
    """Heads and widths of pairs of linear maps."""

    degree = "tensor"
    summary = "heads and widths of pairs of linear maps are dealt out (Megatron-like)"

    def limit(self, columns: Columns) -> Limit:
        """Heads must be dealt out evenly; without heads, the narrowest pair limits.

        Networks with convolutions are refused: these would run on every device.
        """
        others = [x for x in columns.layers if x.kind == "conv"]
        if others or not columns.has_role(*_PAIRS).any():
            layer = max(others or columns.layers, key=lambda x: x.forward_flop)
            return Limit(
                largest=1,
                layer=layer.name,
                reason=f"({layer.kind}) is neither attention nor one of a pair of linear maps; "
                "take filter or channel",
            )
        heads = columns.has_role("heads")
        if heads.any():
            return smallest(columns, heads, "n_heads", "heads", divisors=True)
        return smallest(columns, columns.has_role("row"), "n_channels", "inputs")

    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Divide pairs whole; the input of a pair is on every device."""
        by_output = columns.has_role("column", "vocabulary_out", "mixture")
        divided = columns.has_role("heads", "row", "vocabulary_in", "inside") | by_output
        n = np.where(by_output, columns["n_filters"], columns["n_channels"])
        n = np.where(columns.has_role("heads"), columns["n_heads"], n)
        n = np.where(columns.has_role("inside"), np.inf, n)
        share = share_of(np.where(np.isinf(n), 2**40, n), degree, divided)
        kept = np.where(columns.has_role(*_PAIRS, "inside"), share, 1.0)
        return Shares(compute=share, activation=kept, weight=share)

    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """Two all-reduces forward and two backward per Transformer block (section 3, figure 4)."""
        y, x = columns["output_bytes"], columns["input_bytes"]
        forward = np.where(columns.has_role(*_PAIRS, "vocabulary_in"), y, 0.0)
        backward = np.where(columns.has_role(*_PAIRS), y, 0.0)
        backward = np.where(columns.has_role("vocabulary_out"), x, backward)
        return (
            _all_reduce(columns, degree, forward, forward=1),
            _all_reduce(columns, degree, backward, backward=1),
        )


def _all_reduce(
    columns: Columns,
    degree: NDArray[np.int64],
    n_bytes: NDArray[np.float64],
    *,
    forward: int = 0,
    backward: int = 0,
) -> Message:
    return Message(
        cause=LAYERWISE,
        collective="all_reduce",
        n_bytes=np.broadcast_to(n_bytes, (len(degree), len(columns))),
        n=degree,
        stride=np.ones_like(degree),
        forward=forward,
        backward=backward,
    )
