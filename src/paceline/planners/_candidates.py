"""One strategy worked out in full: cut, placed, timed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.oracle import CutStep
from paceline.planners._schedule import Timed, time_step
from paceline.planners._stages import cut_places, cut_stages
from paceline.planners._task import Task
from paceline.scenario import Strategy

# degrees that divide a stage, in the order in which a placement counts its parts
SPLITS = ("spatial", "filter", "channel", "tensor", "context", "expert")

Devices = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A strategy with its cut, its devices and what a step takes.

    Parameters
    ----------
    strategy
        How the step is divided.
    ends
        Units behind which the network is cut.
    placement
        ``placement[replica]``: devices of its stages, of a stage's parts in turn.
    replica_batches
        Samples of every replica.
    timed
        Seconds and bytes.
    step_s
        What the predictor says; the simulated time where that is the oracle.
    needed, limits
        Bytes of every stage, and what its device has.
    notes
        What is worth saying of it, in sentences.
    """

    strategy: Strategy
    ends: tuple[int, ...]
    placement: Devices
    replica_batches: tuple[int, ...]
    timed: Timed
    step_s: float
    needed: tuple[float, ...]
    limits: tuple[float, ...]
    notes: tuple[str, ...] = ()
    extras: dict[str, Any] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether every stage fits in the memory of its device."""
        return all(n <= limit for n, limit in zip(self.needed, self.limits, strict=True))

    @property
    def n_devices(self) -> int:
        """Number of devices."""
        return self.strategy.n_devices

    @property
    def device_s(self) -> float:
        """Seconds of all devices together: what a step costs, but for the price."""
        return self.n_devices * self.step_s


def work_out(task: Task, strategy: Strategy) -> Candidate:
    """Return a strategy cut as well as possible and placed, on equal devices.

    Raises
    ------
    InvalidInputError
        When the network has too few parts for it.
    """
    if strategy.pipeline == 1:
        return _cut(task, strategy, (len(task.graph.units),))
    try:
        ends = cut_stages(task, strategy)[0]
    except InfeasibleError:
        ends = even_cut(task, strategy)  # comes nearest, and says what is short
    return _cut(task, strategy, ends)


def even_cut(task: Task, strategy: Strategy) -> tuple[int, ...]:
    """Return a cut that balances memory when none fits."""
    places = cut_places(task.graph, with_weights=task.runnable_only)
    each = task.cost(strategy, range(1, len(task.graph.units) + 1), task.global_batch)
    held = np.cumsum(each.memory_bytes)[np.array(places) - 1]
    n = strategy.pipeline * strategy.virtual_stages
    if n > len(places):
        raise InvalidInputError(f"{task.graph.name} has {len(places)} parts, but {n} are needed.")
    ends: list[int] = []
    for i in range(1, n):
        low = len(ends)
        at = int(np.searchsorted(held, held[-1] * i / n))
        ends.append(min(max(at, low if not ends else ends[-1] + 1), len(places) - 1 - (n - i)))
    return tuple(places[i] for i in [*ends, len(places) - 1])


def _cut(task: Task, strategy: Strategy, ends: tuple[int, ...]) -> Candidate:
    timed = time_step(task, strategy, ends)
    memory = task.cluster.device.memory_bytes
    return Candidate(
        strategy=strategy,
        ends=ends,
        placement=in_order(strategy, task.cost(strategy, ends, task.global_batch)),
        replica_batches=(task.global_batch // strategy.data,) * strategy.data,
        timed=timed,
        step_s=timed.step_s,
        needed=tuple(float(m) for m in timed.memory_bytes),
        limits=(memory,) * strategy.pipeline,
    )


def in_order(strategy: Strategy, cut: CutStep) -> Devices:
    """Return the devices of every replica where neighbours talk most, as the oracle counts."""
    strides = cut.strides
    parts = np.zeros(1, dtype=np.int64)
    for name in SPLITS:
        own = np.arange(getattr(strategy, name)) * strides[name]
        parts = (parts[:, None] + own[None, :]).ravel()
    stages = np.arange(strategy.pipeline) * strides["pipeline"]
    inner = (stages[:, None] + parts[None, :]).ravel()
    replicas = np.arange(strategy.data) * strides["data"]
    return tuple(tuple(int(d) for d in inner + q) for q in replicas)
