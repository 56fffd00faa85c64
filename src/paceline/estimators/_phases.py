"""Phases of a synchronous step, as the workers of one run measured them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._phase_rows import (
    COMM_PHASES,
    OWN_PHASES,
    PHASES,
    check_rows,
    layers_of,
    rows_of,
    seconds_of,
)
from paceline.estimators._step_equations import StepPhases

Statistic = Literal["mean", "median"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseTable:
    """What the workers of one run measured, phase by phase.

    Parameters
    ----------
    rows
        ``worker``, ``step``, ``phase``, ``seconds``: the steps without overlap. A phase that a
        framework cannot separate has no rows.
    device_batches
        Samples of each worker in a step; empty when unknown.
    step_s
        Overlapped steps, one row per worker: what a user would see. May be empty.
    phase_step_s
        Steps without overlap timed as wholes, one row per worker. May be empty.
    layers
        ``worker``, ``layer``, ``forward_s``, ``backward_s``; empty when not measured.
    merged
        Phases inside others: ``{"backward": ("transfer",)}``.
    """

    rows: pd.DataFrame
    device_batches: tuple[int, ...] = ()
    step_s: tuple[tuple[float, ...], ...] = ()
    phase_step_s: tuple[tuple[float, ...], ...] = ()
    layers: pd.DataFrame = field(default_factory=lambda: layers_of([]))
    merged: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _seconds: np.ndarray = field(init=False, repr=False)  # steps by workers by phases

    def __post_init__(self) -> None:
        check_rows(self.rows)
        object.__setattr__(self, "_seconds", seconds_of(self.rows))
        if self.device_batches and len(self.device_batches) != self.n_workers:
            raise InvalidInputError(
                f"`device_batches` must hold one number per worker, but got "
                f"{len(self.device_batches)} for {self.n_workers} workers."
            )
        if self.step_s and len(self.step_s) != self.n_workers:
            raise InvalidInputError(
                f"`step_s` must hold one row per worker, but got "
                f"{len(self.step_s)} for {self.n_workers} workers."
            )

    def __str__(self) -> str:
        return f"{self.n_steps} steps of {self.n_workers} workers, {len(self.phases)} phases"

    @classmethod
    def from_workers(
        cls, workers: Sequence[Mapping[str, Any]], device_batches: Sequence[int] = ()
    ) -> PhaseTable:
        """Return the table in the workers' own records.

        Parameters
        ----------
        workers
            Mappings with ``rank``, ``phases`` (one mapping per step) and, where measured,
            ``step_s``, ``phase_step_s``, ``layers`` and ``merged``.
        device_batches
            Samples of each worker in a step, in the order of ranks.
        """
        ranked = sorted(workers, key=lambda worker: int(worker["rank"]))
        return cls(
            rows=rows_of(ranked),
            device_batches=tuple(int(b) for b in device_batches),
            step_s=_times(ranked, "step_s"),
            phase_step_s=_times(ranked, "phase_step_s"),
            layers=layers_of(ranked),
            merged=_merged(ranked),
        )

    @classmethod
    def join(cls, tables: Sequence[PhaseTable]) -> PhaseTable:
        """Return the steps of several runs of the same workers and shares as one table.

        Times of layers are left out: each run has its own.
        """
        shapes = {(table.n_workers, table.device_batches) for table in tables}
        if len(shapes) != 1:
            raise InvalidInputError(
                f"Runs to join must have the same workers and shares, but got {len(shapes)} kinds."
            )
        parts, offset = [], 0
        for table in tables:
            parts.append(table.rows.assign(step=table.rows["step"] + offset))
            offset = int(parts[-1]["step"].max()) + 1
        return cls(
            rows=pd.concat(parts, ignore_index=True),
            device_batches=tables[0].device_batches,
            step_s=_appended([table.step_s for table in tables]),
            phase_step_s=_appended([table.phase_step_s for table in tables]),
            merged=tables[0].merged,
        )

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return int(self._seconds.shape[1])

    @property
    def n_steps(self) -> int:
        """Number of steps whose phases were timed."""
        return int(self._seconds.shape[0])

    @property
    def phases(self) -> tuple[str, ...]:
        """Phases that were measured, in the order of a step."""
        measured = set(self.rows["phase"].unique())
        return tuple(phase for phase in PHASES if phase in measured)

    @property
    def own_phases(self) -> tuple[str, ...]:
        """Measured phases of a worker's own work, in the order of a step."""
        return tuple(phase for phase in self.phases if phase in OWN_PHASES)

    @property
    def global_batch(self) -> int:
        """Samples of all workers in a step; 0 when unknown."""
        return sum(self.device_batches)

    def of_phase(self, phase: str) -> np.ndarray:
        """Return the seconds of one phase, steps by workers; zeros where it is not measured."""
        return self.of_phases((phase,))

    def of_phases(self, phases: Sequence[str]) -> np.ndarray:
        """Return the seconds of several phases together, steps by workers."""
        places = [PHASES.index(phase) for phase in phases]
        return np.asarray(self._seconds[:, :, places].sum(axis=2))

    def own_s(self) -> np.ndarray:
        """Return each worker's own work in each step: all phases but waiting and transfer.

        Raises
        ------
        InvalidInputError
            When waiting is inside another phase, so that own work is not known.
        """
        for outer, inner in self.merged.items():
            if outer in OWN_PHASES and set(inner) & set(COMM_PHASES):
                raise InvalidInputError(
                    f"A worker's own work must be measured apart from waiting, but `{outer}` "
                    f"holds `{inner[0]}` in this run: use an executor that separates them."
                )
        return self.of_phases(OWN_PHASES)

    def unoverlapped_s(self) -> np.ndarray:
        """Return the time of every step without overlap: that of its slowest worker.

        Taken from steps timed as wholes, or else from the sum of their phases.
        """
        wholes = np.asarray(self.phase_step_s, dtype=float)
        if wholes.size:
            return np.asarray(wholes.max(axis=0))
        return np.asarray(self.of_phases(PHASES).max(axis=1))

    def overlapped_s(self) -> np.ndarray:
        """Return the time of every overlapped step: that of its slowest worker."""
        if not self.step_s or not self.step_s[0]:
            raise InvalidInputError(
                "Overlapped steps must have been timed, but got none: measure with `n_steps` > 0."
            )
        return np.asarray(np.asarray(self.step_s, dtype=float).max(axis=0))

    def of_worker(self, worker: int, statistic: Statistic = "mean") -> StepPhases:
        """Return the typical phases of one worker, by position; comm = wait + transfer."""
        return self._typical(slice(worker, worker + 1), statistic)

    def typical(self, statistic: Statistic = "mean") -> StepPhases:
        """Return the typical phases of a step: the workers' mean, then over steps."""
        return self._typical(slice(None), statistic)

    def skip(self, n_steps: int) -> PhaseTable:
        """Return the table without its first timed steps, such as a first epoch."""
        first = sorted(set(self.rows["step"]))[:n_steps]
        return PhaseTable(
            rows=self.rows[~self.rows["step"].isin(first)],
            device_batches=self.device_batches,
            step_s=tuple(times[n_steps:] for times in self.step_s),
            phase_step_s=tuple(times[n_steps:] for times in self.phase_step_s),
            layers=self.layers,
            merged=self.merged,
        )

    def _typical(self, workers: slice, statistic: Statistic) -> StepPhases:
        over_steps = np.mean if statistic == "mean" else np.median

        def seconds(*phases: str) -> float:
            return float(over_steps(self.of_phases(phases)[:, workers].mean(axis=1)))

        return StepPhases(
            io_s=seconds("io"),
            h2d_s=seconds("h2d"),
            md_s=seconds("md"),
            forward_s=seconds("forward"),
            backward_s=seconds("backward"),
            comm_s=seconds(*COMM_PHASES),
            update_s=seconds("update"),
        )


