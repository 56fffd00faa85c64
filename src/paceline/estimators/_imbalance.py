"""The load imbalance factor: over steps, phases and the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from paceline.errors import InvalidInputError
from paceline.estimators._phases import PhaseTable


def load_imbalance_factor(times_s: ArrayLike) -> float:
    """Return LIF = N * max_i t_i / sum_i t_i: 1 when balanced, N when one worker does all.

    Thesis (3.8) = IUCC (8). `times_s` are the workers' own work, never their waiting. Workers
    that all do nothing are balanced.

    Examples
    --------
    >>> load_imbalance_factor([2.0, 4.0])
    1.3333333333333333
    """
    times = np.asarray(times_s, dtype=float)
    if times.ndim != 1 or times.size == 0:
        raise InvalidInputError("`times_s` must be one time per worker, but got none.")
    return float(_factors(times[np.newaxis, :])[0])


def lif_by_step(table: PhaseTable) -> np.ndarray:
    """Return the load imbalance factor of every step, over each worker's own work."""
    return _factors(table.own_s())


def lif_over_run(table: PhaseTable) -> float:
    """Return the load imbalance factor of the workers' own work in all steps together.

    Below the mean over steps when imbalance is random: what one step costs a worker, another
    gives back, though a synchronous step has waited for it.
    """
    return load_imbalance_factor(table.own_s().sum(axis=0))


def lif_by_phase(table: PhaseTable) -> pd.DataFrame:
    """Return the load imbalance factor of every phase of own work.

    Columns: ``phase``, ``lif`` (mean over steps), ``lif_sd``, ``lif_run`` (all steps together),
    ``mean_s``, ``slowest_s`` (mean over steps of the slowest worker).
    """
    table.own_s()  # refuses a run whose own work is not known
    rows = []
    for phase in table.own_phases:
        times = table.of_phase(phase)
        factors = _factors(times)
        rows.append(
            {
                "phase": phase,
                "lif": factors.mean(),
                "lif_sd": standard_deviation(factors),
                "lif_run": load_imbalance_factor(times.sum(axis=0)),
                "mean_s": times.mean(),
                "slowest_s": times.max(axis=1).mean(),
            }
        )
    return pd.DataFrame(rows)


def standard_deviation(values: Sequence[float] | np.ndarray) -> float:
    """Return the sample standard deviation; not a number for a single value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")


def _factors(times: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(times) & (times >= 0)):
        raise InvalidInputError("`times_s` must be finite and not negative.")
    largest = times.max(axis=1)
    scaled = times / np.where(largest > 0, largest, 1.0)[:, np.newaxis]  # tiny times stay exact
    total = scaled.sum(axis=1)
    factors = times.shape[1] / np.where(total > 0, total, times.shape[1])
    return np.maximum(factors, 1.0)  # rounding may fall below
