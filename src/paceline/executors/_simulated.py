"""Workers that only pretend: times from a formula, to test what is built on top of executors."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from paceline.errors import InvalidInputError
from paceline.executors._base import BaseExecutor, Pool
from paceline.executors._job import Job, RunRecord, WorkerRecord

# of a step on one worker; the rest of the phases is communication
_SHARES = {"io": 0.05, "h2d": 0.03, "md": 0.02, "forward": 0.3, "backward": 0.5, "update": 0.1}


class SimulatedExecutor(BaseExecutor):
    """An executor without processes, for tests of the layers above it.

    Parameters
    ----------
    step_s
        From a job to the seconds of one worker's own work in a step; what it raises is how the
        job fails.
    transfer_s
        From a job to the seconds of its communication, without waiting.
    noise
        Relative deviation of every time.
    life_noise
        Relative deviation of the speed that a process keeps for life.
    imbalance
        How much longer a worker takes, by rank (1.0: as long as the others).
    random_state
        Of all noise.

    Examples
    --------
    >>> job = Job(sample={}, optimizer={}, device_batches=[8, 8], n_steps=3)
    >>> with SimulatedExecutor(lambda job: 0.01, noise=0.0).open(2) as pool:
    ...     pool.run(job, 1.0).step_s
    (0.01, 0.01, 0.01)
    """

    name = "simulated"

    def __init__(
        self,
        step_s: Callable[[Job], float],
        *,
        transfer_s: Callable[[Job], float] = lambda job: 0.0,
        noise: float = 0.02,
        life_noise: float = 0.0,
        imbalance: Mapping[int, float] | None = None,
        random_state: int = 0,
    ) -> None:
        self.step_s, self.transfer_s = step_s, transfer_s
        self.noise, self.life_noise = noise, life_noise
        self.imbalance = dict(imbalance or {})
        self._random = random.Random(random_state)
        self._n_lives = 0

    def readiness(self) -> str:
        """Return nothing: it is always ready."""
        return ""

    def open(self, n_workers: int, *, memory_bytes: int | None = None) -> SimulatedPool:
        """Return workers that pretend; every call is a new process life."""
        if n_workers < 1:
            raise InvalidInputError(f"`n_workers` must be at least 1, but got {n_workers}.")
        self._n_lives += 1
        speed = 1.0 + self.life_noise * abs(self._random.gauss(0.0, 1.0))
        return SimulatedPool(self, n_workers, f"simulated-{self._n_lives}", speed)

    def draw(self, seconds: float) -> float:
        """Return a time with noise, never less than a tenth of it."""
        return seconds * max(0.1, 1.0 + self.noise * self._random.gauss(0.0, 1.0))


class SimulatedPool(Pool):
    """Workers that pretend, with the interface of real ones."""

    def __init__(
        self, executor: SimulatedExecutor, n_workers: int, process: str, speed: float
    ) -> None:
        self.n_workers, self._executor = n_workers, executor
        self._process, self._speed, self._open = process, speed, True

    @property
    def is_alive(self) -> bool:
        """Whether it was not closed."""
        return self._open

    def run(self, job: Job, timeout_s: float) -> RunRecord:
        """Return times that nobody measured."""
        if job.n_workers != self.n_workers:
            raise InvalidInputError(
                f"`device_batches` must hold one batch for each of {self.n_workers} workers, "
                f"but got {list(job.device_batches)}."
            )
        overlapped = [self._step(job) for _ in range(job.n_steps)]
        apart = [self._step(job) for _ in range(job.n_phase_steps)]
        return RunRecord(
            workers=tuple(
                WorkerRecord(
                    rank=rank,
                    step_s=tuple(sum(step[rank].values()) for step in overlapped),
                    phases=tuple(step[rank] for step in apart),
                    phase_step_s=tuple(sum(step[rank].values()) for step in apart),
                    losses=tuple(1.0 for _ in range(job.n_warmup + job.n_steps)),
                    process=f"{self._process}-{rank}",
                )
                for rank in range(self.n_workers)
            ),
            versions={"simulated": "1"},
        )

    def _step(self, job: Job) -> list[dict[str, float]]:
        """Return the phases of every worker: all wait for the slowest, then transfer."""
        own = [self._own(job, rank) for rank in range(self.n_workers)]
        ready = [sum(phases.values()) - phases["update"] for phases in own]
        transfer = self._executor.draw(self._executor.transfer_s(job))
        for phases, begin in zip(own, ready, strict=True):
            phases["wait"] = max(ready) - begin
            phases["transfer"] = transfer
        return own

    def _own(self, job: Job, rank: int) -> dict[str, float]:
        factor = self._speed * self._executor.imbalance.get(rank, 1.0)
        total = self._executor.draw(self._executor.step_s(job) * factor)
        phases = {name: share * total for name, share in _SHARES.items()}
        for delay in job.delays:
            if delay.worker == rank:
                phases[delay.phase] = phases.get(delay.phase, 0.0) + delay.seconds
        return phases

    def close(self) -> None:
        """Close it."""
        self._open = False
