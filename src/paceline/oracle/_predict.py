"""Single scenarios: what planners and people ask one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.errors import InfeasibleError
from paceline.oracle._result import SweepResult
from paceline.oracle._sweep import sweep
from paceline.scenario import Scenario


def predict(scenarios: Scenario | Iterable[Scenario]) -> NDArray[np.float64]:
    """Return the seconds of a step of every scenario.

    Raises
    ------
    InfeasibleError
        When a network or a batch does not take a strategy; says which layer and why.
    """
    return np.asarray(predict_frame(scenarios)["step_s"], dtype=float)


def predict_frame(scenarios: Scenario | Iterable[Scenario]) -> pd.DataFrame:
    """Return all figures of every scenario, one row each (`SweepResult.frame`)."""
    asked = [scenarios] if isinstance(scenarios, Scenario) else list(scenarios)
    frames: list[pd.DataFrame] = []
    places: list[int] = []
    for rows in _alike(asked):
        result = _sweep([asked[row] for row in rows])
        _refuse(result)
        frames.append(result.frame)
        places += rows
    if not frames:
        return pd.DataFrame({"step_s": pd.Series(dtype=float)})
    return pd.concat(frames, ignore_index=True).iloc[np.argsort(places)].reset_index(drop=True)


def _alike(scenarios: Sequence[Scenario]) -> Iterable[list[int]]:
    """Group scenarios that differ in strategy and batch alone."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, s in enumerate(scenarios):
        key = (s.graph.fingerprint, id(s.cluster), s.optimizer, s.precision)
        groups.setdefault(key, []).append(i)
    return groups.values()


def _sweep(scenarios: Sequence[Scenario]) -> SweepResult:
    first = scenarios[0]
    return sweep(
        first.graph,
        first.cluster,
        [s.strategy for s in scenarios],
        global_batch=[s.global_batch for s in scenarios],
        optimizer=first.optimizer,
        precision=first.precision,
    )


def _refuse(result: SweepResult) -> None:
    impossible = np.flatnonzero(~result.is_possible)
    if len(impossible):
        row = int(impossible[0])
        raise InfeasibleError(f"{result.table.strategy(row)}: {result.why(row)}.")
