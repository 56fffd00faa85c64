"""What a campaign costs beside the steps it is made for: chapter 4's study by PyTorch.

`PACELINE_CAMPAIGN_TRIALS` says how many trials (1500 is the study's full size),
`PACELINE_CAMPAIGN_STORE` keeps the store in that file.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from paceline import measurement
from paceline.executors import BaseExecutor, Job, Pool, RunRecord, load_executor
from paceline.measurement import Campaign, Study, load_study

N_TRIALS = 150
# why a campaign takes longer than its steps
CAUSES = (
    *("importing PyTorch", "starting workers", "ending workers"),
    *("building, messages", "planning, committing"),
)


class TimedExecutor(BaseExecutor):
    """PyTorch's workers, with the seconds of every start, run and end."""

    def __init__(self, inner: BaseExecutor) -> None:
        self.name, self._inner = inner.name, inner
        self.seconds: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def readiness(self) -> str:
        """Return why PyTorch is not ready; nothing when it is."""
        return self._inner.readiness()

    def open(self, n_workers: int, *, memory_bytes: int | None = None) -> TimedPool:
        """Start workers."""
        begin = time.perf_counter()
        pool = self._inner.open(n_workers, memory_bytes=memory_bytes)
        self.add("starting workers", begin)
        return TimedPool(pool, self)

    def warm(self) -> TimedExecutor:
        """Start what workers are forked from."""
        begin = time.perf_counter()
        other = TimedExecutor(self._inner.warm())
        other.seconds, other.counts = self.seconds, self.counts
        self.add("importing PyTorch", begin)
        return other

    def close(self) -> None:
        """End what workers are forked from."""
        self._inner.close()

    def add(self, cause: str, begin: float) -> None:
        """Count the seconds since `begin`."""
        self.seconds[cause] += time.perf_counter() - begin
        self.counts[cause] += 1


class TimedPool:
    """Workers that count their seconds."""

    def __init__(self, pool: Pool, executor: TimedExecutor) -> None:
        self._pool, self._executor, self.n_workers = pool, executor, pool.n_workers

    @property
    def is_alive(self) -> bool:
        """Whether all workers run."""
        return self._pool.is_alive

    def run(self, job: Job, timeout_s: float) -> RunRecord:
        """Run a job, and count its seconds and those of its steps."""
        begin = time.perf_counter()
        try:
            record = self._pool.run(job, timeout_s)
        finally:
            self._executor.add("runs", begin)
        self._executor.seconds["steps"] += step_seconds(record)
        return record

    def close(self) -> None:
        """End the workers."""
        begin = time.perf_counter()
        self._pool.close()
        self._executor.add("ending workers", begin)


def step_seconds(record: RunRecord) -> float:
    """Return the seconds of all steps of a run, warm-up and phases included."""
    return max(sum(w.warmup_s) + sum(w.step_s) + sum(w.phase_step_s) for w in record.workers)


def measure_study(study: Study, path: Path) -> tuple[float, TimedExecutor]:
    executor = TimedExecutor(load_executor("torch"))
    begin = time.perf_counter()
    measurement.measure(study, path, executors={"torch": executor})
    wall_s, seconds = time.perf_counter() - begin, executor.seconds
    seconds["building, messages"] = seconds["runs"] - seconds["steps"]
    known = sum(seconds[name] for name in (*CAUSES[:3], "runs"))
    seconds["planning, committing"] = wall_s - known
    return wall_s, executor


def full_size(study: Study, executor: TimedExecutor) -> dict[str, float]:
    """Return what the costs of this campaign make of the full study."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Campaign(study, Path(folder) / "plan.db") as campaign,
    ):
        plan = campaign.plan
    seconds, counts = executor.seconds, executor.counts
    per_round = seconds["importing PyTorch"] / counts["importing PyTorch"]
    per_start = (seconds["starting workers"] + seconds["ending workers"]) / counts[
        "ending workers"
    ]
    per_run = (seconds["building, messages"] + seconds["planning, committing"]) / counts["runs"]
    n_rounds, n_starts = (len({getattr(run, of) for run in plan}) for of in ("round", "session"))
    outside = n_rounds * per_round + n_starts * per_start + len(plan) * per_run
    steps = len(plan) * seconds["steps"] / counts["runs"]
    return {"wall_s": outside + steps, "share_outside": outside / (outside + steps)}


def summarise(study: Study, wall_s: float, executor: TimedExecutor) -> dict[str, object]:
    seconds = executor.seconds
    return {
        "n_trials": study.n_trials,
        "n_runs": executor.counts["runs"],
        "n_starts": executor.counts["starting workers"],
        "wall_s": wall_s,
        "steps_s": seconds["steps"],
        "share_outside": 1 - seconds["steps"] / wall_s,
        "trials_per_s": study.n_trials / wall_s,
        "outside_s": {cause: seconds[cause] for cause in CAUSES},
    }


def report(figures: dict[str, object]) -> None:
    print(
        "{n_trials} trials, {n_runs} runs, {n_starts} starts: {wall_s:.1f} s, of it "
        "{steps_s:.1f} s in steps; {share_outside:.1%} outside; "
        "{trials_per_s:.2f} trials/s".format(**figures)
    )
    for cause, seconds in figures["outside_s"].items():
        print(f"  {cause:22} {seconds:7.1f} s  {seconds / figures['wall_s']:6.1%}")
    if "full_size" in figures:
        print(
            "at full size these costs make {wall_s:.0f} s, {share_outside:.1%} outside".format(
                **figures["full_size"]
            )
        )


def measure() -> dict[str, object]:
    full, kept = load_study("chapter4"), os.environ.get("PACELINE_CAMPAIGN_STORE")
    study = replace(full, n_trials=int(os.environ.get("PACELINE_CAMPAIGN_TRIALS", N_TRIALS)))
    with tempfile.TemporaryDirectory() as folder:
        wall_s, executor = measure_study(study, Path(kept or Path(folder) / "campaign.db"))
    figures = summarise(study, wall_s, executor)
    if study.n_trials < full.n_trials:
        figures["full_size"] = full_size(full, executor)
    report(figures)
    return figures
