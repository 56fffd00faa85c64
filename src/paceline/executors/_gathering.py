"""One answer of every worker within the limits, or what went wrong and who is to blame."""

from __future__ import annotations

import selectors
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import DeviceMemoryError, ExecutionError, RunTimeoutError
from paceline.executors._hangs import find_hung
from paceline.executors._process import WorkerProcess

_GRACE_S = 1.0  # after one worker failed, the others may say the same, or hang
_MEMORY_POLL_S = 0.05
# whose failure is told when several fail: a dead worker makes its partners fail, not the reverse
_BLAME = ("memory", "refused", "garbage", "died", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """What workers may use.

    Parameters
    ----------
    start_s
        Seconds from start to the first sign of life of all workers.
    stop_s
        Seconds that workers get to stop by themselves.
    memory_bytes
        Resident memory of each worker; None for no limit.
    line_bytes
        Longest answer.
    """

    start_s: float = 180.0
    stop_s: float = 3.0
    memory_bytes: int | None = None
    line_bytes: int = 64 * 2**20


class RefusedJobError(ExecutionError):
    """All workers refused the job before its first step, and are as they were."""


@dataclass(frozen=True, slots=True)
class _Failure:
    kind: str
    rank: int
    reason: str


class Gathering:
    """Reads the lines and logs of workers.

    Parameters
    ----------
    workers
        The workers, in the order of their ranks.
    limits
        What they may use.
    first_rank
        Of the first of them: others may be on other hosts.
    """

    def __init__(
        self, workers: Sequence[WorkerProcess], limits: PoolLimits, first_rank: int = 0
    ) -> None:
        self._workers, self._limits, self._first = workers, limits, first_rank
        self._n_oom_kills = _n_oom_kills()
        self._selector = selectors.DefaultSelector()
        for rank, worker in enumerate(workers):
            self._selector.register(worker.stdout, selectors.EVENT_READ, ("answer", rank))
            self._selector.register(worker.stderr, selectors.EVENT_READ, ("log", rank))

    def close(self) -> None:
        """Stop watching."""
        self._selector.close()

    def gather(self, key: str, value: object, deadline: float) -> list[dict[str, Any]]:
        """Return one message of every worker in which `key` has that value.

        Raises
        ------
        ExecutionError
            When not all of them answer well by the deadline.
        """
        answers: dict[int, dict[str, Any]] = {}
        failures: list[_Failure] = []
        limit = deadline
        while len(answers) + len(failures) < len(self._workers):
            if time.monotonic() >= limit:
                break
            for rank in self._wait(limit):
                outcome = self._outcome(rank, key, value)
                if isinstance(outcome, _Failure):
                    failures.append(outcome)
                elif outcome is not None:
                    answers[rank] = outcome
            failures.extend(self._too_large())
            if failures:
                limit = min(limit, time.monotonic() + _GRACE_S)
        if failures:
            raise self._error(failures)
        if len(answers) < len(self._workers):
            raise self._timeout(answers, key)
        return [answers[rank] for rank in range(len(self._workers))]

    def _wait(self, limit: float) -> list[int]:
        """Return the workers that have written something, after taking in all logs."""
        timeout = max(0.0, limit - time.monotonic())
        if self._limits.memory_bytes is not None:
            timeout = min(timeout, _MEMORY_POLL_S)
        ranks = []
        for entry, _ in self._selector.select(timeout):
            what, rank = entry.data
            if what == "answer":
                ranks.append(rank)
            elif not self._workers[rank].read_log():
                self._selector.unregister(entry.fileobj)
        return ranks

    def _outcome(self, rank: int, key: str, value: object) -> dict[str, Any] | _Failure | None:
        try:
            message = self._workers[rank].read_message()
        except EOFError:
            self._selector.unregister(self._workers[rank].stdout)
            return self._death(rank)
        except ValueError as error:
            self._selector.unregister(self._workers[rank].stdout)
            return _Failure("garbage", rank, f"printed {error}")
        if message is None:
            return None
        if message.get(key) != value:
            return _Failure("garbage", rank, f"gave an unexpected answer: {str(message)[:80]!r}")
        return message if message.get("ok", True) is True else _failure(rank, message)

    def _death(self, rank: int) -> _Failure:
        code = self._workers[rank].wait_for_exit(_GRACE_S)
        if code == -signal.SIGKILL and _n_oom_kills() > self._n_oom_kills:
            return _Failure("memory", rank, "was killed by the system for lack of memory")
        if code is None:
            return _Failure("died", rank, "closed its output")
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        return _Failure("died", rank, how)

    def _too_large(self) -> list[_Failure]:
        allowed = self._limits.memory_bytes
        if allowed is None:
            return []
        sizes = [worker.memory_bytes() for worker in self._workers]
        worst = max(range(len(sizes)), key=sizes.__getitem__)
        if sizes[worst] <= allowed:
            return []
        raise self._error([_Failure("memory", worst, f"took {sizes[worst]} bytes of {allowed}")])

    def _error(self, failures: Sequence[_Failure]) -> ExecutionError:
        worst = min(failures, key=lambda failure: _BLAME.index(failure.kind))
        tail = self._workers[worst.rank].log_tail
        told = f"Worker {self._first + worst.rank} {worst.reason}"
        if worst.kind in ("memory", "garbage", "died"):
            told = f"Worker {self._first + worst.rank} must finish within its limits, but it "
            told += f"{worst.reason}."
        if worst.kind == "memory":
            return DeviceMemoryError(told, tail)
        if worst.kind == "refused" and len(failures) == len(self._workers):
            return RefusedJobError(worst.reason, tail)
        return ExecutionError(told, tail)

    def _timeout(self, answers: dict[int, dict[str, Any]], key: str) -> RunTimeoutError:
        silent = [rank for rank in range(len(self._workers)) if rank not in answers]
        doing = "start" if key == "ready" else "finish"
        hung, where = silent, ""
        if doing == "finish":
            hung, where = find_hung(self._workers, silent, self._first)
        names = ", ".join(str(self._first + rank) for rank in hung)
        reason = f"Workers must {doing} within their time limit, but worker {names} did not"
        reason += f": {where}." if where else "."
        return RunTimeoutError(reason, self._workers[hung[0]].log_tail)


def _failure(rank: int, message: dict[str, Any]) -> _Failure:
    kind = str(message.get("kind"))
    reason = str(message.get("reason") or "gave no reason")
    if kind == "memory":
        return _Failure("memory", rank, f"ran out of memory: {reason}".rstrip("."))
    if kind == "refused":
        return _Failure("refused", rank, reason)
    return _Failure("error", rank, f"failed: {reason}")


def _n_oom_kills() -> int:
    """Return how many processes the system has killed for lack of memory so far."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
