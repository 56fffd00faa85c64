"""A plan as it was run: predicted beside measured, as text."""

from __future__ import annotations

import textwrap

from paceline.measurement import PlanRun
from paceline.reports._table import table
from paceline.units import format_count, format_number, format_seconds

_WIDTH = 80
_WORDS = {
    "forward": "forward",
    "backward": "backward",
    "transfer": "exchange and waiting",
    "update": "update",
}


def show_plan_run(run: PlanRun) -> str:
    """Return what was predicted beside what was measured, and what every worker measured."""
    return "\n\n".join([_title(run), _comparison(run), _workers(run), _notes(run)])


def _title(run: PlanRun) -> str:
    plan, n = run.plan, run.plan.strategy.n_devices
    name = run.scenario.graph.name
    text = (
        f"{name} on {format_count(n, 'worker')}: {plan.strategy}; {plan.global_batch} "
        f"samples a step, {plan.optimizer}, {plan.precision}; {len(run.record.step_s)} steps "
        "timed."
    )
    return textwrap.fill(text, _WIDTH)


def _comparison(run: PlanRun) -> str:
    predicted = run.plan.predicted
    rows = [_row("step (median)", predicted.get("step_s"), run.step_s, format_seconds)]
    for phase, (expected, measured) in run.phases.items():
        rows.append(_row(f"  {_WORDS[phase]}", expected, measured, format_seconds))
    rows.append(
        _row("traffic a worker", predicted.get("traffic_bytes"), run.traffic_bytes, _bytes)
    )
    rows.append(
        _row("memory, fullest worker", predicted.get("memory_bytes"), run.memory_bytes, _bytes)
    )
    return table(["", "predicted", "measured", "measured / predicted"], rows)


def _row(label: str, predicted: float | None, measured: float, shown: object) -> list[str]:
    assert callable(shown)  # a format of one number
    if predicted is None:
        return [label, "", str(shown(measured)), ""]
    ratio = f"{measured / predicted:.2f}" if predicted else ""
    return [label, str(shown(predicted)), str(shown(measured)), ratio]


def _bytes(n_bytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{format_number(n_bytes / size)} {unit}"
    return f"{n_bytes:.0f} B"


def _workers(run: PlanRun) -> str:
    rows = []
    for worker in run.workers:
        phases = worker["phases"]
        rows.append(
            [
                str(worker["rank"]),
                str(worker["replica"]),
                str(worker["stage"]),
                *(format_seconds(phases[name]) if name in phases else "" for name in _WORDS),
                _bytes(sum(n for k, n in worker["traffic_bytes"].items() if k != "receive")),
                _bytes(worker["tensor_peak_bytes"]),
            ]
        )
    header = ["worker", "replica", "stage", "forward", "backward", "exchange", "update"]
    return f"Measured by worker:\n{table([*header, 'traffic', 'tensors'], rows)}"


def _notes(run: PlanRun) -> str:
    losses = run.record.workers[0].losses
    text = (
        f"Predicted for {run.scenario.cluster.name}, measured on this machine. Steps are timed "
        "as they are; phases in a second pass without overlap, each the mean over workers of "
        "its median, exchanges with the time spent waiting for others. Traffic is the payload "
        "of the calls of one step, memory the peak of tensor storage in it. "
        f"Loss: {losses[0]:.4g} in the first step, {losses[-1]:.4g} in the last."
    )
    return textwrap.fill(text + _late(run), _WIDTH)


def _late(run: PlanRun) -> str:
    if not any(run.staleness):
        return ""
    stages = ", ".join(map(str, run.staleness))
    return f" Gradients come late, by stage up to {stages} updates."
