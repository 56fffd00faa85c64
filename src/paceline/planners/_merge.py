"""Layer-wise partition and merge (REFERENCE 2, our design).

Start from the finest pieces; merge the adjacent pair whose hand-over costs most as long as the
merged piece stays within its share; then move boundaries while the step gets shorter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paceline.planners._chain import Chain, DeviceKind, Partition, check_stages, evaluate

SLACKS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)  # how far above its share a piece may get


def partition_and_merge(
    chain: Chain,
    kinds: Sequence[DeviceKind] = (DeviceKind(),),
    order: Sequence[int] = (0,),
    *,
    slacks: Sequence[float] = SLACKS,
) -> Partition:
    """Return the best of some balance bounds, each merged and refined.

    Parameters
    ----------
    chain
        What is cut.
    kinds
        Kinds of devices.
    order
        Kind of every stage in turn.
    slacks
        Balance bounds to try.
    """
    check_stages(chain, len(order))
    found = []
    for slack in slacks:
        ends = _refine(chain, kinds, order, _merge(chain, len(order), slack))
        found.append((evaluate(chain, ends, kinds, order), ends))
    step_s, ends = min(found)
    return Partition(ends=ends, kinds=tuple(order), step_s=step_s)


def _merge(chain: Chain, n_stages: int, slack: float) -> tuple[int, ...]:
    """Return the ends of the pieces after merging."""
    ends = list(range(1, len(chain) + 1))
    limit = (1 + slack) * chain.work_s.sum() / n_stages
    work = list(chain.work_s)
    while len(ends) > n_stages:
        pairs = [
            (work[i] + work[i + 1], chain.cut_s[ends[i] - 1], i) for i in range(len(work) - 1)
        ]
        within = [pair for pair in pairs if pair[0] <= limit]
        i = max(within, key=lambda pair: (pair[1], -pair[0]))[2] if within else min(pairs)[2]
        work[i : i + 2] = [work[i] + work[i + 1]]
        del ends[i]
    return tuple(ends)


def _refine(
    chain: Chain, kinds: Sequence[DeviceKind], order: Sequence[int], ends: tuple[int, ...]
) -> tuple[int, ...]:
    """Move one boundary at a time while the step gets shorter."""
    best = evaluate(chain, ends, kinds, order)
    while True:
        neighbours = [n for n in _neighbours(ends) if n]
        times = [evaluate(chain, n, kinds, order) for n in neighbours]
        if not times or min(times) >= best * (1 - 1e-12):
            return ends
        best, ends = min(times), neighbours[int(np.argmin(times))]


def _neighbours(ends: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the partitions with one boundary moved by one to four units."""
    found = []
    for i in range(len(ends) - 1):
        before = ends[i - 1] if i else 0
        for shift in (-4, -3, -2, -1, 1, 2, 3, 4):
            moved = ends[i] + shift
            if before < moved < ends[i + 1]:
                found.append((*ends[:i], moved, *ends[i + 1 :]))
    return found
