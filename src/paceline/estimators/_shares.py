"""Uneven shares: how many samples each worker should take, given how fast it is."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.estimators._imbalance import load_imbalance_factor
from paceline.estimators._phases import PhaseTable
from paceline.units import format_number, format_seconds

_FIXED_PHASE = "update"  # works on parameters, whatever the number of samples


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpeed:
    """Own work of a worker in a step: `fixed_s` + `sample_s` per sample."""

    fixed_s: float = 0.0
    sample_s: float

    def __post_init__(self) -> None:
        if not (self.sample_s > 0 and self.fixed_s >= 0 and np.isfinite(self.step_s(1))):
            raise InvalidInputError(
                f"A worker must take a positive time per sample and no negative fixed time, "
                f"but got {self.sample_s:g} s and {self.fixed_s:g} s."
            )

    def step_s(self, device_batch: int) -> float:
        """Return the own work of a step with so many samples."""
        return self.fixed_s + self.sample_s * device_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """A division of the global batch, with what it is predicted to change.

    Parameters
    ----------
    device_batches, equal_batches
        Proposed samples per worker, and the equal division of the same global batch.
    own_s, equal_own_s
        Predicted own work per worker, with each of them.
    """

    device_batches: tuple[int, ...]
    equal_batches: tuple[int, ...]
    own_s: tuple[float, ...]
    equal_own_s: tuple[float, ...]

    @property
    def lif(self) -> float:
        """Predicted load imbalance factor of the proposal."""
        return load_imbalance_factor(self.own_s)

    @property
    def equal_lif(self) -> float:
        """Predicted load imbalance factor of equal shares."""
        return load_imbalance_factor(self.equal_own_s)

    @property
    def saved_s(self) -> float:
        """Predicted seconds by which the slowest worker becomes faster."""
        return max(self.equal_own_s) - max(self.own_s)

    def __str__(self) -> str:
        return (
            f"{'+'.join(map(str, self.device_batches))} samples: LIF "
            f"{format_number(self.equal_lif)} to {format_number(self.lif)}, "
            f"{format_seconds(self.saved_s)} less per step"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the proposal as plain data."""
        names = ("lif", "equal_lif", "saved_s")
        return asdict(self) | {name: getattr(self, name) for name in names}


def worker_speeds(tables: Sequence[PhaseTable]) -> tuple[WorkerSpeed, ...]:
    """Return the speed of every worker, from one run or several with the same workers.

    A worker measured at several device batches has its fixed part fitted (not negative, medians
    over steps); at one only, the fixed part is its update, which works on parameters.
    """
    counts = {table.n_workers for table in tables}
    if len(counts) != 1 or not all(table.device_batches for table in tables):
        raise InvalidInputError(
            f"Speeds must come from runs of the same workers with known `device_batches`, "
            f"but got runs of {', '.join(map(str, sorted(counts))) or 'no'} workers."
        )
    return tuple(_speed(tables, worker) for worker in range(counts.pop()))


def propose_shares(speeds: Sequence[WorkerSpeed], global_batch: int) -> Shares:
    """Return the division of `global_batch` whose slowest worker is fastest.

    Each sample goes to the worker that would finish it first, which is exact for times that
    grow with the number of samples; every worker keeps at least one.

    Raises
    ------
    InfeasibleError
        When there are fewer samples than workers.
    """
    if not speeds or global_batch < len(speeds):
        raise InfeasibleError(
            f"Every worker needs at least one sample, but got {global_batch} for "
            f"{len(speeds)} workers."
        )
    batches = [1] * len(speeds)
    queue = [(speed.step_s(2), i) for i, speed in enumerate(speeds)]
    heapq.heapify(queue)
    for _ in range(global_batch - len(speeds)):
        _, i = queue[0]
        batches[i] += 1
        heapq.heapreplace(queue, (speeds[i].step_s(batches[i] + 1), i))
    equal = equal_shares(global_batch, len(speeds))
    return Shares(
        device_batches=tuple(batches),
        equal_batches=equal,
        own_s=tuple(s.step_s(b) for s, b in zip(speeds, batches, strict=True)),
        equal_own_s=tuple(s.step_s(b) for s, b in zip(speeds, equal, strict=True)),
    )


def equal_shares(global_batch: int, n_workers: int) -> tuple[int, ...]:
    """Return shares that differ by one sample at most, the larger ones first.

    Examples
    --------
    >>> equal_shares(8, 3)
    (3, 3, 2)
    """
    share, rest = divmod(global_batch, n_workers)
    return tuple(share + (i < rest) for i in range(n_workers))


def _speed(tables: Sequence[PhaseTable], worker: int) -> WorkerSpeed:
    batches = np.array([table.device_batches[worker] for table in tables], dtype=float)
    own = np.array([np.median(table.own_s()[:, worker]) for table in tables])
    if len(set(batches)) > 1:
        slope, fixed = np.polyfit(batches, own, 1)
        if fixed >= 0 and slope > 0:
            return WorkerSpeed(fixed_s=float(fixed), sample_s=float(slope))
        if slope > 0:  # no negative fixed part: through the origin
            return WorkerSpeed(sample_s=float(own @ batches / (batches @ batches)))
    fixed = np.mean([np.median(t.of_phase(_FIXED_PHASE)[:, worker]) for t in tables])
    return WorkerSpeed(fixed_s=float(fixed), sample_s=float(np.mean((own - fixed) / batches)))
