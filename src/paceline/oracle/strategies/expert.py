"""Expert parallelism: the experts of a mixture are dealt out.

GShard (arXiv 2006.16668, section 3.2): devices of a group hold different samples and different
experts; tokens travel to their experts and back, one all-to-all each way, forward and backward.
All other weights are on every device. Assumes that tokens fall on experts evenly.
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
    smallest,
)
from paceline.workloads import GraphLayer


class ExpertDivision(Division):
    """Experts, and samples with them."""

    degree = "expert"
    summary = "experts of a mixture are dealt out, samples with them; tokens travel"
    moves_samples = True

    def limit(self, columns: Columns) -> Limit:
        """Experts must be dealt out evenly."""
        return smallest(columns, columns.splits("expert"), "n_experts", "experts", divisors=True)

    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Divide samples everywhere, weights where there are experts."""
        share = np.broadcast_to(1.0 / degree[:, None], (len(degree), len(columns)))
        weight = np.where(columns.splits("expert"), share, 1.0)
        return Shares(compute=share, activation=share, weight=weight)

    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """Two all-to-alls forward and two backward of what one device holds."""
        tokens = np.array([x.input_bytes * _experts_per_token(x) for x in columns.layers])
        return (
            Message(
                cause=LAYERWISE,
                collective="all_to_all",
                n_bytes=tokens / degree[:, None],
                n=degree,
                stride=np.ones_like(degree),
                forward=2,
                backward=2,
            ),
        )


def _experts_per_token(layer: GraphLayer) -> float:
    """Return how many experts see a token: its FLOP by those of one expert."""
    if "expert" not in layer.splits or not layer.n_parameters:
        return 0.0
    one = 2.0 * layer.n_parameters / layer.n_experts * layer.input_shape[0]
    return max(1.0, float(round(layer.forward_flop / one)))
