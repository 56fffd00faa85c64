"""Time, traffic and memory of a step from first principles."""

from __future__ import annotations

from paceline.oracle._cut_step import CutStep, cut_step
from paceline.oracle._dealt import (
    SpatialBlocks,
    divided_layers,
    spatial_blocks,
    tensor_roles,
)
from paceline.oracle._enumerate import (
    ALL,
    SPARING,
    enumerate_strategies,
    list_strategies,
)
from paceline.oracle._epochs import known_samples
from paceline.oracle._feature_names import SHAPE_NAMES, STRATEGY_NAMES
from paceline.oracle._feature_roles import (
    Roles,
    further_columns,
    replaced_columns,
    roles_of,
    strategy_columns,
    tells_shape,
)
from paceline.oracle._features import ORACLE_FEATURES, oracle_features
from paceline.oracle._knee import Knee, knee, knees
from paceline.oracle._overlap import assign_buckets, communication_time, exposed_communication
from paceline.oracle._paleo import (
    paleo_exchange_time,
    paleo_hybrid_time,
    paleo_layer_times,
    paleo_step_time,
)
from paceline.oracle._paradl import paradl_epoch
from paceline.oracle._paradl_nouns import ParadlCosts, ParadlLayers, ParadlRun
from paceline.oracle._paradl_tables import paradl_layers
from paceline.oracle._predict import predict, predict_frame
from paceline.oracle._result import BOTTLENECKS, SECONDS, TRAFFIC, SweepResult
from paceline.oracle._schedules import PipelineRun, simulate
from paceline.oracle._schedules_forms import (
    pipeline_time,
    steady_step_time,
    torchgpipe_transfer_time,
)
from paceline.oracle._schedules_order import Pass, check_order, schedule_order
from paceline.oracle._schedules_unequal import unequal_pass_time
from paceline.oracle._survey import Survey, survey
from paceline.oracle._sweep import sweep

__all__ = [
    "ALL",
    "BOTTLENECKS",
    "ORACLE_FEATURES",
    "SECONDS",
    "SHAPE_NAMES",
    "SPARING",
    "STRATEGY_NAMES",
    "TRAFFIC",
    "CutStep",
    "Knee",
    "ParadlCosts",
    "ParadlLayers",
    "ParadlRun",
    "Pass",
    "PipelineRun",
    "Roles",
    "SpatialBlocks",
    "Survey",
    "SweepResult",
    "assign_buckets",
    "check_order",
    "communication_time",
    "cut_step",
    "divided_layers",
    "enumerate_strategies",
    "exposed_communication",
    "further_columns",
    "knee",
    "knees",
    "known_samples",
    "list_strategies",
    "oracle_features",
    "paleo_exchange_time",
    "paleo_hybrid_time",
    "paleo_layer_times",
    "paleo_step_time",
    "paradl_epoch",
    "paradl_layers",
    "pipeline_time",
    "predict",
    "predict_frame",
    "replaced_columns",
    "roles_of",
    "schedule_order",
    "simulate",
    "spatial_blocks",
    "steady_step_time",
    "strategy_columns",
    "survey",
    "sweep",
    "tells_shape",
    "tensor_roles",
    "torchgpipe_transfer_time",
    "unequal_pass_time",
]
