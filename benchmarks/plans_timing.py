"""Step times of plans in fresh processes, all in turn: what the benchmarks of plans share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.clusters import Cluster, load_cluster, save_cluster
from paceline.errors import PacelineError
from paceline.executors import BaseExecutor, Job, RunRecord, job_of_plan, load_executor
from paceline.measurement import calibrate, pace, steady_steps
from paceline.planners import plan_training
from paceline.scenario import Plan, Strategy
from paceline.workloads import load_workload

HERE = Path(__file__).parent / "results" / "here.toml"
TIMEOUT_S = 900.0
_N_CORES = os.cpu_count() or 1


@dataclass
class Timed:
    """Records of one job, one for each life."""

    records: list[RunRecord] = field(default_factory=list)

    @property
    def lives_s(self) -> list[float]:
        """What a steady step takes in every life."""
        return [
            pace(steady_steps(record.step_s), shares_cores=len(record.workers) > _N_CORES)
            for record in self.records
        ]

    @property
    def step_s(self) -> float:
        """Time of a step in the fastest life."""
        return min(self.lives_s)


def quick() -> bool:
    """Return whether only to try things out: PACELINE_QUICK=1."""
    return bool(os.environ.get("PACELINE_QUICK"))


def time_jobs(
    jobs: Mapping[Any, Job], n_lives: int, executor: BaseExecutor | None = None
) -> dict[Any, Timed]:
    """Return what every job took in `n_lives` sets of fresh processes, jobs in turn."""
    found = {name: Timed() for name in jobs}
    for _ in range(n_lives):
        warm = (executor or load_executor("torch")).warm()
        try:
            for name, job in jobs.items():
                with warm.open(job.n_workers) as pool:
                    found[name].records.append(pool.run(job, TIMEOUT_S))
        finally:
            warm.close()
    return found


def this_machine() -> Cluster:
    """Return this machine as `paceline calibrate` describes it, measured once."""
    if not HERE.exists():
        print("calibrating this machine ...", flush=True)
        HERE.parent.mkdir(exist_ok=True)
        save_cluster(calibrate(workers=(1, 2)).cluster, HERE)
    return load_cluster(str(HERE))


def plan_one(
    name: str,
    values: Mapping[str, Any],
    strategy: Strategy,
    global_batch: int,
    cluster: Cluster,
    **options: Any,
) -> Plan:
    """Return the plan of one strategy, cut and placed as `paceline plan` does, by SGD."""
    return plan_training(
        load_workload(name).graph(values),
        cluster,
        strategy.n_devices,
        global_batch,
        workload={"name": name, "values": dict(values)},
        strategies=[strategy],
        optimizer="sgd",
        use_all=True,
        **options,
    )


def jobs_of(plans: Mapping[str, Plan], n_steps: int, n_warmup: int = 3) -> dict[str, Job]:
    """Return the jobs of plans."""
    return {
        name: job_of_plan(plan, n_steps=n_steps, n_warmup=n_warmup) for name, plan in plans.items()
    }


def possible(make: Callable[[], Plan]) -> Plan | None:
    """Return a plan, or None where a network does not take the strategy."""
    try:
        return make()
    except PacelineError as error:
        print(f"  left out: {error}", flush=True)
        return None


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
