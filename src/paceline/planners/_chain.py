"""What is cut into stages: a chain of units, devices to hold them, and what a cut costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InvalidInputError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKind:
    """Devices of one speed and one memory.

    Parameters
    ----------
    speed
        How much faster than the device that the chain's times are of.
    memory_bytes
        What each holds; infinite where it does not matter.
    """

    speed: float = 1.0
    memory_bytes: float = float("inf")


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Units in a row, between any two of which there may be a cut.

    Parameters
    ----------
    work_s
        Forward and backward time of one micro-batch by unit, on a device of speed 1.
    cut_s
        Time to hand one micro-batch over behind each unit, both ways; its last entry, behind the
        end of the chain, counts nothing.
    fixed_bytes
        Weights, gradients and optimizer state by unit.
    stored_bytes
        Activations that one micro-batch in flight keeps, by unit.
    micro_batches
        How many follow each other.
    schedule
        ``1f1b`` keeps stage k of K at K - k micro-batches in flight, ``gpipe`` all of them.
    """

    work_s: Array
    cut_s: Array
    fixed_bytes: Array = field(default_factory=lambda: np.zeros(0))
    stored_bytes: Array = field(default_factory=lambda: np.zeros(0))
    micro_batches: int = 1
    schedule: str = "1f1b"

    def __post_init__(self) -> None:
        n = len(self.work_s)
        for name in ("work_s", "cut_s", "fixed_bytes", "stored_bytes"):
            column = np.asarray(getattr(self, name), dtype=float)
            if name.endswith("_bytes") and not column.size:
                column = np.zeros(n)
            if column.shape != (n,) or n == 0 or not (column >= 0).all():
                raise InvalidInputError(
                    f"`{name}` must hold a number of at least 0 for each of {n} units."
                )
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.work_s)

    def in_flight(self, stage: int, n_stages: int) -> int:
        """Return how many micro-batches a stage keeps at once."""
        if self.schedule == "gpipe":
            return self.micro_batches
        return min(self.micro_batches, n_stages - stage)

    def stage_seconds(self, first: int, end: int, kind: DeviceKind) -> float:
        """Return the time of one micro-batch on a stage, its hand-over included."""
        hand_over = self.cut_s[end - 1] if end < len(self) else 0.0
        return float(self.work_s[first:end].sum() / kind.speed + hand_over)

    def stage_bytes(self, first: int, end: int, n_in_flight: int) -> float:
        """Return the memory of a stage."""
        fixed, stored = self.fixed_bytes[first:end], self.stored_bytes[first:end]
        return float(fixed.sum() + n_in_flight * stored.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A chain cut into stages.

    Parameters
    ----------
    ends
        Unit behind the last one of every stage.
    kinds
        Which device kind holds every stage.
    step_s
        Sum of the stages' times and (micro-batches - 1) times the longest (REFERENCE 1d):
        exact without waiting for links.
    gap
        How far above the least possible time this may be; 0: exact.
    """

    ends: tuple[int, ...]
    kinds: tuple[int, ...]
    step_s: float
    gap: float = 0.0

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """First unit and the one behind the last of every stage."""
        return tuple(zip((0, *self.ends[:-1]), self.ends, strict=True))


def evaluate(
    chain: Chain, ends: Sequence[int], kinds: Sequence[DeviceKind], order: Sequence[int]
) -> float:
    """Return the time of a step; infinite when a stage does not fit in its memory."""
    times, first = [], 0
    for stage, (end, kind) in enumerate(zip(ends, order, strict=True)):
        needed = chain.stage_bytes(first, end, chain.in_flight(stage, len(ends)))
        if needed > kinds[kind].memory_bytes:
            return float("inf")
        times.append(chain.stage_seconds(first, end, kinds[kind]))
        first = end
    return sum(times) + (chain.micro_batches - 1) * max(times)


def check_stages(chain: Chain, n_stages: int) -> None:
    """Refuse more stages than there are units."""
    if not 1 <= n_stages <= len(chain):
        raise InvalidInputError(
            f"A pipeline must have between 1 and {len(chain)} stages, as many as the network has "
            f"units that may be cut apart, but got {n_stages}."
        )


def shortage(chain: Chain, n_stages: int, kind: DeviceKind) -> str:
    """Say by how much the memory is short at the unit that is hardest to place."""
    least = [
        chain.stage_bytes(i, i + 1, chain.in_flight(min(i, n_stages - 1), n_stages))
        for i in range(len(chain))
    ]
    total = float(chain.fixed_bytes.sum() + chain.stored_bytes.sum())
    worst = int(np.argmax(least))
    missing = max(least[worst] - kind.memory_bytes, total / n_stages - kind.memory_bytes, 0.0)
    return (
        f"{n_stages} stages must fit in {kind.memory_bytes / 2**30:.3g} GiB each, but the network "
        f"needs {total / 2**30:.3g} GiB in all and unit {worst} alone "
        f"{least[worst] / 2**30:.3g} GiB: at least {missing / 2**30:.3g} GiB a device are short."
    )
