"""What a campaign hands out to be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.executors import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One run of one trial.

    Parameters
    ----------
    trial
        Number of the trial.
    attempt
        1 when the trial is measured again because of a disturbance, else 0.
    life
        Which process life of the trial this is, from 0.
    session
        Assignments of one session are meant for the same worker processes, those of different
        sessions for different ones.
    round
        Workers of different rounds are to have nothing in common: the lives of a trial lie in
        different ones.
    workload, executor
        Their names.
    values
        The trial.
    job
        What the workers are to do.
    timeout_s
        Seconds that the run may take.
    memory_bytes
        Memory that its workers may use together; None for no limit.
    """

    trial: int
    attempt: int
    life: int
    session: str
    workload: str
    executor: str
    values: Mapping[str, Any]
    job: Job
    timeout_s: float
    memory_bytes: int | None
    round: int = 0

    @property
    def n_workers(self) -> int:
        """Workers that the run needs."""
        return self.job.n_workers

    @property
    def key(self) -> tuple[int, int, int]:
        """Trial, attempt and life: what no two assignments share."""
        return self.trial, self.attempt, self.life

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.values.items())
        place = f"trial {self.trial}, attempt {self.attempt}, life {self.life}"
        return f"{place}: {self.workload} by {self.executor}, {values}"
