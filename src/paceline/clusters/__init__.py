"""Devices, links and machines, and what a collective between them costs."""

from __future__ import annotations

from paceline.clusters._algorithms import ALGORITHMS
from paceline.clusters._catalogue import list_clusters, load_cluster, save_cluster
from paceline.clusters._cluster import (
    PRECISIONS,
    Cluster,
    Device,
    DeviceGroup,
    Kernel,
    Level,
    Link,
)
from paceline.clusters._collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    parameter_server,
    point_to_point,
    reduce_scatter,
)
from paceline.clusters._compute import around_time, kernel_time, update_time
from paceline.clusters._spans import Group
from paceline.clusters._toml import cluster_from_dict, cluster_to_dict

__all__ = [
    "ALGORITHMS",
    "PRECISIONS",
    "Cluster",
    "Device",
    "DeviceGroup",
    "Group",
    "Kernel",
    "Level",
    "Link",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "around_time",
    "broadcast",
    "cluster_from_dict",
    "cluster_to_dict",
    "kernel_time",
    "list_clusters",
    "load_cluster",
    "parameter_server",
    "point_to_point",
    "reduce_scatter",
    "save_cluster",
    "update_time",
]
