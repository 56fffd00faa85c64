"""The search for a plan: degrees, micro-batches, sharding, cut, schedule and placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.clusters import Cluster
from paceline.errors import InfeasibleError, InvalidInputError
from paceline.oracle import SECONDS, TRAFFIC, PipelineRun, known_samples
from paceline.planners._candidates import Candidate, work_out
from paceline.planners._links import improve_placement
from paceline.planners._mixed import work_out_mixed
from paceline.planners._objectives import behind, choose, front_rows, priced
from paceline.planners._reasons import explain_choice
from paceline.planners._schedule import compare_schedules, tell_transfers_apart, time_step
from paceline.planners._shortlist import Sifted, family_codes, sift
from paceline.planners._stages import ends_of, stages_of
from paceline.planners._task import Predictor, Task
from paceline.scenario import Plan, Strategy, StrategyTable
from paceline.units import format_number
from paceline.workloads import LayerGraph

_MOST_RUNNERS_UP = 8


@dataclass(frozen=True, kw_only=True)
class PlanSearch:
    """What a search found.

    Parameters
    ----------
    plan
        The best.
    front
        Rows that no other beats in step time, devices, memory and device-seconds, fastest first.
    schedules
        Of the plan's pipeline: step, bubble and memory of its cut under every schedule.
    run
        When every pass of the plan's pipeline runs; None without one.
    memory_bytes
        Of every stage's device.
    n_scenarios, n_fitting, n_worked_out
        How many were looked at, fit in memory, and were cut, placed and simulated.
    currency
        Of prices, where the cluster has one.
    """

    plan: Plan
    front: tuple[Mapping[str, Any], ...]
    schedules: Mapping[str, Mapping[str, float]]
    run: PipelineRun | None
    memory_bytes: tuple[float, ...]
    n_scenarios: int
    n_fitting: int
    n_worked_out: int
    currency: str = "USD"


def plan_training(
    graph: LayerGraph, cluster: Cluster, n_devices: int, global_batch: int, **options: Any
) -> Plan:
    """Return the best plan; `search_plans` takes the same and returns what else was found."""
    return search_plans(graph, cluster, n_devices, global_batch, **options).plan


def search_plans(
    graph: LayerGraph,
    cluster: Cluster,
    n_devices: int,
    global_batch: int,
    *,
    workload: Mapping[str, Any] | None = None,
    cluster_name: str | None = None,
    objective: str = "fastest",
    deadline_s: float | None = None,
    n_samples: int | None = None,
    optimizer: str = "adam",
    precision: str = "float32",
    predictor: Predictor | None = None,
    runnable_only: bool = True,
    names: Sequence[str] | None = None,
    strategies: Sequence[Strategy] = (),
    use_all: bool = False,
) -> PlanSearch:
    """Return the best plan for up to so many devices, its runners-up and the front.

    Parameters
    ----------
    graph, cluster
        What is trained, and on what.
    n_devices
        How many devices there are; a plan uses fewer where more would not serve the objective.
    global_batch
        Samples of a step.
    workload
        As `Plan` keeps it; None: the graph's name and values.
    cluster_name
        Name or file of the cluster for the plan; None: its own name.
    objective
        ``fastest`` step, ``cheapest`` step (device-seconds), or ``fewest`` devices within the
        deadline.
    deadline_s, n_samples
        Seconds that an epoch may take, and its samples; None: those of the known dataset.
    optimizer, precision
        As `sweep` takes them.
    predictor
        Anything with ``predict(scenarios)`` in place of the oracle's times.
    runnable_only
        Whether only strategies that an executor runs are looked at.
    names, strategies
        Names as `enumerate_strategies` takes them, or whole strategies; None: all.
    use_all
        Whether all devices must be used.

    Raises
    ------
    InvalidInputError
        When no strategy is possible with this batch and these degrees; says why.
    InfeasibleError
        When none fits in memory (what is short, by how much, on which stage) or none meets the
        deadline.
    """
    task = Task(
        graph=graph,
        cluster=cluster,
        n_devices=n_devices,
        global_batch=global_batch,
        optimizer=optimizer,
        precision=precision,
        objective=objective,
        deadline_s=deadline_s,
        n_samples=n_samples or known_samples(graph),
        predictor=predictor,
        runnable_only=runnable_only,
        workload=workload or {"name": graph.name, "values": dict(graph.values)},
    )
    sifted = sift(task, names, strategies, use_all)
    found = _worked_out(task, sifted)
    order = choose(task, found)
    if not order:
        raise InfeasibleError(_shortage(task, found))
    best = improve_placement(task, order[0])
    best = replace(best, timed=tell_transfers_apart(best.strategy, best.timed))
    order = [best, *order[1:]]
    plan = _plan(task, order, len(sifted.result), cluster_name or cluster.name)
    return PlanSearch(
        plan=plan,
        front=tuple(front_rows(task, _rows(sifted, order))),
        schedules=_schedules(task, best),
        run=best.timed.run,
        memory_bytes=best.needed,
        n_scenarios=len(sifted.result),
        n_fitting=int(sifted.fits.sum()),
        n_worked_out=len(found),
        currency=cluster.currency,
    )


def _worked_out(task: Task, sifted: Sifted) -> list[Candidate]:
    """Return the promising scenarios in full; those with too few layers for it are left out."""
    found, refused = [], []
    for row in sifted.rows:
        strategy = sifted.result.table.strategy(row)
        try:
            work = work_out if task.cluster.is_even else work_out_mixed
            candidate = work(task, strategy)
        except InvalidInputError as error:
            refused.append(error)
            continue
        if task.predictor is not None:
            candidate = replace(candidate, step_s=_predicted(task, sifted, row))
        found.append(candidate)
    if not found:
        raise refused[0]
    return found


def _predicted(task: Task, sifted: Sifted, row: int) -> float:
    if sifted.fits[row]:
        return float(sifted.step_s[row])
    assert task.predictor is not None
    return float(task.predictor.predict([task.scenario(sifted.result.table.strategy(row))])[0])


def _shortage(task: Task, found: Sequence[Candidate]) -> str:
    """Say what is short by how much on which stage, of the plan that comes nearest."""

    def short(candidate: Candidate) -> float:
        return max(n - limit for n, limit in zip(candidate.needed, candidate.limits, strict=True))

    near = min(found, key=short)
    lacks = [n - limit for n, limit in zip(near.needed, near.limits, strict=True)]
    i = lacks.index(max(lacks))
    stage = stages_of(task.graph, near.ends)[i]
    where = f"stage {i}, {stage.names[0]} to {stage.names[1]}," if len(lacks) > 1 else "a device,"
    gib = [format_number(b / 2**30) for b in (near.needed[i], lacks[i], near.limits[i])]
    return (
        f"No plan fits in memory: the nearest, {near.strategy}, needs {gib[0]} GiB on {where} "
        f"{gib[1]} GiB more than the {gib[2]} GiB there are. Take more devices, a smaller batch, "
        f"or an optimizer with less state."
    )


def _plan(task: Task, order: Sequence[Candidate], n: int, cluster: str) -> Plan:
    best = order[0]
    return Plan(
        workload=task.workload,
        fingerprint=task.graph.fingerprint,
        cluster=cluster,
        strategy=best.strategy,
        global_batch=task.global_batch,
        optimizer=task.optimizer,
        precision=task.precision,
        stages=stages_of(task.graph, best.ends),
        placement=best.placement,
        replica_batches=best.replica_batches,
        predicted=_predictions(task, best),
        reasons=tuple(explain_choice(task, best, order[1:], n)),
        runners_up=tuple(_runners_up(task, order)),
        objective=task.objective,
    )


def _predictions(task: Task, best: Candidate) -> dict[str, float]:
    figures = best.timed.figures
    known = {"step_s": best.step_s}
    if task.predictor is None:
        known |= {name: figures[name] for name in SECONDS}
    else:  # a fitted model knows no parts
        known["oracle_step_s"] = figures["step_s"]
    for name in ("memory_bytes", "traffic_bytes", *TRAFFIC, "efficiency"):
        known[name] = figures[name]
    known["memory_bytes"] = max(best.needed)
    known["device_s"] = best.device_s
    return priced(task, known)


def _runners_up(task: Task, order: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return the best of every other kind of strategy, with how much more each costs."""
    best = order[0]
    codes = family_codes(StrategyTable.from_strategies([c.strategy for c in order]))
    found, seen = [], {int(codes[0])}
    for candidate, code in zip(order[1:], codes[1:], strict=True):
        if int(code) in seen:
            continue
        seen.add(int(code))
        found.append(
            {
                "strategy": str(candidate.strategy),
                "n_devices": candidate.n_devices,
                "step_s": candidate.step_s,
                "memory_bytes": max(candidate.needed),
                "behind": behind(task, best, candidate),
            }
        )
    return found[:_MOST_RUNNERS_UP]


