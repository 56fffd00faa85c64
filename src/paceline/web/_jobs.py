"""Work that takes longer than a request: each in a process of its own, which can be stopped."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

from paceline.errors import ExecutionError
from paceline.web._folder import NoSuchFileError

_KEPT = 30


@dataclass
class Job:
    """Something under way, or its result.

    Parameters
    ----------
    id
        How it is asked after.
    kind, title
        What it is, for the program and for people.
    state
        ``running``, ``done``, ``failed`` or ``stopped``.
    """

    id: str
    kind: str
    title: str
    state: str = "running"
    done: int = 0
    total: int = 0
    label: str = "starting"
    error: str = ""
    result: Any = None
    started: float = field(default_factory=time.time)
    ended: float | None = None

    def to_dict(self, *, with_result: bool = True) -> dict[str, Any]:
        """Return the job as plain data."""
        data = dict(vars(self))
        if not with_result:
            data.pop("result")
        data["seconds"] = (self.ended or time.time()) - self.started
        return data


class Jobs:
    """The jobs of an application.

    Parameters
    ----------
    max_running
        How many may run at once.
    """

    def __init__(self, *, max_running: int = 2) -> None:
        self._max_running = max_running
        self._jobs: dict[str, Job] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._threads: list[Thread] = []
        self._lock = Lock()

    def start(self, kind: str, title: str, task: dict[str, Any]) -> Job:
        """Start a job.

        Raises
        ------
        ExecutionError
            When as many run as may.
        """
        with self._lock:
            if len(self._processes) >= self._max_running:
                raise ExecutionError(
                    f"At most {self._max_running} jobs may run at once, but as many do. Wait for "
                    "one, or stop it."
                )
            job = Job(id=secrets.token_hex(6), kind=kind, title=title)
            process = subprocess.Popen(
                [sys.executable, "-m", "paceline.web._worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            self._jobs[job.id], self._processes[job.id] = job, process
            self._forget()
        thread = Thread(target=self._follow, args=(job, process, task), daemon=True)
        self._threads = [t for t in self._threads if t.is_alive()] + [thread]
        thread.start()
        return job

    def find(self, number: str) -> Job:
        """Return a job.

        Raises
        ------
        NoSuchFileError
            When there is none.
        """
        if number not in self._jobs:
            raise NoSuchFileError(f"A job must have been started, but {number[:40]!r} was not.")
        return self._jobs[number]

    def list(self) -> list[Job]:
        """Return all jobs, the newest first."""
        return list(reversed(self._jobs.values()))

    def stop(self, number: str) -> Job:
        """End a job, if it still runs."""
        job = self.find(number)
        with self._lock:
            process = self._processes.get(number)
            if process is not None and job.state == "running":
                job.state = "stopped"
                _kill(process)
        return job

    def close(self) -> None:
        """End all jobs."""
        for number in list(self._processes):
            self.stop(number)
        for thread in self._threads:
            thread.join(timeout=5)

    def _follow(self, job: Job, process: subprocess.Popen[str], task: dict[str, Any]) -> None:
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        with process:
            with contextlib.suppress(OSError):  # it was stopped before it could listen
                process.stdin.write(json.dumps({"kind": job.kind, **task}))
                process.stdin.close()
            for line in process.stdout:
                with contextlib.suppress(ValueError):
                    _note(job, json.loads(line))
        _kill(process)  # what it may have left in its group
        with self._lock:
            if job.state == "running":
                job.state = "failed"
                job.error = job.error or "The process of this job ended before its time."
            job.ended = time.time()
            self._processes.pop(job.id, None)

    def _forget(self) -> None:
        for number in list(self._jobs)[: max(len(self._jobs) - _KEPT, 0)]:
            if number not in self._processes:
                del self._jobs[number]


def _note(job: Job, message: dict[str, Any]) -> None:
    if "progress" in message:
        job.done, job.total, job.label = message["progress"]
    elif "error" in message:
        job.error = str(message["error"])
    elif "result" in message and job.state == "running":
        job.result, job.state, job.label = message["result"], "done", "done"


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
