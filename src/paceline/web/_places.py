"""Clusters and networks by name: shipped ones, or files of the folder and of nowhere else."""

from __future__ import annotations

from typing import Any

from paceline.clusters import Cluster, list_clusters, load_cluster
from paceline.scenario import Plan
from paceline.web._folder import Folder


def find_cluster(folder: Folder, name: str) -> Cluster:
    """Return a cluster of the catalogue, or one whose file is in the folder.

    Raises
    ------
    InvalidInputError
        When it is neither.
    """
    if name in list_clusters() or not name.endswith(".toml"):
        return load_cluster(name) if name in list_clusters() else _refuse(name)
    return load_cluster(folder.find(name))


def find_graph(folder: Folder, plan: Plan) -> Any:
    """Return the layers of a plan's network; None when only the user's own code knows them."""
    from paceline.workloads import load_graph, load_workload

    name = plan.workload.get("name")
    if not isinstance(name, str):
        return None  # a module: to look at a plan must not run anybody's code
    if name.endswith(".toml"):
        return load_graph(folder.find(name))
    return load_workload(name).graph(plan.workload.get("values", {}))


def _refuse(name: str) -> Cluster:
    from paceline.errors import UnknownNameError

    raise UnknownNameError("cluster", name[:60], list_clusters())
