"""Workers that stay alive between jobs, and that are all gone as soon as one of them fails."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from paceline.errors import ExecutionError, InvalidInputError
from paceline.executors._base import Pool
from paceline.executors._gathering import Gathering, PoolLimits, RefusedJobError
from paceline.executors._job import Job, RunRecord, WorkerRecord
from paceline.executors._process import Keeper, WorkerProcess
from paceline.executors._template import Spawned, Template

_START_TRIES = 3  # a free port may be taken before the workers bind it


class WorkerPool(Pool):
    """Workers of one kind, started once and used for many jobs.

    Parameters
    ----------
    command_of_rank
        Command line of every worker.
    n_workers
        How many there are.
    environment
        Variables to add to those of this process and to torchrun's.
    limits
        What each may use.
    template
        What to fork them from; None starts each anew by its command.
    first_rank, world_size
        Rank of the first, and how many there are with those of other hosts; None: no others.

    Notes
    -----
    A failed job ends all workers; the next `run` starts new ones. A job that workers refuse
    (nothing was run) leaves them alive.
    """

    def __init__(
        self,
        command_of_rank: Callable[[int], Sequence[str]],
        n_workers: int,
        environment: Mapping[str, str] | None = None,
        limits: PoolLimits | None = None,
        template: Template | None = None,
        *,
        first_rank: int = 0,
        world_size: int | None = None,
    ) -> None:
        if n_workers < 1:
            raise InvalidInputError(f"`n_workers` must be at least 1, but got {n_workers}.")
        self.n_workers = n_workers
        self._command_of_rank = command_of_rank
        self._environment = dict(environment or {})
        self._limits = limits or PoolLimits()
        self._template = template
        self._first_rank, self._world_size = first_rank, world_size or n_workers
        self._workers: list[WorkerProcess] = []
        self._keeper: Keeper | None = None
        self._gathering: Gathering | None = None
        self._ready: list[dict[str, Any]] = []
        self._n_jobs = 0

    @property
    def is_alive(self) -> bool:
        """Whether all workers run."""
        return bool(self._workers) and all(w.exit_code() is None for w in self._workers)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers."""
        return tuple(w.pid for w in self._workers)

    @property
    def processes(self) -> tuple[str, ...]:
        """Process lives of the workers: id and start."""
        return tuple(str(message.get("process", "")) for message in self._ready)

    @property
    def versions(self) -> dict[str, str]:
        """What the workers run on."""
        return dict(self._ready[0].get("versions", {})) if self._ready else {}

    def start(self) -> None:
        """Start the workers, unless they run; `run` does so by itself."""
        if self.is_alive:
            return
        for attempt in range(_START_TRIES):
            try:
                return self._start()
            except ExecutionError as error:
                taken = "address already in use" in (error.log_tail + error.reason).lower()
                if not taken or attempt == _START_TRIES - 1:
                    raise

    def run(self, job: Job, timeout_s: float) -> RunRecord:
        """Run a job on all workers.

        Parameters
        ----------
        job
            What to train; it must be for as many workers as there are.
        timeout_s
            Seconds that it may take, without the start of the workers.

        Raises
        ------
        RunTimeoutError
            When it takes longer.
        DeviceMemoryError
            When a worker needs more memory than it may or can have.
        ExecutionError
            When a worker fails, dies, or answers something else; with the tail of its log.
        """
        if job.n_workers != self._world_size:
            raise InvalidInputError(
                f"`device_batches` must hold one batch for each of the pool's {self._world_size} "
                f"workers, but got {list(job.device_batches)}."
            )
        self.start()
        self._n_jobs += 1
        request = {"run": job.to_dict(), "id": self._n_jobs}
        answers = self._guarded(lambda: self._exchange(request, timeout_s))
        return self._record(answers)

    def close(self) -> None:
        """Ask the workers to stop, and end those that do not."""
        end = time.monotonic() + self._limits.stop_s
        for worker in self._workers:
            worker.write(b'{"stop": true}\n', end)
        for worker in self._workers:
            worker.wait_for_exit(end - time.monotonic())
        self.kill()

    def kill(self) -> None:
        """End all workers and their children at once."""
        for worker in self._workers:
            if self._keeper is not None:
                self._keeper.forget(worker.pid)
            worker.kill()
        if self._keeper is not None:
            self._keeper.close()
        if self._gathering is not None:
            self._gathering.close()
        self._workers, self._keeper, self._gathering, self._ready = [], None, None, []

    def _start(self) -> None:
        self.kill()
        self._ready = self._guarded(self._launch)

    def _launch(self) -> list[dict[str, Any]]:
        deadline = time.monotonic() + self._limits.start_s
        self._keeper, port = Keeper(), _free_port()
        for rank in range(self.n_workers):
            self._workers.append(self._worker(rank, port))
            self._keeper.watch(self._workers[-1].pid)
        self._gathering = Gathering(self._workers, self._limits, self._first_rank)
        ready = self._gathering.gather("ready", True, deadline)
        for worker, message in zip(self._workers, ready, strict=True):
            worker.works_as(str(message.get("process", "")))
        return ready

    def _worker(self, rank: int, port: int) -> WorkerProcess:
        command = self._command_of_rank(rank)
        variables = self._variables(rank, port)
        try:
            template = self._template if self._template and self._template.is_alive else None
            child = template.fork(variables) if template else Spawned(command, variables)
            return WorkerProcess(child, self._limits.line_bytes)
        except OSError as error:
            raise ExecutionError(
                f"Worker {rank} must be startable, but {command[0]!r} is not: {error.strerror}."
            ) from error

    def _variables(self, rank: int, port: int) -> dict[str, str]:
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **self._environment}
        places = {
            "RANK": self._first_rank + rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": self._world_size,
        }
        own = {name: str(value) for name, value in places.items()}
        return base_variables({**meeting, **own})

    def _guarded(self, act: Callable[[], Any]) -> Any:
        """Whatever goes wrong, Ctrl-C included, no worker is left behind."""
        try:
            return act()
        except RefusedJobError as error:  # nothing was run, so all workers are as they were
            raise ExecutionError(error.reason, error.log_tail) from None
        except BaseException:
            self.kill()
            raise

    def _exchange(self, request: Mapping[str, Any], timeout_s: float) -> list[dict[str, Any]]:
        assert self._gathering is not None  # set by start
        deadline = time.monotonic() + timeout_s
        line = json.dumps(request).encode() + b"\n"
        for worker in self._workers:
            worker.write(line, deadline)
        return self._gathering.gather("id", request["id"], deadline)

    def _record(self, answers: Sequence[Mapping[str, Any]]) -> RunRecord:
        try:
            workers = tuple(_worker_record(answer["record"]) for answer in answers)
        except (KeyError, TypeError, ValueError) as error:
            raise ExecutionError(f"A worker's record must be complete, but: {error}.") from error
        return RunRecord(workers=workers, versions=self.versions)


def _worker_record(record: Mapping[str, Any]) -> WorkerRecord:
    known = {field.name for field in fields(WorkerRecord)}
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name in known
    }
    return WorkerRecord(**values)


def base_variables(added: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of this process with some more, one thread per worker by default."""
    threads = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    return {**os.environ, **threads, **added}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
