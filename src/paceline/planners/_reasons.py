"""Why a plan was chosen, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.oracle import SECONDS
from paceline.planners._candidates import Candidate
from paceline.planners._objectives import behind
from paceline.planners._predictors import FitPredictor
from paceline.planners._task import Task
from paceline.units import format_count, format_number, format_percent, format_seconds

_WORDS = {"fastest": "the shortest step", "cheapest": "the fewest device-seconds a step"}
_LEAST = 0.01  # parts of a step below this share are not named


def explain_choice(task: Task, best: Candidate, others: Sequence[Candidate], n: int) -> list[str]:
    """Return the reasons for the best candidate, one sentence each.

    Parameters
    ----------
    task
        What was asked for.
    best, others
        What was chosen, and the others worked out, best first.
    n
        How many scenarios were looked at.
    """
    return [
        _chosen(task, best, n),
        *_against(task, best, others),
        _spends(best),
        *_fewer(task, best, others),
        *_pipeline(task, best),
        _memory(best),
        *best.notes,
        *_beyond(task, best),
    ]


def _chosen(task: Task, best: Candidate, n: int) -> str:
    what = _WORDS.get(task.objective, "the fewest devices that meet the deadline")
    kind = " that can be run" if task.runnable_only else ""
    devices, looked = format_count(task.n_devices, "device"), format_count(n, "scenario")
    return f"{best.strategy} has {what} of {looked}{kind} on up to {devices}."


def _against(task: Task, best: Candidate, others: Sequence[Candidate]) -> list[str]:
    if not others:
        return ["No other strategy of those asked for fits."]
    second = others[0]
    more, is_price = behind(task, best, second), task.objective == "cheapest"
    if abs(more) < 5e-4:
        words = "costs as much device time" if is_price else "takes as long"
        return [f"The next, {second.strategy}, {words}."]
    percent = format_percent(abs(more))
    if is_price:
        words = f"costs {percent} {'more' if more > 0 else 'less'} device time"
    else:
        words = f"takes {percent} {'longer' if more > 0 else 'less'}"
    return [f"The next, {second.strategy}, {words}."]


def _spends(best: Candidate) -> str:
    figures, totals = best.timed.figures, dict.fromkeys(SECONDS.values(), 0.0)
    for name, word in SECONDS.items():
        totals[word] += figures[name] / figures["step_s"]
    named = sorted(((s, w) for w, s in totals.items() if s >= _LEAST), reverse=True)
    return "A step is " + ", ".join(f"{format_percent(s)} {w}" for s, w in named) + "."


def _fewer(task: Task, best: Candidate, others: Sequence[Candidate]) -> list[str]:
    """Say why not all devices are used."""
    if best.n_devices == task.n_devices:
        return []
    full = [c for c in others if c.n_devices == task.n_devices]
    used = f"{best.n_devices} of {task.n_devices} devices are used"
    if not full or task.objective != "fastest":
        return [f"{used}."]
    more = min(full, key=lambda c: c.step_s)
    longer = format_percent(more.step_s / best.step_s - 1)
    return [f"{used}: the best plan for all of them, {more.strategy}, takes {longer} longer."]


def _pipeline(task: Task, best: Candidate) -> list[str]:
    run = best.timed.run
    if run is None:
        return []
    busy = run.busy_s
    slowest = int(busy.argmax())
    return [
        f"Stages are cut so that the slowest, stage {slowest} of 0 to {len(busy) - 1}, works "
        f"{format_percent(float(busy[slowest] / busy.mean() - 1))} longer than the mean; "
        f"they wait for {format_percent(run.bubble_share)} of the passes' "
        f"{format_seconds(run.step_s)}."
    ]


def _memory(best: Candidate) -> str:
    shares = [n / limit for n, limit in zip(best.needed, best.limits, strict=True)]
    i = shares.index(max(shares))
    gib = [format_number(b / 2**30) for b in (best.needed[i], best.limits[i])]
    where = f" (stage {i})" if len(shares) > 1 else ""
    return f"The fullest device{where} holds {gib[0]} of {gib[1]} GiB."


def _beyond(task: Task, best: Candidate) -> list[str]:
    """Say where a fitted model was asked beyond what it was fitted to."""
    if not isinstance(task.predictor, FitPredictor):
        return []
    outside = task.predictor.outside(task.scenario(best.strategy))
    return [f"The model extrapolates: {'; '.join(outside)}."] if outside else []
