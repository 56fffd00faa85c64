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

MOST_PASSES = 100_000  # simulated; beyond, the closed form is as good and takes no time


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
    speeds: Sequence[float] | Array | None = None,
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
    pieces = np.tile(speed, strategy.virtual_stages)
    for name, times in (("forward_s", cut.forward_s), ("backward_s", cut.backward_s)):
        figures[name] *= float((times / pieces).sum() / times.sum()) if times.any() else 1.0
    figures["update_s"] *= float((1 / speed).max())
    run = None
    n_passes = 2 * len(cut.forward_s) * strategy.micro_batches
    if n_stages > 1 and n_passes <= MOST_PASSES:
        run, busy, alone = _passes(cut, strategy, pieces)
        figures["transfer_s"] = max(busy - alone, 0.0)
        parts = ("forward_s", "backward_s", "layerwise_s", "halo_s")
        waits = alone - sum(figures[name] for name in parts)
        figures["bubble_s"] = waits if waits > 1e-12 * alone else 0.0
    old = figures["step_s"]
    figures["step_s"] = sum(figures[name] for name in SECONDS)
    figures["efficiency"] *= old / figures["step_s"]
    memory = cut.memory_bytes + _more_in_flight(cut, strategy)
    return Timed(figures=_with_totals(figures, memory, n_stages), memory_bytes=memory, run=run)


def _passes(cut: CutStep, strategy: Strategy, pieces: Array) -> tuple[PipelineRun, float, float]:
    """Return the passes, their seconds, and those without transfers as far as these are known."""
    forward, backward = cut.forward_s / pieces, cut.backward_s / pieces
    n = strategy.micro_batches
    if strategy.schedule == "unlocked":
        each = steady_step_time(forward, backward)
        slot = max(each, float(2 * cut.transfer_s.max(initial=0.0)))
        shown = simulate("unlocked", forward, backward, n_micro_batches=n)
        return shown, n * slot, n * each  # steps follow each other without a gap
    run = _simulated(strategy, forward, backward, cut.transfer_s)
    return run, run.step_s, run.step_s


def _simulated(
    strategy: Strategy, forward: Array, backward: Array, transfer_s: Array | float
) -> PipelineRun:
    virtual = strategy.virtual_stages
    name = "1f1b" if strategy.schedule == "interleaved" and virtual == 1 else strategy.schedule
    return simulate(
        name,
        forward,
        backward,
        n_micro_batches=strategy.micro_batches,
        transfer_s=transfer_s,
        virtual_stages=virtual,
    )


def tell_transfers_apart(strategy: Strategy, timed: Timed) -> Timed:
    """Return a step whose waiting for transfers is told apart from its bubble.

    That takes a second simulation, without transfers.
    """
    run = timed.run
    if run is None or strategy.schedule == "unlocked":
        return timed
    took = run.end_s - run.start_s
    forward, backward = (
        np.array([took[side & (run.piece == i)][0] for i in range(int(run.piece.max()) + 1)])
        for side in (~run.backward, run.backward)
    )
    still = _simulated(strategy, forward, backward, 0.0)
    figures = dict(timed.figures)
    moved = min(max(run.step_s - still.step_s, 0.0), figures["bubble_s"])
    figures["bubble_s"] -= moved
    figures["transfer_s"] += moved
    return replace(timed, figures=figures)


def _more_in_flight(cut: CutStep, strategy: Strategy) -> Array:
    """Return activations beyond those of 1F1B: unlocked, module k of K keeps 2 (K - k) - 1."""
    n_stages = strategy.pipeline
    if strategy.schedule != "unlocked" or n_stages == 1:
        return np.zeros(n_stages)
    behind = n_stages - np.arange(n_stages)
    held = np.minimum(strategy.micro_batches, behind)
    return np.asarray(cut.memory["activations"] * ((2 * behind - 1) / held - 1))


def _with_totals(figures: dict[str, float], memory: Array, n_stages: int) -> dict[str, float]:
    """Add the fullest device, and the payload of a device's exchanges on average."""
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
        timed = tell_transfers_apart(other, time_step(task, other, ends))
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