def _rows(sifted: Sifted, order: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return all scenarios that fit, those worked out first."""
    rows = [
        {
            "strategy": str(c.strategy),
            "n_devices": c.n_devices,
            "step_s": c.step_s,
            "memory_bytes": max(c.needed),
            "device_s": c.device_s,
        }
        for c in order
    ]
    known = {row["strategy"] for row in rows}
    table = sifted.result.table
    for i in sifted.fits.nonzero()[0]:
        strategy = table.strategy(int(i))
        if str(strategy) not in known:
            step_s = float(sifted.step_s[i])
            rows.append(
                {
                    "strategy": str(strategy),
                    "n_devices": strategy.n_devices,
                    "step_s": step_s,
                    "memory_bytes": float(sifted.result.memory_bytes[i]),
                    "device_s": strategy.n_devices * step_s,
                }
            )
    return rows


def _schedules(task: Task, best: Candidate) -> dict[str, dict[str, float]]:
    strategy = best.strategy
    if strategy.pipeline == 1 or strategy.virtual_stages > 1:
        return {}
    return compare_schedules(task, strategy, best.ends)


def predicted_run(plan: Plan, graph: LayerGraph, cluster: Cluster) -> PipelineRun | None:
    """Return when every pass of a plan's pipeline runs; None without a pipeline.

    Raises
    ------
    InvalidInputError
        When the plan is of another network.
    """
    if plan.fingerprint != graph.fingerprint:
        raise InvalidInputError(
            f"A plan must be of the network it is used with, but its fingerprint is "
            f"{plan.fingerprint} and {graph.name}'s is {graph.fingerprint}."
        )
    if plan.strategy.pipeline == 1:
        return None
    task = Task(
        graph=graph,
        cluster=cluster,
        n_devices=plan.strategy.n_devices,
        global_batch=plan.global_batch,
        optimizer=plan.optimizer,
        precision=plan.precision,
    )
    inner = plan.strategy.n_devices // plan.strategy.data // plan.strategy.pipeline
    speeds = cluster.speeds(cluster.n_devices or plan.strategy.n_devices)
    own = speeds[list(plan.placement[0])].reshape(-1, inner).min(axis=1)
    return time_step(task, plan.strategy, ends_of(graph, plan.stages), speeds=own).run
