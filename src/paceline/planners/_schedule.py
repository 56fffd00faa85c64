"""What a cut network's step takes, simulated pass by pass, and which schedule is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InvalidInputError
from paceline.oracle import SECONDS, TRAFFIC, CutStep, PipelineRun, simulate, steady_step_time
from paceline.planners._task import Task
from paceline.scenario import Strategy

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A step with all its parts.

    Parameters
    ----------
    figures
        Seconds that add up to ``step_s``, bytes, efficiency.
    memory_bytes
        Of every stage's device.
    run
        When every pass of the pipeline runs; None without one.
    """

    figures: Mapping[str, float]
    memory_bytes: Array
    run: PipelineRun | None = None

    @property
    def step_s(self) -> float:
        """Seconds of a step."""
        return self.figures["step_s"]


def time_step(
    task: Task,
    strategy: Strategy,
    ends: Sequence[int] | None = None,
    *,
    global_batch: int | None = None,
    speeds: Sequence[float] | None = None,
) -> Timed:
    """Return what a step takes, its pipeline simulated pass by pass.

    Parameters
    ----------
    task, strategy
        What is trained, and how.
    ends
        Units behind which it is cut; None: as the oracle cuts.
    global_batch
        Of so many samples instead of the task's.
    speeds
        Of the device of every stage; None: all as the cluster's device.
    """
    cut = task.cost(strategy, ends, global_batch or task.global_batch)
    n_stages = strategy.pipeline
    speed = np.ones(n_stages) if speeds is None else np.asarray(speeds, dtype=float)
    figures = dict(cut.figures)
    for name in ("forward_s", "backward_s"):
        figures[name] *= float(np.mean(1 / speed))
    figures["update_s"] *= float((1 / speed).max())
    run = None
    if n_stages > 1:
        run, busy, alone = _passes(cut, strategy, speed)
        figures["transfer_s"] = max(busy - alone, 0.0)
        parts = ("forward_s", "backward_s", "layerwise_s", "halo_s")
        waits = alone - sum(figures[name] for name in parts)
        figures["bubble_s"] = waits if waits > 1e-12 * alone else 0.0
    old = figures["step_s"]
    figures["step_s"] = sum(figures[name] for name in SECONDS)
    figures["efficiency"] *= old / figures["step_s"]
    memory = cut.memory_bytes + _more_in_flight(cut, strategy)
    return Timed(figures=_with_totals(figures, memory, n_stages), memory_bytes=memory, run=run)


def _passes(cut: CutStep, strategy: Strategy, speed: Array) -> tuple[PipelineRun, float, float]:
    """Return the passes, and their seconds with and without transfers."""
    pieces = np.tile(speed, strategy.virtual_stages)
    forward, backward = cut.forward_s / pieces, cut.backward_s / pieces
    n, virtual = strategy.micro_batches, strategy.virtual_stages
    if strategy.schedule == "unlocked":
        each = steady_step_time(forward, backward)
        slot = max(each, float(2 * cut.transfer_s.max(initial=0.0)))
        shown = simulate("unlocked", forward, backward, n_micro_batches=n)
        return shown, n * slot, n * each  # steps follow each other without a gap
    name = "1f1b" if strategy.schedule == "interleaved" and virtual == 1 else strategy.schedule
    run, still = (
        simulate(
            name,
            forward,
            backward,
            n_micro_batches=n,
            transfer_s=transfer_s,
            virtual_stages=virtual,
        )
        for transfer_s in (cut.transfer_s, 0.0)
    )
    return run, run.step_s, still.step_s


def _more_in_flight(cut: CutStep, strategy: Strategy) -> Array:
    """Return activations beyond those of 1F1B: unlocked, module k of K keeps 2 (K - k) - 1."""
    n_stages = strategy.pipeline
    if strategy.schedule != "unlocked" or n_stages == 1:
        return np.zeros(n_stages)
    behind = n_stages - np.arange(n_stages)
    held = np.minimum(strategy.micro_batches, behind)
    return np.asarray(cut.memory["activations"] * ((2 * behind - 1) / held - 1))


def _with_totals(figures: dict[str, float], memory: Array, n_stages: int) -> dict[str, float]:
    """Add the fullest device, and what a device sends on average."""
    figures["memory_bytes"] = float(memory.max())
    own = [figures[name] for name in TRAFFIC[:2]]
    figures["traffic_bytes"] = sum(own) + figures[TRAFFIC[2]] / n_stages
    return figures


def compare_schedules(
    task: Task, strategy: Strategy, ends: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Return step, bubble and fullest device of one cut under every schedule that takes it.

    Parameters
    ----------
    task, strategy
        What is trained, and its degrees and micro-batches.
    ends
        Units behind which it is cut, one piece a stage.
    """
    found = {}
    for name in ("1f1b", "gpipe", "sequential", "unlocked"):
        other = replace(strategy, schedule=name, virtual_stages=1)
        if len(ends) != other.pipeline:
            raise InvalidInputError(
                f"A cut must have one piece for each of {other.pipeline} stages, but got "
                f"{len(ends)}."
            )
        timed = time_step(task, other, ends)
        bubble = timed.figures["bubble_s"] / timed.step_s
        found[name] = {
            "step_s": timed.step_s,
            "bubble_share": bubble,
            "memory_bytes": timed.figures["memory_bytes"],
        }
    return found


def list_events(run: PipelineRun) -> list[dict[str, Any]]:
    """Return every pass of a simulated step as plain data, in order of their start."""
    events: list[dict[str, Any]] = [
        {
            "stage": one.piece % run.n_stages,
            "piece": one.piece,
            "micro_batch": one.micro_batch,
            "pass": "backward" if one.backward else "forward",
            "start_s": start,
            "end_s": end,
        }
        for one, start, end in run.passes()
    ]
    return sorted(events, key=lambda event: (event["start_s"], event["stage"]))