def layer_coverage(table: PhaseTable) -> pd.DataFrame:
    """Return how much of forward and backward the layers add up to, per worker.

    Columns: ``worker``, ``phase``, ``layers_s`` (the sums over l in 3.1 to 3.3), ``phase_s``
    (median) and ``share``.
    """
    medians = table.rows.groupby(["worker", "phase"])["seconds"].median()
    rows = []
    for worker, own in table.layers.groupby("worker"):
        for phase in ("forward", "backward"):
            layers_s = float(own[f"{phase}_s"].sum())
            phase_s = float(medians.get((worker, phase), np.nan))
            share = layers_s / phase_s if phase_s > 0 else np.nan
            rows.append((worker, phase, layers_s, phase_s, share))
    return pd.DataFrame(rows, columns=["worker", "phase", "layers_s", "phase_s", "share"])


def _appended(
    runs: Sequence[tuple[tuple[float, ...], ...]],
) -> tuple[tuple[float, ...], ...]:
    if not all(runs):  # one of them did not time this
        return ()
    return tuple(sum(times, ()) for times in zip(*runs, strict=True))


def _times(workers: Sequence[Mapping[str, Any]], name: str) -> tuple[tuple[float, ...], ...]:
    times = tuple(tuple(float(t) for t in worker.get(name) or ()) for worker in workers)
    return times if any(times) else ()


def _merged(workers: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    merged: dict[str, tuple[str, ...]] = {}
    for worker in workers:
        for outer, inner in (worker.get("merged") or {}).items():
            merged[outer] = tuple(dict.fromkeys((*merged.get(outer, ()), *inner)))
    return merged
