"""Run a plan for real, and put what was measured beside what was predicted."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.clusters import Cluster, load_cluster
from paceline.errors import InvalidInputError
from paceline.executors import (
    BaseExecutor,
    RunRecord,
    WorkerRecord,
    check_runnable,
    graph_of_plan,
    job_of_plan,
    load_executor,
    ranks_of_plan,
)
from paceline.measurement._own_module import parse_module
from paceline.measurement._protocol import steady_steps
from paceline.oracle import SECONDS
from paceline.scenario import Plan, Scenario
from paceline.workloads import LayerGraph

# phases of a divided step with the predicted parts that they are made of
PHASES_OF_PLAN: Mapping[str, tuple[str, ...]] = {
    "forward": ("forward_s",),
    "backward": ("backward_s",),
    "transfer": tuple(n for n in SECONDS if n not in ("forward_s", "backward_s", "update_s")),
    "update": ("update_s",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRun:
    """A plan with what its workers measured.

    Parameters
    ----------
    plan, scenario
        What was run.
    record
        What the workers said.
    """

    plan: Plan
    scenario: Scenario
    record: RunRecord

    @property
    def times_s(self) -> tuple[float, ...]:
        """Times of the steady steps."""
        return steady_steps(self.record.step_s)

    @property
    def step_s(self) -> float:
        """Median of the steady steps."""
        return statistics.median(self.times_s)

    @property
    def phases(self) -> dict[str, tuple[float | None, float]]:
        """Predicted and measured seconds by phase, the latter as means over workers."""
        found = {}
        for phase, parts in PHASES_OF_PLAN.items():
            known = [self.plan.predicted[n] for n in parts if n in self.plan.predicted]
            measured = [_median(w.phases, phase) for w in self.record.workers if w.phases]
            if measured:
                predicted = sum(known) if known else None
                found[phase] = predicted, statistics.fmean(measured)
        return found

    @property
    def traffic_bytes(self) -> float:
        """Payload of a step: of the busiest worker's collectives, and of the mean one's sends."""
        collective, sent = [], []
        for worker in self.record.workers:
            payload = worker.traffic_bytes
            sent.append(payload.get("send", 0.0))
            collective.append(
                sum(n for kind, n in payload.items() if kind not in ("send", "receive"))
            )
        return max(collective) + statistics.fmean(sent)

    @property
    def memory_bytes(self) -> float:
        """Most tensor storage that a worker held."""
        return max(worker.tensor_peak_bytes for worker in self.record.workers)

    @property
    def staleness(self) -> list[int]:
        """By how many updates the gradients of every stage are late, at most (unlocked)."""
        strategy = self.plan.strategy
        if strategy.schedule != "unlocked" or strategy.pipeline == 1:
            return [0] * strategy.pipeline
        behind = range(strategy.pipeline - 1, -1, -1)
        return [math.ceil(2 * n / strategy.micro_batches) for n in behind]

    @property
    def workers(self) -> list[dict[str, Any]]:
        """What every worker is and measured, in order of ranks."""
        places = _places(self.plan)  # with several hosts, those of this one answer here
        return [_described(w, *places[w.rank]) for w in self.record.workers]

    def to_dict(self) -> dict[str, Any]:
        """Return predicted beside measured as plain data."""
        predicted = self.plan.predicted
        return {
            "schema": "paceline/run/1",
            "strategy": self.plan.strategy.to_dict(),
            "step_s": {"predicted": predicted.get("step_s"), "measured": self.step_s},
            "minimum_step_s": min(self.times_s),
            "phases": {
                name: {"predicted": a, "measured": b} for name, (a, b) in self.phases.items()
            },
            "traffic_bytes": {
                "predicted": predicted.get("traffic_bytes"),
                "measured": self.traffic_bytes,
            },
            "memory_bytes": {
                "predicted": predicted.get("memory_bytes"),
                "measured": self.memory_bytes,
            },
            "staleness": self.staleness,
            "workers": self.workers,
            "losses": list(self.record.workers[0].losses),
            "times_s": list(self.times_s),
        }


def run_plan(
    plan: Plan,
    *,
    n_steps: int = 20,
    n_warmup: int = 3,
    n_phase_steps: int = 5,
    timeout_s: float = 600.0,
    data: Mapping[str, Any] | None = None,
    module: str | None = None,
    cluster: Cluster | None = None,
    executor: BaseExecutor | None = None,
    memory_bytes: int | None = None,
) -> PlanRun:
    """Train some steps as a plan says.

    Parameters
    ----------
    plan
        What to run.
    n_steps, n_warmup, n_phase_steps
        Steps to time, steps before them, and steps of a second pass whose phases are timed.
    timeout_s
        Seconds that all of them may take, without the start of the workers.
    data
        As a job has it; None: generated samples of the right shape.
    module
        ``FILE:NAME`` of the user's network, when it is elsewhere than the plan says.
    cluster
        What the plan is for; None: as it names it.
    executor
        Who starts the workers; None: PyTorch on this machine.
    memory_bytes
        Resident memory that each worker may use.

    Raises
    ------
    InvalidInputError
        When the plan cannot be run: another network, devices that are not there, a strategy that
        no worker runs.
    ExecutionError
        When a worker dies, hangs or runs out of memory; names it. No process is left.
    """
    plan = _with_module(plan, module)
    check_runnable(plan)
    known = cluster or load_cluster(plan.cluster)
    _check_devices(plan, known)
    graph = graph_of_plan(plan)
    job = job_of_plan(
        plan,
        n_warmup=n_warmup,
        n_steps=n_steps,
        n_phase_steps=n_phase_steps,
        data=data,
        graph=graph,
    )
    runner = executor or load_executor("torch")
    with runner.open(job.n_workers, memory_bytes=memory_bytes) as pool:
        record = pool.run(job, timeout_s)
    return PlanRun(plan=plan, scenario=scenario_of_plan(plan, graph, known), record=record)


def scenario_of_plan(plan: Plan, graph: LayerGraph, cluster: Cluster) -> Scenario:
    """Return the scenario that a plan is of."""
    return Scenario(
        graph=graph,
        cluster=cluster,
        strategy=plan.strategy,
        global_batch=plan.global_batch,
        optimizer=plan.optimizer,
        precision=plan.precision,
    )


def _with_module(plan: Plan, module: str | None) -> Plan:
    if module is None:
        return plan
    if not plan.workload.get("module"):
        raise InvalidInputError(
            f"--module must go with a plan for a module of your own, but this one is for the "
            f"workload {plan.workload.get('name')!r}."
        )
    found = {**plan.workload["module"], **parse_module(module)}
    return replace(plan, workload={**plan.workload, "module": found})


def _check_devices(plan: Plan, cluster: Cluster) -> None:
    here, largest = cluster.capacity, max(max(devices) for devices in plan.placement)
    if here and largest >= here:
        raise InvalidInputError(
            f"A placement must name devices of {cluster.name}, which has {here}, but got device "
            f"{largest}."
        )


def _places(plan: Plan) -> dict[int, tuple[int, int, int]]:
    """Return replica, stage and device of every worker."""
    n_parts = plan.strategy.n_devices // (plan.strategy.data * plan.strategy.pipeline)
    found = {}
    for replica, (ranks, devices) in enumerate(
        zip(ranks_of_plan(plan), plan.placement, strict=True)
    ):
        for i, (rank, device) in enumerate(zip(ranks, devices, strict=True)):
            found[rank] = replica, i // n_parts, device
    return found


def _described(worker: WorkerRecord, replica: int, stage: int, device: int) -> dict[str, Any]:
    return {
        "rank": worker.rank,
        "device": device,
        "replica": replica,
        "stage": stage,
        "step_s": statistics.median(worker.step_s),
        "phases": {name: _median(worker.phases, name) for name in _names(worker.phases)},
        "traffic_bytes": dict(worker.traffic_bytes),
        "tensor_peak_bytes": worker.tensor_peak_bytes,
        "peak_memory_bytes": worker.peak_memory_bytes,
    }


def _names(phases: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for step in phases for name in step))


def _median(phases: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(step.get(name, 0.0) for step in phases)
