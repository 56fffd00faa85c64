"""Choose how a network is cut, placed and scheduled."""

from __future__ import annotations

from paceline.planners._baselines import (
    place_at_random,
    place_by_annealing,
    place_by_assignment,
    place_greedily,
    place_round_robin,
)
from paceline.planners._chain import Chain, DeviceKind, Partition
from paceline.planners._exact import partition_exactly
from paceline.planners._genetic import place_genetically
from paceline.planners._greedy import partition_greedily
from paceline.planners._merge import partition_and_merge
from paceline.planners._placement import Placement, PlacementProblem
from paceline.planners._placement_exact import place_exactly

__all__ = [
    "Chain",
    "DeviceKind",
    "Partition",
    "Placement",
    "PlacementProblem",
    "partition_and_merge",
    "partition_exactly",
    "partition_greedily",
    "place_at_random",
    "place_by_annealing",
    "place_by_assignment",
    "place_exactly",
    "place_genetically",
    "place_greedily",
    "place_round_robin",
]
