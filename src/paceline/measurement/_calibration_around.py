"""What workers do around the exchanges of divided, sharded and piped networks.

Copies into and out of messages, and the books of the libraries: whatever an exchange takes beyond
what the link says, as lines of the size of its tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from paceline import clusters
from paceline.clusters import Cluster, Kernel

FloatArray = NDArray[np.float64]
Rows = Sequence[Mapping[str, Any]]

# by stage: weights that are gathered, gradients that are scattered
_SHARDED = {2: (1, 1), 3: (2, 1)}
_LEAST_S = 2e-5  # less is noise


def fit_divided(cluster: Cluster, rows: Rows, n_workers: int) -> dict[str, Kernel]:
    """Return a line for every exchange between divided layers, from rows with and without it."""
    kernels = {}
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        n_bytes, sent, seconds, alone = (
            np.array([row[key] for row in own], dtype=float)
            for key in ("n_bytes", "sent_bytes", "seconds", "alone_s")
        )
        columns = np.column_stack([np.ones_like(n_bytes), n_bytes])
        rest = seconds - alone - _link_s(cluster, kind, sent, n_workers)
        launch, slope = _line(columns, rest, seconds - alone)
        kernels[f"divided_{kind}"] = Kernel(launch_s=launch, s_per_output_byte=slope)
    return kernels


def fit_sharded(cluster: Cluster, rows: Rows, n_workers: int) -> dict[str, Kernel]:
    """Return lines of gathered weights and scattered gradients, from rows of whole steps.

    A step of a sharded network is that of the whole one, the exchanges of its units as the link
    has them, and these lines.
    """
    columns, rest, steps = [], [], []
    whole = {_key(row): row["seconds"] for row in rows if row["stage"] == 0}
    for row in (row for row in rows if row["stage"]):
        n, n_bytes = row["n_units"], float(row["n_bytes"])
        gathers, scatters = _SHARDED[row["stage"]]
        link = gathers * _link_s(cluster, "all_gather", n_bytes, n_workers)
        link = link + scatters * _link_s(cluster, "reduce_scatter", n_bytes, n_workers)
        columns.append([n * x for x in (gathers, gathers * n_bytes, scatters, scatters * n_bytes)])
        rest.append(row["seconds"] - whole[_key(row)] - n * float(link))
        steps.append(row["seconds"])
    found = _line(np.array(columns, dtype=float), np.array(rest), np.array(steps))
    return {
        "sharded_all_gather": Kernel(launch_s=found[0], s_per_output_byte=found[1]),
        "sharded_reduce_scatter": Kernel(launch_s=found[2], s_per_output_byte=found[3]),
    }


def fit_piped(rows: Rows) -> dict[str, Kernel]:
    """Return the line of a micro-batch that sends one message and receives another."""
    if not rows:
        return {}
    alone, talking = (
        np.array([row["seconds"] for row in rows if row["talks"] == talks])
        for talks in (False, True)
    )
    n_bytes = np.array([row["n_bytes"] for row in rows if row["talks"]], dtype=float)
    columns = np.column_stack([np.ones_like(n_bytes), n_bytes])
    launch, slope = _line(columns, talking - alone, talking)
    return {"piped_point_to_point": Kernel(launch_s=launch, s_per_output_byte=slope)}


def _key(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["n_units"], row["n_bytes"]


def _link_s(cluster: Cluster, kind: str, n_bytes: Any, n_workers: int) -> FloatArray:
    if kind == "point_to_point":
        return clusters.point_to_point(cluster, n_bytes)
    found: FloatArray = getattr(clusters, kind)(cluster, n_bytes, n_workers)
    return found


def _line(columns: FloatArray, rest: FloatArray, whole: FloatArray) -> list[float]:
    """Return slopes, none negative, that explain what is left, relative to the whole."""
    weights = 1.0 / np.maximum(whole, _LEAST_S)
    scale = np.maximum(columns.max(axis=0), 1e-300)
    found, _ = nnls(columns / scale * weights[:, None], np.maximum(rest, 0.0) * weights)
    return [float(x) for x in found / scale]
