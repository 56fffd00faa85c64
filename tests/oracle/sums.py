"""Sums over layers, written out one layer at a time."""

from __future__ import annotations

import numpy as np

from paceline.clusters import Cluster, kernel_time, update_time
from paceline.workloads import LayerGraph


def passes(graph: LayerGraph, cluster: Cluster, samples: float) -> tuple[np.ndarray, np.ndarray]:
    """Forward and backward seconds of every layer, one layer at a time."""
    found = []
    for backward in (False, True):
        found.append(
            [
                float(
                    kernel_time(
                        cluster.device,
                        kind=layer.kind,
                        flop=samples * (layer.backward_flop if backward else layer.forward_flop),
                        input_bytes=samples * layer.input_bytes,
                        output_bytes=samples * layer.output_bytes,
                        weight_bytes=layer.weight_bytes,
                        backward=backward,
                    )
                )
                for layer in graph.layers
            ]
        )
    return np.array(found[0]), np.array(found[1])


def update(graph: LayerGraph, cluster: Cluster, optimizer: str = "adam") -> float:
    weights = graph.column("n_parameters") * 4
    return float(update_time(cluster.device, weights, optimizer=optimizer).sum())


def units(graph: LayerGraph, figures: np.ndarray) -> np.ndarray:
    return np.array([figures[first:end].sum() for first, end in graph.units])
