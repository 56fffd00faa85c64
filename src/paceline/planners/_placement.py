"""Which device holds which stage of which replica, and what a step takes (REFERENCE 1b to d)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InfeasibleError, InvalidInputError

Array = NDArray[np.float64]
Genes = NDArray[np.int64]  # (candidates, replicas, stages): numbers of devices

OVERFLOW_WEIGHT = 1e3  # how much longer a step counts that does not fit in memory


@dataclass(frozen=True, kw_only=True)
class PlacementProblem:
    """Stages of a pipeline, in replicas, and the devices that may hold them.

    Parameters
    ----------
    stage_s
        Time of one micro-batch on every stage, both passes, on a device of speed 1.
    hand_over_bytes
        Of one micro-batch between a stage and the next, both ways together; one fewer.
    weight_bytes
        Gradients of every stage that its replicas exchange.
    memory_bytes
        What a device needs to hold every stage.
    n_replicas, micro_batches
        Of the network, and of a replica's batch.
    speeds, memories
        Of every device.
    latency_s, seconds_per_byte
        Of the link between any two devices; the diagonal is 0.
    """

    stage_s: Array
    hand_over_bytes: Array
    weight_bytes: Array
    memory_bytes: Array
    n_replicas: int
    micro_batches: int
    speeds: Array
    memories: Array
    latency_s: Array
    seconds_per_byte: Array

    def __post_init__(self) -> None:
        n, k = len(self.speeds), len(self.stage_s)
        shapes = {
            "hand_over_bytes": (k - 1,),
            "weight_bytes": (k,),
            "memory_bytes": (k,),
            "memories": (n,),
            "latency_s": (n, n),
            "seconds_per_byte": (n, n),
        }
        for name, shape in shapes.items():
            found = np.shape(getattr(self, name))
            if found != shape:
                raise InvalidInputError(f"`{name}` must have the shape {shape}, but got {found}.")

    @property
    def n_devices(self) -> int:
        """Number of devices."""
        return len(self.speeds)

    @property
    def n_stages(self) -> int:
        """Number of stages of one replica."""
        return len(self.stage_s)

    def step_seconds(self, genes: Genes) -> Array:
        """Return the step time of every candidate, whether or not it fits in memory.

        A replica takes the sum of its stages and hand-overs and (micro-batches - 1) times the
        longest of its stages, which shares its device with whatever else is there; then every
        stage's replicas exchange gradients around a ring on their slowest link.
        """
        own = self.stage_s / self.speeds[genes]
        busy = np.take_along_axis(self._busy(genes), genes.reshape(len(genes), -1), axis=1)
        links = self._hand_overs(genes)
        longest = (busy.reshape(genes.shape) + links).max(axis=2)
        pipes = (own + links).sum(axis=2) + (self.micro_batches - 1) * longest
        return np.asarray(pipes.max(axis=1) + self._exchange(genes).max(axis=1))

    def overflow(self, genes: Genes) -> Array:
        """Return by what share of its memory the fullest device is short; 0 when all fit."""
        held = self._sum_by_device(genes, np.broadcast_to(self.memory_bytes, genes.shape))
        return np.asarray(np.maximum(held / self.memories - 1, 0.0).max(axis=1))

    def cost(self, genes: Genes) -> Array:
        """Return the step time; what does not fit costs more than anything that does."""
        overflow = self.overflow(genes)
        factor = np.where(overflow > 0, OVERFLOW_WEIGHT * (1 + overflow), 1.0)
        return np.asarray(self.step_seconds(genes) * factor)

    def _busy(self, genes: Genes) -> Array:
        return self._sum_by_device(genes, self.stage_s / self.speeds[genes])

    def _sum_by_device(self, genes: Genes, amounts: Any) -> Array:
        n = len(genes)
        offsets = np.arange(n)[:, None, None] * self.n_devices
        places = (genes + offsets).ravel()
        sums = np.bincount(places, np.ravel(amounts), minlength=n * self.n_devices)
        return np.asarray(sums, dtype=float).reshape(n, self.n_devices)

    def _hand_overs(self, genes: Genes) -> Array:
        """Return the time that every stage takes to hand over; the last hands nothing over."""
        before, after = genes[:, :, :-1], genes[:, :, 1:]
        is_far = before != after
        seconds = 2 * self.latency_s[before, after] * is_far
        seconds = seconds + self.hand_over_bytes * self.seconds_per_byte[before, after]
        return np.concatenate([seconds, np.zeros((*genes.shape[:2], 1))], axis=2)

    def _exchange(self, genes: Genes) -> Array:
        """Return the ring all-reduce of every stage, 2 (r - 1) (alpha + w beta / r)."""
        r = self.n_replicas
        if r == 1:
            return np.zeros((len(genes), 1))
        left, right = np.triu_indices(r, 1)
        pairs = genes[:, left, :], genes[:, right, :]
        hops = self.latency_s[pairs] + self.weight_bytes * self.seconds_per_byte[pairs] / r
        return np.asarray(2 * (r - 1) * hops.max(axis=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A device for every stage of every replica.

    Parameters
    ----------
    devices
        ``devices[replica][stage]``.
    step_s
        What a step then takes.
    n_evaluations
        How many candidates were looked at.
    is_optimal
        Whether nothing better exists.
    bound_s
        No placement is faster than this; 0 where no bound is known.
    """

    devices: tuple[tuple[int, ...], ...]
    step_s: float
    n_evaluations: int
    is_optimal: bool = False
    bound_s: float = field(default=0.0)


def placement_of(
    problem: PlacementProblem, genes: Genes, n_evaluations: int, *, is_optimal: bool = False
) -> Placement:
    """Return one candidate (replicas, stages) as a placement.

    Raises
    ------
    InfeasibleError
        When it does not fit in memory.
    """
    short = float(problem.overflow(genes[None])[0])
    if short > 0:
        raise InfeasibleError(
            f"Every device must hold its stages, but in the best placement found the fullest one "
            f"is short of {100 * short:.3g} % of its memory. Take more stages, a smaller "
            f"micro-batch or larger devices."
        )
    return Placement(
        devices=tuple(tuple(int(d) for d in row) for row in genes),
        step_s=float(problem.step_seconds(genes[None])[0]),
        n_evaluations=n_evaluations,
        is_optimal=is_optimal,
    )
