"""A quick, nearly balanced cut of units into parts; planners find the best one."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_HALVINGS = 40


@lru_cache(maxsize=4096)
def cut_units(weights: tuple[float, ...], n_parts: int) -> NDArray[np.int64]:
    """Return the first unit of each of `n_parts` adjacent parts, and the end.

    The least bottleneck is found by halving; parts are filled up to it from the front, and those
    at the end keep a unit each.

    Examples
    --------
    >>> cut_units((1.0, 1.0, 1.0, 3.0), 2).tolist()
    [0, 3, 4]
    """
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    low, high = max(max(weights), sums[-1] / n_parts), sums[-1]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if len(_filled(sums, middle)) - 1 <= n_parts:
            high = middle
        else:
            low = middle
    return _exactly(_filled(sums, high), n_parts)


def _filled(sums: NDArray[np.float64], limit: float) -> list[int]:
    """Return the bounds of parts that are as full as `limit` allows."""
    bounds = [0]
    n = len(sums) - 1
    while bounds[-1] < n:
        end = int(np.searchsorted(sums, sums[bounds[-1]] + limit * (1 + 1e-12), side="right")) - 1
        bounds.append(max(end, bounds[-1] + 1))
    return bounds


def _exactly(bounds: list[int], n_parts: int) -> NDArray[np.int64]:
    """Split parts of several units until there are `n_parts`; no bottleneck grows by that."""
    found = list(bounds)
    while len(found) - 1 < n_parts:
        sizes = np.diff(found)
        i = int(np.argmax(sizes))
        found.insert(i + 1, found[i] + int(sizes[i]) // 2)
    return np.array(found)
