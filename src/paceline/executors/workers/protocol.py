"""What every worker shares: JSON lines with the parent, the clock of a step, its samples.

Standard library only, and no syntax newer than Python 3.8: some frameworks need old interpreters.
A worker file begins with::

    import protocol

    if __name__ == "__main__":  # before the framework is imported, which may print
        protocol.take_over_stdout()
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

MAX_LINE_BYTES = 64 * 2**20
_SPIN_S = 2e-4  # a sleeping process wakes up to 0.1 ms late: the rest is waited for awake
_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "cannot allocate memory", "bad_alloc")
_channel: list[BinaryIO] = []  # where requests come from and where answers go


class RefusedError(Exception):
    """The job cannot be done by any worker (raised before its first step)."""


def take_over_stdout(again: bool = False) -> None:
    """Keep standard input and output for the protocol; prints go to standard error.

    Parameters
    ----------
    again
        Whether the streams are others than before, as in a forked process.
    """
    if _channel and not again:
        return
    _channel.clear()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _channel.extend((requests, answers))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)


def rank() -> int:
    """Return which worker this is, as torchrun says it."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Return how many workers there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def serve(
    framework: str,
    versions: dict[str, str],
    run_job: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Answer jobs until the parent says stop or is gone.

    Parameters
    ----------
    framework
        Name of the framework.
    versions
        Version of every package that matters.
    run_job
        From a job to the fields of a worker record; `rank`, `process` and
        `peak_memory_bytes` are filled in here.
    """
    take_over_stdout()
    if hasattr(signal, "SIGUSR1"):  # the parent asks so where a worker hangs
        faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)
    process = f"{os.getpid()}-{int(time.time() * 1e3)}"
    versions = dict(versions, python=sys.version.split()[0])
    _answer({"ready": True, "framework": framework, "versions": versions, "process": process})
    for line in iter(_channel[0].readline, b""):
        request = json.loads(line)
        if "run" not in request:
            return
        _answer(dict(_outcome(run_job, request["run"], process), id=request["id"]))


def _outcome(
    run_job: Callable[[dict[str, Any]], dict[str, Any]], job: dict[str, Any], process: str
) -> dict[str, Any]:
    try:
        forget_peak_memory()
        record = run_job(job)
    except Exception as error:
        traceback.print_exc()
        return {"ok": False, "kind": _kind(error), "reason": _one_line(error)}
    record.setdefault("peak_memory_bytes", peak_memory_bytes())
    record.update(rank=rank(), process=process)
    return {"ok": True, "record": record}


def _answer(message: dict[str, Any]) -> None:
    line = json.dumps(message).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        reason = f"An answer must have at most {MAX_LINE_BYTES} bytes, but got {len(line)}."
        failure = {"ok": False, "kind": "error", "reason": reason, "id": message.get("id")}
        line = json.dumps(failure).encode() + b"\n"
    _channel[1].write(line)
    _channel[1].flush()


def _kind(error: Exception) -> str:
    if isinstance(error, RefusedError):
        return "refused"
    return "memory" if is_out_of_memory(error) else "error"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that there is not enough memory."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(sign in text for sign in _MEMORY_SIGNS)


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return (text if isinstance(error, RefusedError) else type(error).__name__ + ": " + text)[:500]


def forget_peak_memory() -> None:
    """Start the peak of resident memory anew, where the kernel lets us."""
    try:
        with open("/proc/self/clear_refs", "w") as handle:  # noqa: PTH123
            handle.write("5")
    except OSError:
        pass


def peak_memory_bytes() -> int:
    """Return the largest resident memory since the job began (or the process, elsewhere)."""
    try:
        with open("/proc/self/status") as handle:  # noqa: PTH123
            for line in handle:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def part_of_step(job: dict[str, Any], worker: int, step: int) -> tuple[int, int]:
    """Return the first sample of a worker in a step, and how many it takes.

    The first may lie beyond the last sample of the set: `Samples` counts modulo its size.
    """
    batches = job["device_batches"]
    return step * sum(batches) + sum(batches[:worker]), batches[worker]


def weight_of(job: dict[str, Any], worker: int) -> float:
    """Return a worker's share of the samples of a step: the weight of its gradients."""
    return float(job["device_batches"][worker] / sum(job["device_batches"]))


