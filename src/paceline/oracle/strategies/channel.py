"""Channel parallelism: input channels are dealt out.

ParaDL (arXiv 2104.09075), table III, row "channel": every device has some input channels of every
convolution and linear map but the first; outputs are added up, and going back the gradients of
the input are gathered.
"""

from __future__ import annotations

import math

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
    share_of,
    smallest,
)
from paceline.oracle.strategies._maps import divided_maps
from paceline.workloads import GraphLayer


class ChannelDivision(Division):
    """Input channels of convolutions and linear maps."""

    degree = "channel"
    summary = "input channels of convolutions and linear maps are dealt out"

    def limit(self, columns: Columns) -> Limit:
        """Bound: p <= min C_l from the second layer on (table III, last column)."""
        return smallest(columns, divided_maps(columns, "channel"), "n_channels", "channels")

    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Divide FLOP and weights, not activations; every device adds all of a bias."""
        share = share_of(columns["n_channels"], degree, divided_maps(columns, "channel"))
        n = np.maximum(columns["n_parameters"], 1.0)
        bias = np.array([_bias(layer) for layer in columns.layers]) / n
        weight = share + bias * (1.0 - share)
        return Shares(compute=share, activation=one(columns, degree), weight=weight)

    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """3 (p - 1) sum_l (a + B |y_l| d b / p): an all-reduce and an all-gather."""
        divided, stride = divided_maps(columns, "channel"), np.ones_like(degree)
        shape = (len(degree), len(columns))
        y = np.where(divided, columns["output_bytes"], 0.0)
        # parts are equally large, so the last one may be filled up
        filled = share_of(columns["n_channels"], degree, divided) * degree[:, None]
        x = np.where(divided, columns["input_bytes"] * filled, 0.0)
        return (
            Message(
                cause=LAYERWISE,
                collective="all_reduce",
                n_bytes=np.broadcast_to(y, shape),
                n=degree,
                stride=stride,
                forward=1,
            ),
            Message(
                cause=LAYERWISE,
                collective="all_gather",
                n_bytes=x,
                n=degree,
                stride=stride,
                backward=1,
            ),
        )


def _bias(layer: GraphLayer) -> int:
    return max(layer.n_parameters - math.prod(layer.weight_shape), 0) if layer.weight_shape else 0
