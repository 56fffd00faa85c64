"""Keep what a run of a plan measured, so that the next fit learns from it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import Dataset, TimeBasis, save_store
from paceline.measurement._machine import describe_machine, load_average
from paceline.measurement._run_plan import PlanRun
from paceline.scenario import DEGREES, Scenario
from paceline.space import Kind, Role

# how a job is scaled; all else of a scenario says what it is
_EXTRINSIC = (
    *("cluster", "n_devices", "global_batch"),
    *(*DEGREES, "shard", "micro_batches", "schedule", "virtual_stages", "recompute"),
)


def store_run(run: PlanRun, path: str | Path) -> None:
    """Add the row of a run to a store, or make one.

    Raises
    ------
    InvalidInputError
        When the store has other parameters: runs of one workload go into one store.
    """
    save_store(dataset_of_run(run), path, append=Path(path).exists())


def dataset_of_run(run: PlanRun) -> Dataset:
    """Return one run as a dataset of one row, its scenario the parameters."""
    return scenarios_dataset(
        [run.scenario],
        [run.times_s],
        provenance={
            "source": "paceline run",
            "machine": describe_machine(),
            "load": load_average(),
            "predicted": dict(run.plan.predicted),
        },
    )


def scenarios_dataset(
    scenarios: Sequence[Scenario],
    times_s: Sequence[Sequence[float]],
    provenance: Mapping[str, Any] | None = None,
) -> Dataset:
    """Return measured scenarios of one workload as a dataset."""
    rows = [scenario.to_row() for scenario in scenarios]
    kinds: dict[str, Kind] = {name: _kind(rows[0][name]) for name in rows[0]}
    roles: dict[str, Role] = {
        name: "extrinsic" if name in _EXTRINSIC else "intrinsic" for name in rows[0]
    }
    columns = {
        name: [
            str(row[name]) if kinds[name] == "categorical" else float(row[name]) for row in rows
        ]
        for name in rows[0]
    }
    return Dataset(
        X=pd.DataFrame(columns),
        y=pd.Series([statistics.median(t) for t in times_s], dtype=np.float64, name="time_s"),
        roles=roles,
        kinds=kinds,
        basis=TimeBasis(time_per="step", batch="global_batch"),
        times_s=tuple(tuple(float(s) for s in t) for t in times_s),
        provenance=dict(provenance or {}),
    )


def _kind(value: object) -> Kind:
    return "numeric" if isinstance(value, int | float) else "categorical"