class Clock:
    """Times the phases of a step, with the planted pauses of this worker inside them.

    Parameters
    ----------
    job
        The job, for its planted pauses.
    worker
        Which worker this is.

    Examples
    --------
    >>> clock = Clock({"delays": []}, 0)
    >>> clock.begin_step()
    >>> with clock.phase("forward"):
    ...     pass
    >>> clock.end_step()
    >>> sorted(clock.phases[0]), len(clock.step_s)
    (['forward'], 1)
    """

    def __init__(self, job: dict[str, Any], worker: int) -> None:
        mine = [d for d in job.get("delays", ()) if d["worker"] == worker]
        self._pauses = {d["phase"]: d["seconds"] for d in mine}
        self._begin = 0.0
        self._now: dict[str, float] = {}
        self.phases: list[dict[str, float]] = []
        self.step_s: list[float] = []

    def begin_step(self) -> None:
        """Start the time of a step."""
        self._now = {}
        self._begin = time.perf_counter()

    def end_step(self) -> None:
        """Keep the step's time and those of its phases."""
        self.step_s.append(time.perf_counter() - self._begin)
        self.phases.append(self._now)

    def phase(self, name: str) -> _Phase:
        """Return a context whose time counts as that phase (twice in a step: both count)."""
        return _Phase(self, name)

    def add(self, name: str, seconds: float) -> None:
        """Count seconds as that phase."""
        self._now[name] = self._now.get(name, 0.0) + seconds

    def discount(self, name: str, seconds: float) -> None:
        """Take what measuring itself took out of that phase and out of the step."""
        self.add(name, -seconds)
        self._begin += seconds

    def pause(self, name: str) -> None:
        """Wait as long as was planted for this worker in that phase."""
        if name in self._pauses:
            wait(self._pauses[name])


class _Phase:
    def __init__(self, clock: Clock, name: str) -> None:
        self._clock, self._name, self._begin = clock, name, 0.0

    def __enter__(self) -> None:
        self._begin = time.perf_counter()
        self._clock.pause(self._name)

    def __exit__(self, *_: object) -> None:
        self._clock.add(self._name, time.perf_counter() - self._begin)


def wait(seconds: float) -> None:
    """Wait for as long as said, within microseconds."""
    end = time.perf_counter() + seconds
    if seconds > _SPIN_S:
        time.sleep(seconds - _SPIN_S)
    while time.perf_counter() < end:
        pass


def layer_times(
    names: Iterable[str],
    forward: dict[str, list[float]],
    backward: dict[str, list[float]],
    phases: list[dict[str, float]],
) -> list[dict[str, Any]]:
    """Return the time of every layer, as a worker record wants it.

    Parameters
    ----------
    names
        Of the layers, in the order of the network.
    forward, backward
        Seconds of every layer in every step.
    phases
        Seconds of the phases in the same steps.
    """
    forward_s = _typical(forward, [step["forward"] for step in phases])
    backward_s = _typical(backward, [step["backward"] for step in phases])
    return [
        {
            "name": name,
            "forward_s": forward_s.get(name, 0.0),
            "backward_s": backward_s.get(name, 0.0),
        }
        for name in names
    ]


def _typical(times: dict[str, list[float]], totals: list[float]) -> dict[str, float]:
    """Average over the middle half of the steps: as steady as a median, but parts still add up."""
    quarter = len(totals) // 4
    ranked = sorted(range(len(totals)), key=totals.__getitem__)
    middle = ranked[quarter : len(totals) - quarter]
    return {name: sum(steps[i] for i in middle) / len(middle) for name, steps in times.items()}


def digest(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 of all weights, given as bytes in the order of the network."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()
