"""What a report can add when more is known: a plan's passes, strategies on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.clusters import load_cluster
from paceline.dataset import Dataset, counts_what
from paceline.errors import InvalidInputError
from paceline.estimators import FitResult
from paceline.executors import graph_of_plan
from paceline.oracle import PipelineRun, Survey, survey
from paceline.planners import predicted_run
from paceline.scenario import Plan
from paceline.workloads import LayerGraph, load_workload

_MOST_DEVICES = 256
_BATCH = 32  # where no batch is a parameter


def plan_timeline(plan: Plan) -> PipelineRun | None:
    """Return when every pass of a plan's pipeline runs; None without a pipeline.

    Raises
    ------
    PacelineError
        When its network or its cluster cannot be found, or is another one by now.
    """
    if plan.strategy.pipeline == 1:
        return None
    return predicted_run(plan, graph_of_plan(plan), load_cluster(plan.cluster))


def survey_study(
    dataset: Dataset,
    fit: FitResult,
    cluster: str,
    *,
    workload: str | None = None,
    plan: Plan | None = None,
) -> Survey:
    """Return every strategy for a study's workload on a cluster, from first principles.

    Parameters
    ----------
    dataset, fit
        The study; the workload takes its batch and its typical values, or its own defaults
        where those do not make a network.
    cluster
        Name or file.
    workload
        Its name; None: the plan's, else what the data say.
    plan
        A plan of the same study.

    Raises
    ------
    InvalidInputError
        When nothing says what is trained.
    """
    machine = load_cluster(cluster)
    graph = _graph(dataset, fit, workload, plan)
    most = min(machine.n_devices or _MOST_DEVICES, _MOST_DEVICES)
    counts = [2**k for k in range(most.bit_length())]
    return survey(graph, machine, [n for n in counts if n <= most], **_batch(fit, plan))


def _graph(
    dataset: Dataset, fit: FitResult, workload: str | None, plan: Plan | None
) -> LayerGraph:
    if workload is None and plan is not None:
        return graph_of_plan(plan)
    name = workload or _workload_of(dataset, fit)
    known = load_workload(name)
    typical = _values(fit, set(known.complete({})))
    # medians one by one may make a network that cannot be built; the report names what was taken
    return known.graph({} if known.infeasible(typical) else typical)


def _workload_of(dataset: Dataset, fit: FitResult) -> str:
    named = fit.features.workload if fit.features is not None else ""
    if named:
        return named
    column: Any = dataset.X.get("workload", dataset.other.get("workload"))
    names = [] if column is None else sorted({str(value) for value in column})
    if len(names) == 1:
        return names[0]
    raise InvalidInputError(
        "One workload must be known for --cluster, but the data name "
        f"{', '.join(names) or 'none'}. Name it with --workload."
    )


def _values(fit: FitResult, names: set[str]) -> dict[str, Any]:
    fixed = fit.features.fixed if fit.features is not None else {}
    given: Mapping[str, Any] = {**fixed, **fit.measured.typical()}
    return {n: _whole(v) for n, v in given.items() if n in names}


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _batch(fit: FitResult, plan: Plan | None) -> dict[str, Any]:
    if plan is not None:
        return {"global_batch": plan.global_batch}
    sizes = [v for n, v in fit.measured.medians.items() if counts_what(n) == "batch"]
    size = max(1, round(sizes[0])) if sizes else _BATCH
    kind = "global_batch" if fit.basis.batch == "global_batch" else "device_batch"
    return {kind: size}
