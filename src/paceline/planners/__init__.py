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
from paceline.planners._export import export_script
from paceline.planners._genetic import place_genetically
from paceline.planners._greedy import partition_greedily
from paceline.planners._links import link_matrices, place_stages, placement_problem
from paceline.planners._merge import partition_and_merge
from paceline.planners._mixed import share_out
from paceline.planners._objectives import pareto_front
from paceline.planners._parameters import BestParameters, best_parameters
from paceline.planners._placement import Placement, PlacementProblem
from paceline.planners._placement_exact import place_exactly
from paceline.planners._predictors import FitPredictor
from paceline.planners._schedule import compare_schedules, list_events
from paceline.planners._search import PlanSearch, plan_training, predicted_run, search_plans
from paceline.planners._shardings import (
    ShardingProblem,
    Shardings,
    search_shardings,
    shard_exactly,
    sharding_problem,
)
from paceline.planners._shortlist import PLANNED
from paceline.planners._task import OBJECTIVES, Predictor, Task
from paceline.planners._unequal import (
    PassTimes,
    UnequalSchedule,
    pass_times,
    search_unequal,
)

__all__ = [
    "OBJECTIVES",
    "PLANNED",
    "BestParameters",
    "Chain",
    "DeviceKind",
    "FitPredictor",
    "Partition",
    "PassTimes",
    "Placement",
    "PlacementProblem",
    "PlanSearch",
    "Predictor",
    "ShardingProblem",
    "Shardings",
    "Task",
    "UnequalSchedule",
    "best_parameters",
    "compare_schedules",
    "export_script",
    "link_matrices",
    "list_events",
    "pareto_front",
    "partition_and_merge",
    "partition_exactly",
    "partition_greedily",
    "pass_times",
    "place_at_random",
    "place_by_annealing",
    "place_by_assignment",
    "place_exactly",
    "place_genetically",
    "place_greedily",
    "place_round_robin",
    "place_stages",
    "placement_problem",
    "plan_training",
    "predicted_run",
    "search_plans",
    "search_shardings",
    "search_unequal",
    "shard_exactly",
    "sharding_problem",
    "share_out",
]
