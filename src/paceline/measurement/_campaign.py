"""Ask for the next run, tell what came of it: a campaign that survives being killed."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from paceline.errors import InvalidInputError, PacelineError
from paceline.executors import RunRecord
from paceline.measurement._assignment import Assignment
from paceline.measurement._draw import TrialSource
from paceline.measurement._jobs import build_job, load_workloads
from paceline.measurement._ledger import Key, Ledger
from paceline.measurement._plan import PlannedRun, PlannedTrial, open_runs, sort_runs
from paceline.measurement._progress import Progress
from paceline.measurement._results import (
    measure_lives,
    observe,
    observe_failure,
    read_outcome,
)
from paceline.measurement._study import Study


class Campaign:
    """Hand out the runs of a study one by one, and keep what came of them in one file.

    Every run is committed as soon as it is told. A campaign that is killed loses what it was
    not told; a new one on the same file goes on where it stopped.

    Parameters
    ----------
    study
        What to measure.
    path
        The store; made when it is not there. One campaign at a time may have it.

    Raises
    ------
    InvalidInputError
        When another campaign has the file, it is of another study, or cannot be written.
    InfeasibleError
        When (almost) nothing of the space can be built.

    Examples
    --------
    Drive it yourself, for example from a batch queue::

        with Campaign(load_study("demo"), "runs.db") as campaign:
            while assignment := campaign.ask():
                campaign.tell(assignment, pool.run(assignment.job, assignment.timeout_s))
    """

    _queue: list[PlannedRun]

    def __init__(self, study: Study, path: str | Path) -> None:
        self.study = study
        self.path = Path(path)
        self._workloads = load_workloads(study)
        self._ledger = Ledger(study, self.path)
        try:
            self._restore()
        except BaseException:
            self._ledger.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; what was asked for and not told will be asked for again."""
        self._ledger.close()

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do, not even runs that were handed out."""
        return not self._queue and not self._handed_out and self._source.is_exhausted

    @property
    def plan(self) -> tuple[PlannedRun, ...]:
        """Runs that are planned and not handed out yet, in order."""
        return tuple(self._queue)

    @property
    def n_repeats(self) -> int:
        """Trials that are planned again for the noise floor."""
        return sum(trial.repeat_of is not None for trial in self._trials.values())

    def peek(self, n: int) -> list[Assignment]:
        """Return the first `n` runs of every kind of pool without handing them out."""
        counts: Counter[tuple[str, int]] = Counter()
        chosen = []
        for run in sorted(self._queue, key=lambda run: run.trial.pool):
            counts[run.trial.pool] += 1
            if counts[run.trial.pool] <= n:
                chosen.append(self._assignment(run))
        return chosen

    def ask(self) -> Assignment | None:
        """Return the next run, or None when there is none at the moment.

        Several may be out at once. None means that all are made or handed out; see
        `is_finished`.
        """
        self._plan_ahead()
        if not self._queue:
            return None
        run = self._queue.pop(0)
        self._handed_out[run.key] = run
        return self._assignment(run)

    def tell(
        self,
        assignment: Assignment,
        outcome: RunRecord | PacelineError,
        *,
        seconds: float = 0.0,
        machine: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep what came of a run; committed when this returns.

        Parameters
        ----------
        assignment
            What `ask` gave.
        outcome
            The record, or the error that the run ended with.
        seconds
            Wall time of the run, for estimates.
        machine
            State of the machine around the run, such as ``{"load_before": [...]}``.

        Raises
        ------
        InvalidInputError
            When the run was not handed out, was told already, or cannot be written.
        """
        run = self._handed_out.get(assignment.key)
        if run is None:
            raise InvalidInputError(
                f"A run must be asked for once and told once, but got {assignment}."
            )
        reason, life = read_outcome(assignment.job, outcome, machine or {})
        if life is None:
            self._tell_failure(run, reason, seconds, machine or {})
        else:
            self._tell_life(run, life, seconds)
        self._handed_out.pop(run.key, None)
        self._made[run.key] = seconds
        self._last = str(assignment)

    def give_back(self, assignment: Assignment) -> None:
        """Put a run back that was handed out and not made, such as that of a lost worker."""
        run = self._handed_out.pop(assignment.key, None)
        if run is not None:
            self._queue = sort_runs(self.study, [*self._queue, run])

    @property
    def progress(self) -> Progress:
        """How far the campaign is."""
        states = list(self._states.values())
        n_made, elapsed_s = len(self._made) - self._n_before, time.monotonic() - self._start
        return Progress(
            done=states.count("done") + states.count("failed"),
            total=len(states) - states.count("dropped") + self._source.n_unplanned,
            failed=states.count("failed"),
            n_infeasible=self._source.n_infeasible,
            runs_done=len(self._made),
            runs_total=len(self._made)
            + len(self._queue)
            + len(self._handed_out)
            + self._source.n_unplanned * self.study.protocol.lives,
            rate_per_s=n_made / elapsed_s if n_made else 0.0,
            noise=statistics.median(self._noise) if self._noise else None,
            last=self._last,
        )

    def _restore(self) -> None:
        """Take up the plan in the file, or make one."""
        self._source = TrialSource(self.study, self._workloads, self._ledger)
        planned = self._ledger.trials()
        if not planned:
            planned = {t.number: (t, "open") for t in self._source.plan_first()}
        self._trials = {number: trial for number, (trial, _) in planned.items()}
        self._states = {number: state for number, (_, state) in planned.items()}
        self._made: dict[Key, float] = self._ledger.runs()
        opened = [t for n, t in self._trials.items() if self._states[n] == "open"]
        self._queue = open_runs(self.study, opened, set(self._made))
        self._handed_out: dict[Key, PlannedRun] = {}
        self._noise: list[float] = []
        self._last = ""
        self._n_before, self._start = len(self._made), time.monotonic()
        self._n_again = sum(trial.again is not None for trial in self._trials.values())

    def _plan_ahead(self) -> None:
        """Let an adaptive design choose its next trials when their round comes."""
        round_ = self._queue[0].round if self._queue else None
        for trial in self._source.plan_next(round_, list(self._trials.values())):
            self._trials[trial.number] = trial
            self._states[trial.number] = "open"
            new = open_runs(self.study, [trial], set())
            self._queue = sort_runs(self.study, [*self._queue, *new])

    def _assignment(self, run: PlannedRun) -> Assignment:
        trial = run.trial
        return Assignment(
            trial=trial.number,
            attempt=run.attempt,
            life=run.life,
            session=run.session,
            round=run.round,
            workload=trial.workload,
            executor=trial.executor,
            values=dict(trial.values),
            job=build_job(self.study, self._workloads[trial.workload], trial),
            timeout_s=float(self.study.limits.trial_seconds),
            memory_bytes=self.study.limits.memory_bytes,
        )

    def _tell_life(self, run: PlannedRun, life: dict[str, Any], seconds: float) -> None:
        number, attempt, _ = run.key
        lives = [*self._ledger.records(number, attempt), life]
        again: int | None = None
        with self._ledger.entry() as entry:
            entry.add_run(run.key, run.session, seconds, "", life)
            if len(lives) == self.study.protocol.lives:
                again = self._conclude(run, lives, entry)
        if again is not None:
            self._plan_again(run.trial, again)
        elif len(lives) == self.study.protocol.lives:
            self._states[number] = "done"

    def _conclude(self, run: PlannedRun, lives: list[dict[str, Any]], entry: Any) -> int | None:
        """Enter the observation, or return the chunk in which the trial is measured again."""
        measured = measure_lives(self.study, lives)
        self._noise.append(measured.disagreement)
        if measured.disturbed and self._may_measure_again(run):
            # with the last planned rounds where possible: each round of its own starts workers
            last = max(r.round for r in [run, *self._queue, *self._handed_out.values()])
            chunk = max(run.round + 1, last - self.study.protocol.lives + 1)
            entry.plan_again(run.trial.number, chunk)
            return chunk
        attempts = [lives]
        if run.attempt:
            attempts.insert(0, self._ledger.records(run.trial.number, 0))
        entry.finish(run.trial.number, *observe(self.study, run.trial, attempts))
        return None

    def _may_measure_again(self, run: PlannedRun) -> bool:
        """Repeats are for the noise floor: what disturbed them is the noise."""
        allowed = self.study.protocol.remeasure_share * len(self._trials)
        return not run.attempt and run.trial.repeat_of is None and self._n_again < allowed

    def _plan_again(self, trial: PlannedTrial, chunk: int) -> None:
        self._n_again += 1
        trial = replace(trial, again=chunk)
        self._trials[trial.number] = trial
        runs = [
            PlannedRun(trial=trial, attempt=1, life=life)
            for life in range(self.study.protocol.lives)
        ]
        self._queue = sort_runs(self.study, [*self._queue, *runs])

    def _tell_failure(
        self, run: PlannedRun, reason: str, seconds: float, machine: Mapping[str, Any]
    ) -> None:
        """Fail the trial; its other lives and its repeats would only fail as well."""
        number = run.trial.number
        if run.attempt:
            return self._keep_first_attempt(run, reason, seconds)
        repeats = [
            n
            for n, trial in self._trials.items()
            if trial.repeat_of == number and self._states[n] == "open"
        ]
        with self._ledger.entry() as entry:
            entry.add_run(run.key, run.session, seconds, reason, None)
            entry.finish(number, *observe_failure(self.study, run.trial, reason, machine))
            for repeat in repeats:
                entry.set_state(repeat, "dropped")
        self._states |= {number: "failed", **dict.fromkeys(repeats, "dropped")}
        self._forget({number, *repeats})
        return None

    def _keep_first_attempt(self, run: PlannedRun, reason: str, seconds: float) -> None:
        """Let a second attempt that fails leave the first one, disturbed as it was."""
        first = self._ledger.records(run.trial.number, 0)
        with self._ledger.entry() as entry:
            entry.add_run(run.key, run.session, seconds, reason, None)
            entry.finish(run.trial.number, *observe(self.study, run.trial, [first]))
        self._states[run.trial.number] = "done"
        self._forget({run.trial.number})

    def _forget(self, numbers: set[int]) -> None:
        self._queue = [run for run in self._queue if run.trial.number not in numbers]
