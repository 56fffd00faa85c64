"""Choose how a network is cut, placed and scheduled."""

from __future__ import annotations

from paceline.planners._chain import Chain, DeviceKind, Partition
from paceline.planners._exact import partition_exactly
from paceline.planners._greedy import partition_greedily
from paceline.planners._merge import partition_and_merge

__all__ = [
    "Chain",
    "DeviceKind",
    "Partition",
    "partition_and_merge",
    "partition_exactly",
    "partition_greedily",
]
