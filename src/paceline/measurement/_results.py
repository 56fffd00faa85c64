"""From what workers recorded to the observation of a trial."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from paceline.dataset import Observation
from paceline.errors import ExecutionError, PacelineError
from paceline.executors import Job, RunRecord
from paceline.measurement._jobs import count_samples, share_batch
from paceline.measurement._plan import PlannedTrial
from paceline.measurement._protocol import Measured, combine_lives, load_before
from paceline.measurement._study import Study

# not kept: weights are for tests, and a digest says no more than that all is well
_DROPPED = ("weights", "weights_digest", "losses")

Life = Mapping[str, Any]


def why_garbage(record: RunRecord, job: Job) -> str:
    """Return what is wrong with the times of a record; empty when nothing is."""
    if len(record.workers) != job.n_workers:
        return f"{job.n_workers} workers must answer, but {len(record.workers)} did"
    lengths = {len(worker.step_s) for worker in record.workers}
    if len(lengths) != 1 or lengths == {0}:
        return f"every worker must time the same steps, but they timed {sorted(lengths)}"
    times_s = [time_s for worker in record.workers for time_s in worker.step_s]
    wrong = [time_s for time_s in times_s if not _is_time(time_s)]
    return f"step times must be positive, but got {wrong[0]!r}" if wrong else ""


def read_outcome(
    job: Job, outcome: RunRecord | PacelineError, machine: Mapping[str, Any]
) -> tuple[str, dict[str, Any] | None]:
    """Return why a run failed, or what is kept of it."""
    if isinstance(outcome, RunRecord):
        garbage = why_garbage(outcome, job)
        return garbage, None if garbage else describe_life(outcome, machine)
    reason = outcome.reason if isinstance(outcome, ExecutionError) else str(outcome)
    return reason or type(outcome).__name__, None


def describe_life(record: RunRecord, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is kept of one run: all raw times, phases per worker, the machine's state."""
    workers = [
        {name: value for name, value in asdict(worker).items() if name not in _DROPPED}
        for worker in record.workers
    ]
    return {
        "step_s": list(record.step_s),
        "workers": workers,
        "versions": dict(record.versions),
        "machine": dict(machine),
    }


def measure_lives(study: Study, lives: Sequence[Life]) -> Measured:
    """Return what the lives of one attempt measured together."""
    loads = [load_before(life["machine"]) for life in lives]
    known = [load for load in loads if load is not None]
    return combine_lives(study.protocol, [life["step_s"] for life in lives], known)


def observe(
    study: Study, trial: PlannedTrial, attempts: Sequence[Sequence[Life]]
) -> tuple[Observation, dict[str, Any]]:
    """Return the observation of a trial and its other columns.

    Of two attempts the one whose lives agree better counts; the other's times are kept too.
    """
    measured = [measure_lives(study, lives) for lives in attempts]
    best = min(range(len(measured)), key=lambda i: measured[i].disagreement)
    chosen, lives = measured[best], attempts[best]
    provenance: dict[str, Any] = {
        "trial": trial.number,
        "repeat_of": trial.repeat_of,
        "lives": [dict(life) for life in lives],
        "disturbed": [m.disturbed for m in measured if m.disturbed],
        "discarded": [list(m.times_s) for i, m in enumerate(measured) if i != best],
    }
    observation = Observation(
        values=_values(study, trial), times_s=chosen.times_s, provenance=provenance
    )
    return observation, _other(study, trial, chosen, lives)


def observe_failure(
    study: Study, trial: PlannedTrial, reason: str, machine: Mapping[str, Any]
) -> tuple[Observation, dict[str, Any]]:
    """Return the observation of a trial that failed."""
    provenance = {
        "trial": trial.number,
        "repeat_of": trial.repeat_of,
        "machine": dict(machine),
    }
    observation = Observation(
        values=_values(study, trial), reason=" ".join(reason.split()), provenance=provenance
    )
    return observation, _place(study, trial)


def _values(study: Study, trial: PlannedTrial) -> dict[str, Any]:
    several = {
        name: value
        for name, value in (("workload", trial.workload), ("executor", trial.executor))
        if name in study.full_space.names
    }
    return {**several, **trial.values}


def _other(
    study: Study, trial: PlannedTrial, measured: Measured, lives: Sequence[Life]
) -> dict[str, Any]:
    memory = max(w["peak_memory_bytes"] for life in lives for w in life["workers"])
    return {
        **_place(study, trial),
        "minimum_s": measured.minimum_s,
        "disagreement": round(measured.disagreement, 6),
        "peak_memory_bytes": memory,
    }


def _place(study: Study, trial: PlannedTrial) -> dict[str, Any]:
    """Return what is known of a trial before it runs; columns of parameters are left out."""
    parameters = {p.name for p in study.full_space.parameters if len(p.values) > 1}
    columns = {
        "trial": trial.number,
        "workload": trial.workload,
        "executor": trial.executor,
        "n_samples": count_samples(study, trial.values),
        "global_batch": sum(share_batch(trial.values, trial.n_workers)),
        **trial.values,
    }
    return {name: value for name, value in columns.items() if name not in parameters}


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
