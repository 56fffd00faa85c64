"""Columns that the oracle works out, for a table of trials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.clusters import Cluster, cluster_to_dict
from paceline.oracle._columns import Columns, columns_of
from paceline.oracle._feature_roles import Roles, roles_of
from paceline.oracle._feature_rows import Rows
from paceline.oracle._keys import distinct
from paceline.oracle._precision import numbers_of
from paceline.oracle._result import SweepResult
from paceline.oracle._sweep import sweep
from paceline.oracle.strategies import DIVISIONS
from paceline.scenario import StrategyTable

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

# in the order in which they are preferred: of two that say the same the first is kept
ORACLE_FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "oracle_step_s": "seconds of a step as the oracle predicts them",
        "device_flop": "FLOP of both passes per device and step",
        "moved_bytes": "bytes that layers read and write per device and step",
        "exchange_bytes": "bytes of gradients and weights exchanged per step, at least 1 KiB",
        "layerwise_bytes": "bytes of collectives inside layers per step, at least 1 KiB",
        "transfer_bytes": "bytes between the stages of a pipeline per step, at least 1 KiB",
        "bubble_factor": "how many times longer a step takes by the pipeline's bubble",
        "device_memory_bytes": "bytes of memory of the fullest device",
    }
)
_LEAST_BYTES = 1024.0  # traffic of one device is nothing, which has no logarithm
_PASSES = 3.0  # over inputs, outputs and weights: one forward, two backward
_MOST_KEPT = 200_000

_Key = tuple[Any, ...]
_kept: dict[_Key, tuple[float, ...]] = {}


def oracle_features(values: pd.DataFrame, workload: str = "", *, cluster: Cluster) -> pd.DataFrame:
    """Return what the oracle says of every row.

    Parameters
    ----------
    values
        One trial per row: parameters of the workload, or the shape of a Transformer
        (`SHAPE_NAMES`); batch, number of devices and degrees (`STRATEGY_NAMES`; without degrees
        all devices are replicas). Other columns are ignored.
    workload
        Name of the workload; empty: the column ``workload`` names it, or, without one, rows are
        Transformers by their shape.
    cluster
        What it runs on.

    Returns
    -------
    DataFrame
        The columns of `ORACLE_FEATURES`.

    Raises
    ------
    UnknownNameError
        When there is no such workload.
    InvalidInputError
        When a row cannot be worked out; names the row and says why.

    Examples
    --------
    >>> import pandas as pd
    >>> from paceline.clusters import load_cluster
    >>> trials = pd.DataFrame({"n_devices": [8, 16], "device_batch": [32, 32]})
    >>> found = oracle_features(trials, "resnet50", cluster=load_cluster("abci"))
    >>> found["device_flop"].tolist()
    [785106206720.0, 785106206720.0]
    """
    roles = roles_of(values, workload)
    codes, first = _distinct(values, roles)
    rows = Rows(
        values=values[roles.columns].iloc[first], numbers=first + 1, roles=roles, cluster=cluster
    )
    found = _remembered(rows)
    table = pd.DataFrame(found, columns=list(ORACLE_FEATURES), dtype=float)
    return pd.DataFrame(table.iloc[codes].set_axis(values.index))


def _distinct(values: pd.DataFrame, roles: Roles) -> tuple[Integers, Integers]:
    """Return which distinct scenario each row is, and the first row of each."""
    if not roles.columns:
        return np.zeros(len(values), dtype=np.int64), np.zeros(1, dtype=np.int64)
    groups = values.groupby(roles.columns, sort=False, dropna=False)
    codes: Integers = np.asarray(groups.ngroup(), dtype=np.int64)
    return codes, np.unique(codes, return_index=True)[1].astype(np.int64)


def _remembered(rows: Rows) -> list[tuple[float, ...]]:
    """Return the figures of every row, worked out where they are not known yet."""
    if len(_kept) + len(rows) > _MOST_KEPT:
        _kept.clear()
    same = (_fingerprint(rows.cluster), rows.roles.workload, tuple(rows.roles.columns))
    keys = [(*same, *row) for row in rows.values.itertuples(index=False, name=None)]
    missing = [i for i, key in enumerate(keys) if key not in _kept]
    if missing:
        for i, found in zip(missing, _work_out(rows.take(missing)), strict=True):
            _kept[keys[i]] = tuple(found)
    return [_kept[key] for key in keys]


def _fingerprint(cluster: Cluster) -> str:
    return json.dumps(cluster_to_dict(cluster), sort_keys=True)


def _work_out(rows: Rows) -> Array:
    """Return the figures of every row, those of one network at once."""
    graphs, table, batch = rows.scenarios()
    precisions, optimizers = rows.precisions(), rows.optimizers()
    _, which = np.unique([id(graph) for graph in graphs], return_inverse=True)
    groups = distinct([which, precisions, optimizers])
    found = np.empty((len(rows), len(ORACLE_FEATURES)))
    for code, first in enumerate(groups.first):
        part = np.flatnonzero(groups.which == code)
        precision = str(precisions[first])
        result = sweep(
            graphs[first],
            rows.cluster,
            table.take(part),
            global_batch=batch[part],
            optimizer=str(optimizers[first]),
            precision=precision,
        )
        if not result.is_possible.all():
            row = int((~result.is_possible).argmax())
            raise rows.refuse(int(part[row]), f"{result.why(row)}.")
        found[part] = _figures(result, numbers_of(precision, "sgd").scale)
    return found


def _figures(result: SweepResult, scale: float) -> Array:
    flop, moved = _work(columns_of(result.graph), result.table, result.global_batch, scale)
    payload = [
        np.maximum(result.figures[f"{kind}_payload_bytes"], _LEAST_BYTES)
        for kind in ("exchange", "layerwise", "transfer")
    ]
    bubble = result.step_s / (result.step_s - result.figures["bubble_s"])
    return np.column_stack([result.step_s, flop, moved, *payload, bubble, result.memory_bytes])


def _work(
    columns: Columns, table: StrategyTable, batch: Integers, scale: float
) -> tuple[Array, Array]:
    """Return FLOP and bytes moved by the mean device of every strategy."""
    compute = activation = weight = np.ones((1, len(columns)))
    for division in DIVISIONS:
        degrees, which = np.unique(table[division.degree], return_inverse=True)
        shares = division.shares(columns, degrees)
        compute = compute * shares.compute[which]
        activation = activation * shares.activation[which]
        weight = weight * shares.weight[which]
    again = table["recompute"]
    samples = batch / table["data"]
    forward = (compute * columns["forward_flop"]) @ columns.counts
    backward = (compute * columns["backward_flop"]) @ columns.counts
    passing = (activation * (columns["input_bytes"] + columns["output_bytes"])) @ columns.counts
    weights = (weight * columns["weight_bytes"]) @ columns.counts
    flop = samples * ((1 + again) * forward + backward)
    moved = scale * (samples * passing + table["micro_batches"] * weights) * (_PASSES + again)
    return flop / table["pipeline"], moved / table["pipeline"]
