"""Layer parallelism without a pipeline: one stage works at a time.

ParaDL (arXiv 2104.09075), table III, row "layer": compute as on one device, and
2 sum_i (a + B |y_i| d b) to hand activations and their gradients over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SUMMARY = "layers are cut into stages that work one after another"


def sequential_time(forward: Array, backward: Array, sent: Array, n: Array) -> Array:
    """Return the step: every micro-batch goes there and back before the next one starts.

    Parameters
    ----------
    forward, backward
        Seconds of a micro-batch by scenario (rows) and stage (columns).
    sent
        Seconds of a transfer to the next stage, one column less.
    n
        Micro-batches, by scenario.
    """
    total = forward.sum(axis=1) + backward.sum(axis=1) + 2 * sent.sum(axis=1)
    return np.asarray(n * total)
