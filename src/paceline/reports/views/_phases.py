"""Phases, speedup and load imbalance of a campaign, as numbers for a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.estimators import PHASES, PhaseTable
from paceline.explainers import PhaseExplanation
from paceline.measurement import PhaseRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseBar:
    """Where a step goes: seconds by phase, in their order, and the whole step as it is run.

    `step_s` is with overlap, so it may be shorter than the phases one after the other.
    """

    network: str
    framework: str
    n_workers: int
    phases_s: dict[str, float]
    step_s: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupCurve:
    """Measured and predicted speedup of one network and framework, from one worker on."""

    network: str
    framework: str
    n_workers: tuple[int, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBar:
    """What one worker spends on its own work in a step, by phase."""

    network: str
    framework: str
    n_workers: int
    worker: int
    phases_s: dict[str, float]
    wait_s: float

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


def view_phases(explanation: PhaseExplanation) -> tuple[PhaseBar, ...]:
    """Return one bar per network, framework and number of workers."""
    bars = []
    keys = ["network", "framework", "n_workers"]
    for (network, framework, n), own in explanation.phases.groupby(keys, sort=True):
        means = dict(zip(own["phase"], own["mean_s"], strict=True))
        bars.append(
            PhaseBar(
                network=str(network),
                framework=str(framework),
                n_workers=int(str(n)),
                phases_s={p: float(means[p]) for p in PHASES if p in means},
                step_s=_overlapped(explanation.steps, network, framework, n),
            )
        )
    return tuple(bars)


def _overlapped(steps: pd.DataFrame, network: Any, framework: Any, n: Any) -> float | None:
    own = steps[
        (steps["network"] == network)
        & (steps["framework"] == framework)
        & (steps["n_workers"] == n)
        & (steps["equation"] == "measured, overlapped")
    ]
    return float(own["step_s"].iloc[0]) if len(own) else None


def view_speedup(explanation: PhaseExplanation) -> tuple[SpeedupCurve, ...]:
    """Return measured and predicted speedup; networks without a run on one worker left out."""
    table = explanation.speedup
    if not len(table) or "measured" not in table:
        return ()
    curves = []
    known = table[table["problem"] == ""].sort_values("n_workers")
    for (network, framework), own in known.groupby(["network", "framework"]):
        curves.append(
            SpeedupCurve(
                network=str(network),
                framework=str(framework),
                n_workers=(1, *(int(n) for n in own["n_workers"])),
                measured=(1.0, *map(float, own["measured"])),
                predicted=(1.0, *map(float, own["exposed_shared"])),
            )
        )
    return tuple(curves)


def view_workers(runs: Sequence[PhaseRun]) -> tuple[WorkerBar, ...]:
    """Return what every worker of runs on several workers spends by phase, mean over its steps."""
    bars = []
    for run in runs:
        if run.n_workers < 2:
            continue
        table = PhaseTable.join(run.lives)
        means = {p: table.of_phase(p).mean(axis=0) for p in (*table.own_phases, "wait")}
        for worker in range(run.n_workers):
            bars.append(
                WorkerBar(
                    network=run.network,
                    framework=run.executor,
                    n_workers=run.n_workers,
                    worker=worker,
                    phases_s={p: float(means[p][worker]) for p in table.own_phases},
                    wait_s=float(np.asarray(means["wait"])[worker]),
                )
            )
    return tuple(bars)
