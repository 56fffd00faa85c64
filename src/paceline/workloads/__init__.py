"""What is trained: networks as plain data, their layers, and named workloads with parameters."""

from __future__ import annotations

from paceline.workloads._base import Workload
from paceline.workloads._features import (
    BATCH_NAMES,
    LAYER_FEATURES,
    layer_features,
    shaping_parameters,
)
from paceline.workloads._graph import SPLITS, GraphLayer, LayerGraph
from paceline.workloads._graph_file import load_graph, save_graph
from paceline.workloads._layers import layer_table, totals
from paceline.workloads._load import list_workloads, load_workload
from paceline.workloads._module import LOSSES, ModuleWorkload
from paceline.workloads._network import Layer, Network
from paceline.workloads._network_graph import layer_graph
from paceline.workloads._own import ScriptWorkload
from paceline.workloads._sampling import sample_buildable
from paceline.workloads._trace import trace_module
from paceline.workloads._trace_file import trace_file

__all__ = [
    "BATCH_NAMES",
    "LAYER_FEATURES",
    "LOSSES",
    "SPLITS",
    "GraphLayer",
    "Layer",
    "LayerGraph",
    "ModuleWorkload",
    "Network",
    "ScriptWorkload",
    "Workload",
    "layer_features",
    "layer_graph",
    "layer_table",
    "list_workloads",
    "load_graph",
    "load_workload",
    "sample_buildable",
    "save_graph",
    "shaping_parameters",
    "totals",
    "trace_file",
    "trace_module",
]
