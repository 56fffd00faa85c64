"""Sharded data parallelism: replicas share out what each would hold in full.

ZeRO (Rajbhandari et al., arXiv 1910.02054), sections 5 and 7: stage 1 shares out the optimizer's
state, stage 2 gradients too, stage 3 weights too (as FSDP does). Stages 1 and 2 send as much as
data parallelism does (a reduce-scatter and an all-gather), stage 3 half as much again, since
weights are gathered forward and backward.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from paceline.oracle.strategies._base import Exchange
from paceline.oracle.strategies.data import BUFFERS

SUMMARY = "replicas share out optimizer state, gradients and weights (ZeRO, FSDP)"

_SCATTER = Exchange(collective="reduce_scatter", what="gradients", when="backward")
_SCATTER_ALL = Exchange(
    collective="reduce_scatter", what="gradients", when="backward", every_micro_batch=True
)
_GATHER_STEP = Exchange(collective="all_gather", what="weights", when="step", overlaps=False)
_GATHER_FORWARD = Exchange(
    collective="all_gather", what="weights", when="forward", every_micro_batch=True
)
_GATHER_BACKWARD = Exchange(
    collective="all_gather", what="weights", when="backward", every_micro_batch=True
)

# section 7: communication volume by stage; FSDP leaves every replica its own buffers
EXCHANGES: Mapping[int, tuple[Exchange, ...]] = {
    1: (BUFFERS, _SCATTER, _GATHER_STEP),
    2: (_SCATTER_ALL, _GATHER_STEP),
    3: (_SCATTER_ALL, _GATHER_FORWARD, _GATHER_BACKWARD),
}


def held_shares(shard: NDArray[np.int64], n: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    """Return the shares of state, gradients and weights that one of `n` replicas holds."""
    whole, part = np.ones(len(shard)), 1.0 / n
    return {
        "state": np.where(shard >= 1, part, whole),
        "gradients": np.where(shard >= 2, part, whole),
        "weights": np.where(shard >= 3, part, whole),
    }
