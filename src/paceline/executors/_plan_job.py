"""From a plan to the job that its workers are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError
from paceline.executors._job import Delay, Job
from paceline.executors._runnable import RUNNABLE, why_not_run
from paceline.oracle import divided_layers, spatial_blocks, tensor_roles
from paceline.scenario import Plan, Strategy
from paceline.workloads import LayerGraph, Network, load_workload, trace_file

_PRECISIONS = ("float64", "float32", "bfloat16")
_INSIDE = ("filter", "channel", "spatial", "tensor")  # degrees that change layers themselves
_LEARNING_RATE = 0.001


def graph_of_plan(plan: Plan) -> LayerGraph:
    """Return the layers of the network that a plan is for.

    Raises
    ------
    InvalidInputError
        When the network is not the one that was planned: its fingerprint differs.
    """
    module = plan.workload.get("module")
    if module:
        graph = _traced(plan.workload)
    else:
        graph = load_workload(str(plan.workload["name"])).graph(_values(plan))
    if graph.fingerprint != plan.fingerprint:
        name = module["name"] if module else plan.workload["name"]
        raise InvalidInputError(
            f"A plan must be run with the network that it was made for (fingerprint "
            f"{plan.fingerprint}), but {name} has {graph.fingerprint}: plan it again."
        )
    return graph


def job_of_plan(
    plan: Plan,
    *,
    n_warmup: int = 2,
    n_steps: int = 10,
    n_phase_steps: int = 0,
    data: Mapping[str, Any] | None = None,
    seed: int = 0,
    delays: Sequence[Delay] = (),
    return_weights: bool = False,
    graph: LayerGraph | None = None,
) -> Job:
    """Return the job that divides a step as a plan says.

    Parameters
    ----------
    plan
        What to run; its devices become workers, numbered in their order.
    n_warmup, n_steps, n_phase_steps, seed, delays, return_weights
        As a job has them; the steps of the second pass are timed by phase.
    data
        What is trained on; None: generated samples, as many as four steps take.
    graph
        Of the plan's network, when it is known already.

    Raises
    ------
    InvalidInputError
        When no worker runs the strategy, or the plan is for another network.
    """
    check_runnable(plan)
    graph = graph or graph_of_plan(plan)
    _check_tied(plan, graph)
    keywords = _network(plan)
    return Job(
        **keywords,
        optimizer={"name": plan.optimizer, "learning_rate": _learning_rate(plan)},
        device_batches=_device_batches(plan),
        n_warmup=n_warmup,
        n_steps=n_steps,
        n_phase_steps=n_phase_steps,
        data=dict(data or {"kind": "generated", "n_samples": 4 * plan.global_batch}),
        seed=seed,
        delays=tuple(delays),
        return_weights=return_weights,
        division=_division(plan, graph, keywords.get("network", ())),
        precision=plan.precision,
    )


def check_runnable(plan: Plan) -> None:
    """Refuse a plan that no worker runs, saying what workers do run."""
    reason = why_not_run(plan.strategy)
    if reason:
        raise InvalidInputError(
            f"A plan must have a strategy that workers run, but {reason} ({plan.strategy}). "
            f"They run: {'; '.join(RUNNABLE)}."
        )
    if plan.precision not in _PRECISIONS:
        raise InvalidInputError(
            f"A plan must be in one of {', '.join(_PRECISIONS)} to be run, but is in "
            f"{plan.precision}."
        )
    inside = [name for name in _INSIDE if getattr(plan.strategy, name) > 1]
    if plan.workload.get("module") and inside:
        raise InvalidInputError(
            f"`{inside[0]}` must be run with a shipped workload, whose layers are known to "
            "workers; a module of your own takes data, sharded and pipeline plans."
        )
    _check_batches(plan)


def ranks_of_plan(plan: Plan) -> list[list[int]]:
    """Return the workers of every replica: its devices, counted without gaps."""
    used = sorted(device for devices in plan.placement for device in devices)
    rank = {device: i for i, device in enumerate(used)}
    return [[rank[device] for device in devices] for devices in plan.placement]


def _check_batches(plan: Plan) -> None:
    n = plan.strategy.micro_batches
    for batch in plan.replica_batches:
        if batch < n or (plan.strategy.pipeline > 1 and batch % n):
            raise InvalidInputError(
                f"{n} micro-batches must be cut from the samples of every replica, but one has "
                f"{batch}."
            )


def _check_tied(plan: Plan, graph: LayerGraph) -> None:
    """Refuse late gradients of weights that two stages share: their copies would drift apart."""
    if plan.strategy.schedule != "unlocked" or plan.strategy.pipeline == 1:
        return
    stage_of = {
        layer.name: i
        for i, stage in enumerate(plan.stages)
        for layer in graph.layers[stage.first : stage.end]
    }
    for layer in graph.layers:
        if layer.tied and stage_of[layer.tied] != stage_of[layer.name]:
            raise InvalidInputError(
                f"The unlocked schedule must have every weight in one stage, but {layer.name!r} "
                f"shares that of {layer.tied!r}. Try: --strategy pipeline"
            )


def _values(plan: Plan) -> dict[str, Any]:
    return dict(plan.workload.get("values") or {})


def _learning_rate(plan: Plan) -> float:
    return float(_values(plan).get("learning_rate", _LEARNING_RATE))


def _traced(workload: Mapping[str, Any]) -> LayerGraph:
    module, sample = workload["module"], workload["sample"]
    return trace_file(
        module["file"],
        module["name"],
        sample["shape"],
        arguments=module.get("arguments"),
        vocabulary=sample.get("vocabulary"),
        loss=workload.get("loss", "cross_entropy"),
    )


def _network(plan: Plan) -> dict[str, Any]:
    """Return what a job says of the network."""
    module = plan.workload.get("module")
    if module:
        return {
            "module": {**module, "file": str(Path(module["file"]).resolve())},
            "sample": plan.workload["sample"],
            "loss": plan.workload.get("loss", "cross_entropy"),
        }
    network: Network = load_workload(str(plan.workload["name"])).network(_values(plan))
    return {"network": network.operations, "sample": network.sample, "loss": network.loss}


def _device_batches(plan: Plan) -> list[int]:
    """Return the samples of the replica that every worker belongs to."""
    batches = [0] * plan.strategy.n_devices
    for workers, batch in zip(ranks_of_plan(plan), plan.replica_batches, strict=True):
        for worker in workers:
            batches[worker] = batch
    return batches


def _division(
    plan: Plan, graph: LayerGraph, operations: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    strategy = plan.strategy
    division: dict[str, Any] = {
        "strategy": _as_run(strategy),
        "placement": ranks_of_plan(plan),
        "replica_batches": list(plan.replica_batches),
        "stages": [],
    }
    if operations:
        division["stages"] = _ranges(plan, graph, operations)
    elif strategy.pipeline > 1:
        division["split_points"] = _split_points(plan, graph)
    for degree in ("filter", "channel"):
        if getattr(strategy, degree) > 1:
            division["split_layers"] = list(divided_layers(graph, degree))
    if strategy.tensor > 1:
        division["tensor_roles"] = tensor_roles(graph)
    if strategy.spatial > 1:
        blocks = spatial_blocks(graph, strategy.spatial)
        division |= {"grid": list(blocks.grid), "n_leading": blocks.n_units}
    return division


def _as_run(strategy: Strategy) -> dict[str, Any]:
    """Return a strategy as workers know it: one stage at a time is GPipe with one micro-batch."""
    found = strategy.to_dict()
    if strategy.schedule == "sequential":
        found["schedule"] = "gpipe"
    if strategy.schedule == "interleaved" and strategy.virtual_stages == 1:
        found["schedule"] = "1f1b"
    return found


def _ranges(
    plan: Plan, graph: LayerGraph, operations: Sequence[Mapping[str, Any]]
) -> list[list[int]]:
    """Return the operations of every stage: a unit of the graph is an outermost operation."""
    place = {operation["name"]: i for i, operation in enumerate(operations)}
    firsts = [place[graph.layers[first].block] for first in _cuts(plan, graph)]
    return [[a, b] for a, b in zip(firsts, [*firsts[1:], len(operations)], strict=True)]


def _split_points(plan: Plan, graph: LayerGraph) -> list[dict[str, str]]:
    """Return the layers between which a module of the user's is cut."""
    firsts = _cuts(plan, graph)[1:]
    return [
        {"before": graph.layers[first].name, "behind": graph.layers[first - 1].name}
        for first in firsts
    ]


def _cuts(plan: Plan, graph: LayerGraph) -> list[int]:
    """Return the first layer of every stage."""
    begins = {first for first, _ in graph.units}
    if plan.stages[-1].end != len(graph):
        raise InvalidInputError(
            f"The stages of a plan must hold all {len(graph)} layers of {graph.name}, but end "
            f"behind {plan.stages[-1].end}: make it again."
        )
    for stage in plan.stages:
        if stage.first not in begins:
            raise InvalidInputError(
                f"A stage must begin where {graph.name} may be cut, but one begins inside "
                f"{graph.layers[stage.first].block!r}: make the plan again."
            )
    return [stage.first for stage in plan.stages]
