"""How long a campaign will take, before it is started."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paceline.dataset import open_store, read_meta
from paceline.errors import InvalidInputError
from paceline.executors import BaseExecutor
from paceline.measurement._campaign import Campaign
from paceline.measurement._local import PoolKeeper, timed_run
from paceline.measurement._measure import ready_executors
from paceline.measurement._study import DEVICES, Study

_N_PROBES = 3  # per kind of pool


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a campaign would do.

    Parameters
    ----------
    n_trials, n_repeats
        Trials to measure, and those of them that are measured again for the noise floor.
    n_infeasible
        Trials that were drawn, could not be built, and were replaced.
    n_runs, n_done
        Runs in all, and those that the file holds already.
    n_starts
        How often workers are still to be started.
    seconds
        What is left will take about this long.
    n_probes
        Runs that the estimate rests on.
    """

    n_trials: int
    n_repeats: int
    n_infeasible: int
    n_runs: int
    n_done: int
    n_starts: int
    seconds: float
    n_probes: int

    def __str__(self) -> str:
        minutes = self.seconds / 60
        left = f"{minutes:.1f} minutes" if minutes >= 1 else f"{self.seconds:.0f} s"
        return (
            f"{self.n_trials} trials and {self.n_repeats} repeats in {self.n_runs} runs, "
            f"{self.n_done} done; {self.n_infeasible} drawn trials cannot be built; about {left}"
        )


def dry_run(
    study: Study,
    path: str | Path | None = None,
    *,
    executors: Mapping[str, BaseExecutor] | None = None,
) -> DryRun:
    """Return what a campaign would do and how long it would take.

    A few trials of every executor and number of workers are really run, and forgotten.

    Parameters
    ----------
    study
        What would be measured.
    path
        The store, when a part is measured already; it is read only.
    executors
        As for `measure`.
    """
    ready = ready_executors(study, executors or {})
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "probe.db"
        # a campaign killed in its first moment leaves an empty file
        if path is not None and Path(path).exists() and Path(path).stat().st_size:
            _copy_store(Path(path), copy)
        with _opened(study, copy, path) as campaign:
            return _estimate(campaign, ready)


def _opened(study: Study, copy: Path, path: str | Path | None) -> Campaign:
    """Open the copy of a store; what is wrong with it is said of the store itself."""
    try:
        return Campaign(study, copy)
    except InvalidInputError as error:
        raise InvalidInputError(str(error).replace(str(copy), str(path))) from error


def _estimate(campaign: Campaign, executors: Mapping[str, BaseExecutor]) -> DryRun:
    plan, before = campaign.plan, campaign.progress
    sessions = {(run.trial.pool, run.session) for run in plan}
    runs_s, starts_s = _probe(campaign, executors)
    seconds = sum(runs_s[run.trial.pool] for run in plan)
    seconds += sum(starts_s[pool] for pool, _ in sessions)
    n_unplanned = before.runs_total - before.runs_done - len(plan)
    if plan:
        seconds *= 1 + n_unplanned / len(plan)
    return DryRun(
        n_trials=before.total - campaign.n_repeats,
        n_repeats=campaign.n_repeats,
        n_infeasible=before.n_infeasible,
        n_runs=before.runs_total,
        n_done=before.runs_done,
        n_starts=len(sessions),
        seconds=seconds,
        n_probes=min(len(plan), _N_PROBES * len(runs_s)),
    )


def _probe(
    campaign: Campaign, executors: Mapping[str, BaseExecutor]
) -> tuple[dict[tuple[str, int], float], dict[tuple[str, int], float]]:
    """Return the mean seconds of a run and of a start, per kind of pool."""
    runs_s: dict[tuple[str, int], list[float]] = {}
    starts_s: dict[tuple[str, int], float] = {}
    keeper = PoolKeeper(executors)
    try:
        for assignment in campaign.peek(_N_PROBES):
            # a command is one worker, however many devices its trial has
            pool = assignment.executor, int(assignment.values.get(DEVICES, 1))
            start = time.monotonic()
            keeper.prepare(assignment)
            starts_s.setdefault(pool, time.monotonic() - start)
            runs_s.setdefault(pool, []).append(timed_run(keeper, assignment)[1])
    finally:
        keeper.close()
    return {pool: statistics.mean(times) for pool, times in runs_s.items()}, starts_s


def _copy_store(path: Path, copy: Path) -> None:
    import sqlite3
    from contextlib import closing

    with open_store(path) as connection:
        read_meta(connection, path)  # refuses what is not ours
    address = f"{path.resolve().as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
