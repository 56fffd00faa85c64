"""Ways to divide a step, one file each."""

from __future__ import annotations

from paceline.oracle.strategies._base import (
    GRADIENTS,
    HALO,
    LAYERWISE,
    PLACING,
    TRANSFERS,
    Division,
    Exchange,
    Limit,
    Message,
    Shares,
    strides,
)
from paceline.oracle.strategies.channel import ChannelDivision
from paceline.oracle.strategies.context import ContextDivision
from paceline.oracle.strategies.expert import ExpertDivision
from paceline.oracle.strategies.filter import FilterDivision
from paceline.oracle.strategies.spatial import SpatialDivision
from paceline.oracle.strategies.tensor import TensorDivision

# those that divide work inside layers; data, shards, pipelines divide whole steps
DIVISIONS: tuple[Division, ...] = (
    FilterDivision(),
    ChannelDivision(),
    TensorDivision(),
    SpatialDivision(),
    ContextDivision(),
    ExpertDivision(),
)

__all__ = [
    "DIVISIONS",
    "GRADIENTS",
    "HALO",
    "LAYERWISE",
    "PLACING",
    "TRANSFERS",
    "Division",
    "Exchange",
    "Limit",
    "Message",
    "Shares",
    "strides",
]
