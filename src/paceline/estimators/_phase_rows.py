"""Rows of measured phases: their names, how they are read from records, what must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError, UnknownNameError

# In the order of a step, as executors time them; a test keeps the two lists equal.
PHASES = ("io", "h2d", "md", "forward", "backward", "wait", "transfer", "update")
COMM_PHASES = ("wait", "transfer")
OWN_PHASES = tuple(phase for phase in PHASES if phase not in COMM_PHASES)

_COLUMNS = ["worker", "step", "phase", "seconds"]
_LAYER_COLUMNS = ["worker", "layer", "forward_s", "backward_s"]


def rows_of(workers: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per worker, step and phase of workers' records."""
    rows = [
        (int(worker["rank"]), step, phase, float(seconds))
        for worker in workers
        for step, phases in enumerate(worker.get("phases") or ())
        for phase, seconds in phases.items()
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def layers_of(workers: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per worker and layer of workers' records."""
    rows = [
        (int(w["rank"]), str(x["name"]), float(x["forward_s"]), float(x["backward_s"]))
        for w in workers
        for x in w.get("layers") or ()
    ]
    return pd.DataFrame(rows, columns=_LAYER_COLUMNS)


def seconds_of(rows: pd.DataFrame) -> np.ndarray:
    """Return the seconds of rows, steps by workers by phases; zeros where nothing is given."""
    steps, step = np.unique(rows["step"].to_numpy(), return_inverse=True)
    workers, worker = np.unique(rows["worker"].to_numpy(), return_inverse=True)
    phase = rows["phase"].map({name: i for i, name in enumerate(PHASES)}).to_numpy(dtype=int)
    seconds = np.zeros((len(steps), len(workers), len(PHASES)))
    seconds[step, worker, phase] = rows["seconds"].to_numpy(dtype=float)
    return seconds


def check_rows(rows: pd.DataFrame) -> None:
    """Raise when rows of phases are not what every equation needs."""
    missing = [name for name in _COLUMNS if name not in rows]
    if missing:
        raise InvalidInputError(
            f"Phases must have the columns {', '.join(_COLUMNS)}, but {', '.join(missing)} "
            "is missing."
        )
    if rows.empty:
        raise InvalidInputError(
            "Phases must have been timed, but got none: measure with `n_phase_steps` > 0."
        )
    for phase in rows["phase"].unique():
        if phase not in PHASES:
            raise UnknownNameError("phase", str(phase), PHASES)
    seconds = rows["seconds"].to_numpy(dtype=float)
    if not np.all(np.isfinite(seconds) & (seconds >= 0)):
        raise InvalidInputError("`seconds` must be finite and not negative in every row.")
    _check_complete(rows)


def _check_complete(rows: pd.DataFrame) -> None:
    steps = {int(str(worker)): frozenset(own["step"]) for worker, own in rows.groupby("worker")}
    if len(set(steps.values())) > 1:
        counts = ", ".join(f"worker {w}: {len(s)}" for w, s in steps.items())
        raise InvalidInputError(f"All workers must time the same steps, but got {counts}.")
    if rows.duplicated(["worker", "step", "phase"]).any():
        raise InvalidInputError("A phase must have one row per worker and step, but got more.")
