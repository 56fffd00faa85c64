"""Time, traffic and memory of a step from first principles."""

from __future__ import annotations

from paceline.oracle._overlap import assign_buckets, communication_time, exposed_communication
from paceline.oracle._schedules import PipelineRun, simulate
from paceline.oracle._schedules_forms import (
    pipeline_time,
    steady_step_time,
    torchgpipe_transfer_time,
)
from paceline.oracle._schedules_order import Pass, check_order, schedule_order
from paceline.oracle._schedules_unequal import unequal_pass_time

__all__ = [
    "Pass",
    "PipelineRun",
    "assign_buckets",
    "check_order",
    "communication_time",
    "exposed_communication",
    "pipeline_time",
    "schedule_order",
    "simulate",
    "steady_step_time",
    "torchgpipe_transfer_time",
    "unequal_pass_time",
]
