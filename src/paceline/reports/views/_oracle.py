"""What the oracle and a plan say, as numbers for a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from paceline.oracle import SECONDS, PipelineRun, Survey
from paceline.scenario import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPoint:
    """The best that one strategy does on a number of devices; None where it is impossible."""

    strategy: str
    degrees: str
    n_devices: int
    global_batch: int
    step_s: float | None
    samples_per_s: float | None
    memory_bytes: float | None
    fits: bool
    is_best: bool
    limit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyView:
    """Every strategy on every number of devices, beside the memory of a device."""

    workload: str
    values: Mapping[str, Any]
    cluster: str
    device: str
    device_memory_bytes: float
    points: tuple[StrategyPoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassBar:
    """One pass of one micro-batch on one stage, from when until when."""

    stage: int
    piece: int
    micro_batch: int
    is_backward: bool
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A plan: parts of its predicted step, stages, reasons, others, and its passes.

    Parameters
    ----------
    strategy, objective, cluster, n_devices, global_batch
        What was chosen, why and for what.
    parts_s
        Parts of the step that are not nothing, in words.
    step_s, memory_bytes
        Predicted; memory of the fullest device.
    stages
        ``name``, ``layers`` and ``devices`` (of the first replica) of every stage.
    reasons, runners_up
        As in the plan.
    passes
        When every pass of the pipeline runs; empty without one.
    bubble_share
        Share of the stages' time in which they wait; None without a pipeline.
    """

    strategy: str
    objective: str
    cluster: str
    n_devices: int
    global_batch: int
    parts_s: Mapping[str, float]
    step_s: float
    memory_bytes: float | None
    stages: tuple[Mapping[str, Any], ...]
    reasons: tuple[str, ...]
    runners_up: tuple[Mapping[str, Any], ...]
    passes: tuple[PassBar, ...]
    bubble_share: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


def view_survey(survey: Survey) -> SurveyView:
    """Return every strategy of a survey with time, rate and memory."""
    result, best = survey.result, set(survey.best.values())
    frame = survey.frame()
    points = []
    for row, record in enumerate(frame.to_dict("records")):
        possible = bool(result.is_possible[row])
        points.append(
            StrategyPoint(
                strategy=str(record["strategy"]),
                degrees=str(result.table.strategy(row)),
                n_devices=int(record["n_devices"]),
                global_batch=int(record["global_batch"]),
                step_s=float(record["step_s"]) if possible else None,
                samples_per_s=float(record["samples_per_s"]) if possible else None,
                memory_bytes=float(record["memory_bytes"]) if possible else None,
                fits=bool(record["fits"]),
                is_best=row in best,
                limit=str(record["why"] or record["bottleneck"]),
            )
        )
    return SurveyView(
        workload=result.graph.name,
        values=dict(result.graph.values),
        cluster=result.cluster.name,
        device=result.cluster.device.name,
        device_memory_bytes=float(result.cluster.device.memory_bytes),
        points=tuple(points),
    )


def view_plan(plan: Plan, run: PipelineRun | None = None) -> PlanView:
    """Return what a plan says.

    Parameters
    ----------
    plan
        The plan.
    run
        When its passes run, as `predicted_run` gives it; None without a pipeline.
    """
    words: dict[str, float] = {}
    for name, word in SECONDS.items():
        value = float(plan.predicted.get(name, 0.0))
        label = name.removesuffix("_s").replace("_", " ")
        words[label if label == word else f"{label} ({word})"] = value
    memory = plan.predicted.get("memory_bytes")
    return PlanView(
        strategy=str(plan.strategy),
        objective=plan.objective,
        cluster=plan.cluster,
        n_devices=plan.strategy.n_devices,
        global_batch=plan.global_batch,
        parts_s={name: value for name, value in words.items() if value > 0},
        step_s=float(plan.predicted["step_s"]),
        memory_bytes=None if memory is None else float(memory),
        stages=_stages(plan),
        reasons=plan.reasons,
        runners_up=plan.runners_up,
        passes=() if run is None else _passes(run),
        bubble_share=None if run is None else run.bubble_share,
    )


def _stages(plan: Plan) -> tuple[Mapping[str, Any], ...]:
    n = plan.strategy.pipeline
    inner = len(plan.placement[0]) // n
    found = []
    for i, stage in enumerate(plan.stages):
        first, last = stage.names
        place = i % n  # virtual stages go round the devices
        devices = list(plan.placement[0][place * inner : (place + 1) * inner])
        layers = first if first == last else f"{first} to {last}"
        found.append({"name": f"stage {i}", "layers": layers, "devices": devices})
    return tuple(found)


def _passes(run: PipelineRun) -> tuple[PassBar, ...]:
    columns = (run.stage, run.piece, run.micro_batch, run.backward, run.start_s, run.end_s)
    return tuple(
        PassBar(stage=s, piece=p, micro_batch=m, is_backward=b, start_s=t0, end_s=t1)
        for s, p, m, b, t0, t1 in zip(*(column.tolist() for column in columns), strict=True)
    )
