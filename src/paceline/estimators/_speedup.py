"""Speedup of a run on several workers: predicted from phases, beside the measured one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._phase_rows import OWN_PHASES
from paceline.estimators._phases import PhaseTable
from paceline.estimators._step_equations import (
    StepPhases,
    exposed_speedup,
    iucc_speedup,
    one_device_step_s,
    pipelined_step_s,
    printed_speedup,
    sgd_step_s,
    slowest_device_step_s,
    ssgd_step_s,
    weak_speedup,
)
from paceline.units import format_number, format_percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How much of the aggregation is hidden behind compute, measured.

    Parameters
    ----------
    unoverlapped_s, overlapped_s
        Median steps of the two passes.
    comm_s
        Median aggregation of a worker, waiting included.
    hidden_s
        `unoverlapped_s` - `overlapped_s`, within 0 and `comm_s`.
    is_bounded
        Whether the difference lay outside: input may be hidden too, or the passes differed.
    """

    unoverlapped_s: float
    overlapped_s: float
    comm_s: float
    hidden_s: float
    is_bounded: bool

    @property
    def exposed_s(self) -> float:
        """The part of the aggregation that the step has to wait for."""
        return self.comm_s - self.hidden_s

    @property
    def hidden_share(self) -> float:
        """Hidden part of the aggregation; 0 when there is none."""
        return self.hidden_s / self.comm_s if self.comm_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupReport:
    """Speedup predicted by each equation, and the measured one.

    Parameters
    ----------
    n_workers
        Number of workers N.
    measured
        (3.6) from overlapped steps.
    printed, iucc
        (3.7) and IUCC (7) as printed, for the record.
    exposed
        Ours, with the exposed part of the aggregation.
    exposed_shared
        Ours, with compute as it is on N workers: apart from `exposed` where workers contend.
    overlap
        What was hidden.
    """

    n_workers: int
    measured: float
    printed: float
    iucc: float
    exposed: float
    exposed_shared: float
    overlap: Overlap

    def __str__(self) -> str:
        return (
            f"{self.n_workers} workers: speedup {format_number(self.measured)} measured, "
            f"{format_number(self.exposed_shared)} predicted; "
            f"{format_percent(self.overlap.hidden_share)} of the aggregation is hidden"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        parts = {
            "exposed_s": self.overlap.exposed_s,
            "hidden_share": self.overlap.hidden_share,
        }
        data = asdict(self)
        return data | {"overlap": data["overlap"] | parts}


def measure_overlap(table: PhaseTable) -> Overlap:
    """Return how much of the aggregation is hidden: the two passes beside each other."""
    unoverlapped_s = float(np.median(table.unoverlapped_s()))
    overlapped_s = float(np.median(table.overlapped_s()))
    comm_s = table.typical("median").comm_s if table.n_workers > 1 else 0.0
    difference_s = unoverlapped_s - overlapped_s
    hidden_s = min(max(difference_s, 0.0), comm_s)
    return Overlap(
        unoverlapped_s=unoverlapped_s,
        overlapped_s=overlapped_s,
        comm_s=comm_s,
        hidden_s=hidden_s,
        is_bounded=hidden_s != difference_s,
    )


def report_speedup(one: PhaseTable, many: PhaseTable) -> SpeedupReport:
    """Return the speedup of `many` workers over `one`, predicted and measured.

    Raises
    ------
    InvalidInputError
        When `one` has several workers, or the samples per device differ: (3.6) is of weak
        scaling.
    """
    _check_weak(one, many)
    n = many.n_workers
    alone, together = one.typical("median"), many.typical("median")
    overlap = measure_overlap(many)
    exposed = {
        shared: exposed_speedup(
            n,
            alone,
            together,
            comm_exposed_s=overlap.exposed_s,
            is_compute_shared=shared,
        )
        for shared in (False, True)
    }
    one_step_s = float(np.median(one.overlapped_s()))
    return SpeedupReport(
        n_workers=n,
        measured=weak_speedup(n, one_step_s, overlap.overlapped_s),
        printed=printed_speedup(n, alone, together),
        iucc=iucc_speedup(n, alone, together),
        exposed=exposed[False],
        exposed_shared=exposed[True],
        overlap=overlap,
    )


def predict_steps(table: PhaseTable) -> pd.DataFrame:
    """Return the step that every equation predicts from the phases, beside the measured ones.

    Columns: ``equation``, ``step_s``. In (3.3) c is the transfer alone, since waiting is what
    its maximum stands for; "own work" takes that maximum over all of a worker's phases.
    """
    typical = table.typical()
    slowest = table.of_phases((*OWN_PHASES, "transfer")).max(axis=1)
    steps = {
        "3.1": sgd_step_s(typical),
        "3.2": ssgd_step_s(typical),
        "3.3": slowest_device_step_s(_without_waiting(table)),
        "3.4": one_device_step_s(typical),
        "3.5": pipelined_step_s(typical),
        "IUCC 5": pipelined_step_s(typical, with_division=True),
        "own work": float(slowest.mean()),
        "measured, no overlap": float(table.unoverlapped_s().mean()),
    }
    if table.step_s and table.step_s[0]:
        steps["measured, overlapped"] = float(table.overlapped_s().mean())
    return pd.DataFrame(list(steps.items()), columns=["equation", "step_s"])


def _without_waiting(table: PhaseTable) -> list[StepPhases]:
    means = {phase: table.of_phase(phase).mean(axis=0) for phase in (*OWN_PHASES, "transfer")}
    return [
        StepPhases(
            **{f"{phase}_s": float(means[phase][i]) for phase in OWN_PHASES},
            comm_s=float(means["transfer"][i]),
        )
        for i in range(table.n_workers)
    ]


def _check_weak(one: PhaseTable, many: PhaseTable) -> None:
    if one.n_workers != 1:
        raise InvalidInputError(
            f"Speedup must be over one worker, but got a run of {one.n_workers}."
        )
    if not one.global_batch or not many.global_batch:
        return
    if many.global_batch != many.n_workers * one.global_batch:
        raise InvalidInputError(
            f"`global_batch` of the larger run must be {many.n_workers} x {one.global_batch} "
            f"for weak scaling (3.6), but got {many.global_batch}."
        )
