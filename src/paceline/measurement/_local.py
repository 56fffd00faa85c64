"""Run a campaign on this machine, one run at a time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from paceline.errors import ExecutionError, PacelineError
from paceline.executors import BaseExecutor, Pool, RunRecord
from paceline.measurement._assignment import Assignment
from paceline.measurement._campaign import Campaign
from paceline.measurement._machine import load_average
from paceline.measurement._progress import ProgressCallback

# the record or the error of a run, its wall time and the state of the machine
Outcome = tuple[RunRecord | PacelineError, float, dict[str, Any]]

# workers that do not start are no trial's fault: try again, then give the campaign up
_MAX_STARTS = 3


class PoolKeeper:
    """Keep the workers of one session alive; those of another session are fresh ones.

    Within a round workers are forked from one process where the framework allows it. The lives
    of a trial lie in different rounds, so they share no process at all.
    """

    def __init__(self, executors: Mapping[str, BaseExecutor]) -> None:
        self._executors = executors
        self._warm: dict[str, BaseExecutor] = {}
        self._pool: Pool | None = None
        self._session, self._round = "", -1

    def prepare(self, assignment: Assignment) -> Pool:
        """Return the workers of a session, started when there are none.

        Raises
        ------
        ExecutionError
            When they cannot be started.
        """
        pool = self._pool
        if pool is None or not pool.is_alive or self._session != assignment.session:
            self._end_workers()
            pool = self._pool = self._start(assignment)
            self._session = assignment.session
        return pool

    def close(self) -> None:
        """End the workers and what they were forked from; once is enough."""
        self._end_workers()
        for name, executor in self._warm.items():
            if executor is not self._executors[name]:
                executor.close()
        self._warm = {}

    def _end_workers(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self._pool = None

    def _executor(self, assignment: Assignment) -> BaseExecutor:
        name = assignment.executor
        if assignment.round != self._round:
            self.close()
            self._round = assignment.round
        if name not in self._warm:
            self._warm[name] = self._executors[name].warm()
        return self._warm[name]

    def _start(self, assignment: Assignment) -> Pool:
        executor = self._executor(assignment)
        for _ in range(_MAX_STARTS - 1):
            with contextlib.suppress(ExecutionError):
                return executor.open(assignment.n_workers, memory_bytes=_per_worker(assignment))
        return executor.open(assignment.n_workers, memory_bytes=_per_worker(assignment))


def run_local(
    campaign: Campaign,
    executors: Mapping[str, BaseExecutor],
    *,
    progress: ProgressCallback | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> None:
    """Make all runs of a campaign, or those until `should_stop` says so."""
    keeper = PoolKeeper(executors)
    try:
        while not (should_stop and should_stop()):
            assignment = campaign.ask()
            if assignment is None:
                return
            outcome, seconds, machine = timed_run(keeper, assignment)
            campaign.tell(assignment, outcome, seconds=seconds, machine=machine)
            if progress:
                progress(campaign.progress)
    finally:
        keeper.close()


def timed_run(keeper: PoolKeeper, assignment: Assignment) -> Outcome:
    """Return the record or the error of a run, its wall time and the state of the machine."""
    pool = keeper.prepare(assignment)
    load_before, start = load_average(), time.monotonic()
    outcome: RunRecord | PacelineError
    try:
        outcome = pool.run(assignment.job, assignment.timeout_s)
    except ExecutionError as error:
        outcome = error
    seconds = time.monotonic() - start
    return outcome, seconds, {"load_before": load_before, "load_after": load_average()}


def _per_worker(assignment: Assignment) -> int | None:
    if assignment.memory_bytes is None:
        return None
    return assignment.memory_bytes // assignment.n_workers
