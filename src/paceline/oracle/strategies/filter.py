"""Filter parallelism: output channels are dealt out.

ParaDL (arXiv 2104.09075), table III, row "filter": every device has some filters of every
convolution and linear map, sees all of their input, and gathers their output; going back it
adds up the gradients of the input. Other layers run on every device.
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
    share_of,
    smallest,
)
from paceline.oracle.strategies._maps import divided_maps


class FilterDivision(Division):
    """Output channels of convolutions and linear maps."""

    degree = "filter"
    summary = "output channels of convolutions and linear maps are dealt out"

    def limit(self, columns: Columns) -> Limit:
        """Bound: p <= min F_l (table III, last column)."""
        return smallest(columns, divided_maps(columns, "filter"), "n_filters", "filters")

    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Divide FLOP and weights, not activations."""
        share = share_of(columns["n_filters"], degree, divided_maps(columns, "filter"))
        return Shares(compute=share, activation=one(columns, degree), weight=share)

    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """3 (p - 1) sum_l (a + B |y_l| d b / p): an all-gather and an all-reduce."""
        divided, stride = divided_maps(columns, "filter"), np.ones_like(degree)
        # parts are equally large, so the last one may be filled up
        filled = share_of(columns["n_filters"], degree, divided) * degree[:, None]
        y = np.where(divided, columns["output_bytes"] * filled, 0.0)
        # |x_l| = |y_(l-1)|; nobody needs the gradient of the network's input
        x = np.where(divided & ~columns.has_role("first"), columns["input_bytes"], 0.0)
        return (
            Message(
                cause=LAYERWISE,
                collective="all_gather",
                n_bytes=y,
                n=degree,
                stride=stride,
                forward=1,
            ),
            Message(
                cause=LAYERWISE,
                collective="all_reduce",
                n_bytes=np.broadcast_to(x, (len(degree), len(columns))),
                n=degree,
                stride=stride,
                backward=1,
            ),
        )
