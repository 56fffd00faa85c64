"""All runs of a calibration, in fresh processes that are gone at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from paceline.errors import MissingDependencyError
from paceline.executors import Job, WorkerPool, load_executor
from paceline.measurement._calibration_probes import (
    NetworkProbe,
    divided_job,
    exchange_job,
    memory_job,
    piped_job,
    rates_job,
    sharded_job,
)

_TIMEOUT_S = 300.0
_N_BARE_LIVES = 2

Rows = Sequence[Mapping[str, Any]]
Found = Mapping[tuple[str, int], list[list[Rows]]]  # by run and workers: by life, by worker
ProgressCallback = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All runs of a calibration, life by life, so that the lives of one run are apart."""

    counts: tuple[int, ...]
    probes: tuple[NetworkProbe, ...]
    n_lives: int
    backend: str
    environment: Mapping[str, str] = field(default_factory=dict)
    launch: Callable[[int], Sequence[str]] = lambda rank: ()

    def measure(self, progress: ProgressCallback) -> Found:
        """Return the rows of every worker by what was run, number of workers, and life."""
        python = _python()
        total = sum(len(self._jobs(n, k)) for k in range(self.n_lives) for n in self.counts)
        found: dict[tuple[str, int], list[list[Rows]]] = {}
        done = 0
        for life in range(self.n_lives):
            for n in self.counts:
                with self._pool(python, n) as pool:
                    for label, job in self._jobs(n, life).items():
                        progress(done, total, label)
                        record = pool.run(job, _TIMEOUT_S)
                        rows: list[Rows] = [worker.layers for worker in record.workers]
                        found.setdefault((label, n), []).append(rows)
                        done += 1
        progress(total, total, "done")
        return found

    def _pool(self, python: str, n_workers: int) -> WorkerPool:
        script = str(files("paceline.executors") / "workers" / "torch_calibrate.py")
        command = [python, script, self.backend]
        return WorkerPool(lambda rank: [*self.launch(rank), *command], n_workers, self.environment)

    def _jobs(self, n: int, life: int) -> dict[str, Job]:
        """Return what so many workers run in one life: all of it, or networks only."""
        bare = self._bare_jobs(n) if life < _N_BARE_LIVES else {}
        if n == 1:
            return {
                **bare,
                **{f"{i}: {probe}": probe.job() for i, probe in enumerate(self.probes)},
            }
        return {**bare, **{f"{i}: {self.probes[i]}": self._crowd_job(i, n) for i in self.crowded}}

    def _bare_jobs(self, n: int) -> dict[str, Job]:
        """Return what is measured without a network: their lives differ less."""
        if n == 1:
            return {"rates": rates_job(), "memory": memory_job()}
        if n > self.few:  # fewer sizes tell what more workers add
            return {f"exchanges of {n} workers": exchange_job(n, every=2)}
        return {
            f"exchanges of {n} workers": exchange_job(n),
            "divided layers": divided_job(n),
            "sharded networks": sharded_job(n),
            **({"pipelines": piped_job(n)} if n == 2 else {}),
        }

    def _crowd_job(self, which: int, n: int) -> Job:
        """Return many short steps: some of them are disturbed on no worker."""
        probe = self.probes[which]
        return replace(probe, n_steps=2 * probe.n_steps).job(n)

    @property
    def few(self) -> int:
        """The least number of workers that exchange anything; 0: none do."""
        return min(self.counts[1:], default=0)

    @property
    def crowded(self) -> tuple[int, ...]:
        """Which networks are run by several workers at once: small, middle and large ones."""
        last = len(self.probes) - 1
        return tuple(sorted({0, last // 4, last // 2, last}))


def _python() -> str:
    executor = load_executor("torch")
    if executor.python is None:
        raise MissingDependencyError("`paceline calibrate`", "PyTorch", "torch")
    return executor.python
