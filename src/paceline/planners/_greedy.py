"""The baseline: walk along the chain and close a stage when it has its share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paceline.planners._chain import Chain, DeviceKind, Partition, check_stages, evaluate


def partition_greedily(
    chain: Chain, kinds: Sequence[DeviceKind] = (DeviceKind(),), order: Sequence[int] = (0,)
) -> Partition:
    """Return the partition that closes a stage once its share of the work is reached.

    This is what ParaDL's pipeline does (REFERENCE 3); memory is not looked at before.

    Parameters
    ----------
    chain
        What is cut.
    kinds
        Kinds of devices.
    order
        Kind of every stage in turn.
    """
    check_stages(chain, len(order))
    speeds = np.array([kinds[kind].speed for kind in order])
    wanted = np.cumsum(speeds)[:-1] / speeds.sum() * chain.work_s.sum()
    done = np.cumsum(chain.work_s)
    ends: list[int] = []
    for stage, share in enumerate(wanted):
        first = ends[-1] if ends else 0
        left = len(chain) - (len(order) - stage - 1)  # the later stages need a unit each
        end = int(np.searchsorted(done, share * (1 - 1e-12))) + 1
        ends.append(min(max(end, first + 1), left))
    ends.append(len(chain))
    step_s = evaluate(chain, ends, kinds, order)
    return Partition(ends=tuple(ends), kinds=tuple(order), step_s=step_s)
