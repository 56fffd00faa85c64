"""A plan as text: what to do, what it should take, and why."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paceline.oracle import SECONDS, PipelineRun
from paceline.planners import BestParameters, PlanSearch
from paceline.reports._table import table
from paceline.scenario import Plan
from paceline.units import format_count, format_number, format_percent, format_seconds

_WIDTH = 80
_MOST_STAGES = 16
_MOST_ROWS = 8
_FORWARD, _BACKWARD, _IDLE = "-", "=", "."


def show_plan(found: PlanSearch, cluster: str = "") -> str:
    """Return a plan with its stages, parts, reasons, runners-up and front, at 80 columns.

    Parameters
    ----------
    found
        What a search found.
    cluster
        How people call the cluster; empty: as the plan does.
    """
    plan = found.plan
    blocks = [_title(plan, cluster or plan.cluster), _times(plan, found.currency), _stages(found)]
    if found.run is not None:
        blocks.append(show_gantt(found.run))
    blocks += [_reasons(plan), _runners_up(plan), _schedules(found), _front(found.front)]
    return "\n\n".join(block for block in blocks if block)


def _title(plan: Plan, cluster: str) -> str:
    name = plan.workload.get("name") or plan.workload.get("module", {}).get("name", "network")
    n = plan.strategy.n_devices
    text = (
        f"{name} on {format_count(n, 'device')} of {cluster}, "
        f"{format_count(plan.global_batch, 'sample')} a step: {plan.strategy}."
    )
    return textwrap.fill(text, _WIDTH)


def _times(plan: Plan, currency: str) -> str:
    predicted = plan.predicted
    step = predicted["step_s"]
    words: dict[str, float] = {}
    for name, word in SECONDS.items():
        words[word] = words.get(word, 0.0) + predicted.get(name, 0.0)
    rows = [
        [word, format_seconds(seconds), format_percent(seconds / step)]
        for word, seconds in words.items()
        if seconds > 1e-4 * step
    ]
    rows.append(["step, predicted", format_seconds(step), ""])
    rows.append(["samples a second", format_number(plan.global_batch / step), ""])
    for name, word in (("epoch_s", "epoch"), ("oracle_step_s", "step by the oracle")):
        if name in predicted:
            rows.append([word, format_seconds(predicted[name]), ""])
    if "epoch_cost" in predicted:
        price = f"{format_number(predicted['epoch_cost'])} {currency}"
        rows.append(["price of an epoch", price, ""])
    rows.append(["memory, fullest", f"{format_number(predicted['memory_bytes'] / 2**30)} GiB", ""])
    # what collectives carry; what a device sends for it depends on their algorithm
    payload = predicted["traffic_bytes"] / 2**20
    rows.append(["payload of exchanges", f"{format_number(payload)} MiB", ""])
    return table(["part of a step", "time", "share"], rows)


def _stages(found: PlanSearch) -> str:
    plan = found.plan
    if plan.strategy.pipeline == 1:
        return _batches(plan)
    k = plan.strategy.pipeline
    parts = len(plan.placement[0]) // k
    busy = None if found.run is None else found.run.busy_s
    rows = []
    for i, stage in enumerate(plan.stages[: 2 * _MOST_STAGES]):
        devices = plan.placement[0][(i % k) * parts : (i % k + 1) * parts]
        rows.append(
            [
                str(i),
                textwrap.shorten(f"{stage.names[0]} .. {stage.names[1]}", 38, placeholder=".."),
                str(stage.end - stage.first),
                ",".join(map(str, devices[:3])) + ("…" if len(devices) > 3 else ""),
                "" if busy is None or i >= k else format_seconds(float(busy[i])),
                "" if i >= k else format_number(found.memory_bytes[i] / 2**30),
            ]
        )
    left = len(plan.stages) - len(rows)
    more = f"\n(and {left} more)" if left > 0 else ""
    header = ["stage", "layers", "n", "device", "busy", "GiB"]
    text = table(header, rows, left=2) + more
    batches = _batches(plan)
    return f"{text}\n{batches}" if batches else text


def _batches(plan: Plan) -> str:
    if len(set(plan.replica_batches)) == 1:
        return ""
    text = ", ".join(
        f"{batch} on {','.join(map(str, devices[:4]))}{'…' if len(devices) > 4 else ''}"
        for batch, devices in list(zip(plan.replica_batches, plan.placement, strict=True))[:16]
    )
    return textwrap.fill(f"Samples of every replica, on its devices: {text}", _WIDTH)


def _reasons(plan: Plan) -> str:
    lines = [
        textwrap.fill(r, _WIDTH, initial_indent="- ", subsequent_indent="  ") for r in plan.reasons
    ]
    return "Why:\n" + "\n".join(lines)


def _runners_up(plan: Plan) -> str:
    if not plan.runners_up:
        return ""
    rows = [
        [
            textwrap.shorten(str(other["strategy"]), 48, placeholder=".."),
            str(other.get("n_devices", "")),
            format_seconds(float(other["step_s"])),
            f"{100 * float(other['behind']):+.3g} %",
        ]
        for other in plan.runners_up
    ]
    by = "device time" if plan.objective == "cheapest" else "behind"
    return table(["runner-up", "devices", "step", by], rows)


def _schedules(found: PlanSearch) -> str:
    if not found.schedules:
        return ""
    rows = [
        [
            name + (" (late gradients)" if name == "unlocked" else ""),
            format_seconds(figures["step_s"]),
            format_percent(figures["bubble_share"]),
            format_number(figures["memory_bytes"] / 2**30),
        ]
        for name, figures in sorted(found.schedules.items(), key=lambda x: x[1]["step_s"])
    ]
    return table(["schedule of this cut", "step", "bubble", "GiB"], rows)


def _front(front: Sequence[Mapping[str, Any]]) -> str:
    """Return the front; where it is long, its ends and some between."""
    if len(front) < 2:
        return ""
    shown = front
    if len(front) > _MOST_ROWS:
        shown = [front[int(i)] for i in np.linspace(0, len(front) - 1, _MOST_ROWS)]
    rows = [
        [
            textwrap.shorten(str(row["strategy"]), 40, placeholder=".."),
            str(row["n_devices"]),
            format_seconds(row["step_s"]),
            format_number(row["memory_bytes"] / 2**30),
            format_seconds(row["device_s"]),
        ]
        for row in shown
    ]
    title = f"Nothing beats these in all of time, devices, memory ({len(shown)} of {len(front)}):"
    return f"{title}\n{table(['', 'devices', 'step', 'GiB', 'device time'], rows)}"


def show_gantt(run: PipelineRun, width: int = _WIDTH) -> str:
    """Return when every stage of a pipeline works, one line each.

    ``F3--`` is the forward pass of micro-batch 3, ``B3==`` its backward pass, dots are waiting; a
    pass that has room for less loses its number, then its letter's fill.

    Parameters
    ----------
    run
        A simulated step.
    width
        Columns.
    """
    shown = min(run.n_stages, _MOST_STAGES)
    label = len(str(shown - 1)) + 1
    room = width - label
    lines = [[_IDLE] * room for _ in range(shown)]
    scale = room / run.step_s
    for one, start, end in run.passes():
        stage = one.piece % run.n_stages
        if stage < shown:
            _draw(lines[stage], one.backward, one.micro_batch, start * scale, end * scale)
    rows = [f"{i:<{label}}{''.join(line)}" for i, line in enumerate(lines)]
    if run.n_stages > shown:
        rows.append(f"(and {run.n_stages - shown} more stages)")
    title = (
        f"Predicted passes, {format_seconds(run.step_s)} in all; F forward, B backward, with the "
        "micro-batch; dots: waiting"
    )
    return "\n".join([*textwrap.wrap(title, width), *rows])


def _draw(line: list[str], backward: bool, micro_batch: int, start: float, end: float) -> None:
    first, last = round(start), min(round(end), len(line))
    if last <= first:  # too short for a column: it gets one where nothing else is
        first = min(first, len(line) - 1)
        last = first + (line[first] == _IDLE)
    text = f"{'B' if backward else 'F'}{micro_batch}"
    if len(text) > last - first:
        text = text[: last - first][:1]
    fill = _BACKWARD if backward else _FORWARD
    line[first:last] = list(text.ljust(last - first, fill))


def show_parameters(found: BestParameters) -> str:
    """Return the best parameters of a space, with the next best and what limits them."""
    what = f"a {found.time_per}" if found.time_per else "a row"
    interval = ""
    if not np.isnan(found.lower_s):
        interval = f" ({format_seconds(found.lower_s)} to {format_seconds(found.upper_s)})"
    looked = "all" if found.is_exhaustive else "the best found among"
    title = (
        f"The {found.objective} of {looked} {found.n_combinations} combinations: "
        f"{format_seconds(found.predicted_s)} {what}, predicted{interval}"
    )
    if found.per_sample_s is not None:
        title += f", {format_seconds(found.per_sample_s)} a sample"
    values = table(["parameter", "value"], [[n, str(v)] for n, v in found.values.items()])
    notes = [
        textwrap.fill(n, _WIDTH, initial_indent="- ", subsequent_indent="  ") for n in found.notes
    ]
    blocks = [textwrap.fill(f"{title}.", _WIDTH), values, _next_points(found)]
    blocks.append("\n".join(["Notes:", *notes]) if notes else "")
    return "\n\n".join(block for block in blocks if block)


def _next_points(found: BestParameters) -> str:
    if not found.runners_up:
        return ""
    lines = []
    for other in found.runners_up:
        changed = [
            f"{name}={value}"
            for name, value in other.items()
            if name not in ("predicted_s", "behind") and value != found.values[name]
        ]
        behind = f"{100 * float(other['behind']):+.3g} %"
        text = f"{behind:>9}  {', '.join(changed)}"
        lines.append(textwrap.fill(text, _WIDTH, subsequent_indent=" " * 11))
    return "Next best, by what differs:\n" + "\n".join(lines)
