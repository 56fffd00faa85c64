"""Run one command within limits: its output read as it comes, its processes gone at the end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from paceline.errors import InvalidInputError
from paceline.executors._supervisor import descendants

_MARK = "PACELINE_RUN"
_CHUNK_BYTES = 1 << 16
_LINE_BYTES = 1 << 14  # what is longer is cut: progress must not cost memory
_TAIL_BYTES = 8192
_HEAD_LINES = 10
_POLL_S = 0.2
_CHECK_S = 1.0  # how often memory and the number of steps are looked at
_SUPERVISOR = Path(__file__).with_name("_supervisor.py")

Stop = Literal["deadline", "output", "memory", "enough"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLimits:
    """What one run of a command may use.

    Parameters
    ----------
    timeout_s
        Seconds from start to end; None: no limit.
    output_bytes
        Bytes it may print; None: no limit (memory stays bounded either way).
    memory_bytes
        Anonymous and shared memory of all its processes together, looked at once a second;
        None: no limit.
    """

    timeout_s: float | None = 3600.0
    output_bytes: int | None = 256 << 20
    memory_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_s", "output_bytes", "memory_bytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidInputError(f"`{name}` must be positive or None, but got {value}.")


@dataclass(slots=True)
class Output:
    """What is kept of the output: the first lines, the end, and how much there was."""

    on_lines: Callable[[list[str]], None]
    echo: BinaryIO | None = None
    n_bytes: int = 0
    head: list[str] = field(default_factory=list)
    _tail: bytes = b""
    _rest: bytes = b""

    @property
    def tail(self) -> str:
        """The end of the output."""
        return self._tail[-_TAIL_BYTES:].decode(errors="replace")

    def take(self, chunk: bytes) -> None:
        """Split a piece of output into lines; a carriage return ends one too (progress bars)."""
        self.n_bytes += len(chunk)
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        if self.echo is not None:
            self.echo.write(chunk)
            self.echo.flush()
        *whole, rest = (self._rest + chunk.replace(b"\r", b"\n")).split(b"\n")
        self._rest = rest[:_LINE_BYTES]
        self._pass_on(whole)

    def close(self) -> None:
        """Take the last line, which may lack its end."""
        self._pass_on([self._rest])
        self._rest = b""

    def _pass_on(self, lines: list[bytes]) -> None:
        texts = [line[:_LINE_BYTES].decode(errors="replace") for line in lines if line]
        if len(self.head) < _HEAD_LINES:
            self.head += [text[:200] for text in texts[: _HEAD_LINES - len(self.head)]]
        self.on_lines(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: `stop` says which limit ended it, if one did.

    `out_of_memory`: the kernel killed some process for want of memory meanwhile.
    """

    exit_code: int | None
    seconds: float
    n_ended: int
    stop: Stop | None
    out_of_memory: bool
    error: str


def run_watched(
    command: Sequence[str],
    output: Output,
    *,
    folder: Path,
    environment: Mapping[str, str],
    limits: CommandLimits,
    is_enough: Callable[[], bool],
) -> Ended:
    """Run a command to its end or to a limit, and leave no process of it behind."""
    mark = uuid.uuid4().hex
    read_end, write_end = os.pipe()
    began = time.monotonic()
    n_kills = _n_memory_kills()
    with os.fdopen(read_end, "rb") as report:
        process = _start(command, write_end, folder, {**environment, _MARK: mark})
        stop: Stop | None = None
        try:
            stop = _read(process, output, limits, is_enough, began)
            seconds = time.monotonic() - began
        finally:
            _end(process, mark)
        outcome = json.loads(report.read() or b"{}")
    return Ended(
        exit_code=outcome.get("exit_code"),
        seconds=seconds,
        n_ended=outcome.get("n_ended", 0),
        stop=stop,
        out_of_memory=_n_memory_kills() > n_kills,
        error=outcome.get("error", ""),
    )


def _start(
    command: Sequence[str], report: int, folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    # isolated, without site: the command's PYTHONPATH must not reach the supervisor
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SUPERVISOR), str(report), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            pass_fds=(report,),
            start_new_session=True,
            bufsize=0,
        )
    except (NotADirectoryError, FileNotFoundError) as error:
        raise InvalidInputError(f"`working_folder` must exist, but got {folder}.") from error
    finally:
        os.close(report)


def _read(
    process: subprocess.Popen[bytes],
    output: Output,
    limits: CommandLimits,
    is_enough: Callable[[], bool],
    began: float,
) -> Stop | None:
    assert process.stdout is not None  # a pipe was asked for
    descriptor = process.stdout.fileno()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    checked = began
    while True:
        if poll.poll(_POLL_S * 1000):
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                output.close()
                return None
            output.take(chunk)
        elif process.poll() is not None:
            return None  # something beyond reach still holds the pipe
        now = time.monotonic()
        if stop := _exceeded(now - began, output.n_bytes, limits):
            return stop
        if now - checked > _CHECK_S:
            checked = now
            if stop := _checked(process.pid, limits, is_enough):
                return stop


def _exceeded(seconds: float, n_bytes: int, limits: CommandLimits) -> Stop | None:
    if limits.timeout_s is not None and seconds > limits.timeout_s:
        return "deadline"
    if limits.output_bytes is not None and n_bytes > limits.output_bytes:
        return "output"
    return None


def _checked(pid: int, limits: CommandLimits, is_enough: Callable[[], bool]) -> Stop | None:
    if is_enough():
        return "enough"
    if limits.memory_bytes is not None and _memory_bytes(pid) > limits.memory_bytes:
        return "memory"
    return None


def _memory_bytes(root: int) -> int:
    """Sum anonymous and shared memory: file pages (libraries) are shared by all processes."""
    total_kib = 0
    for pid in descendants(root):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total_kib += int(line.split()[1])
    return total_kib * 1024


def _n_memory_kills() -> int:
    """Return how often the kernel has killed a process for want of memory (Linux)."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Close the control pipe, upon which the supervisor ends everything; else do it here."""
    assert process.stdin is not None and process.stdout is not None  # pipes were asked for
    process.stdin.close()
    process.stdout.close()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.returncode != 0:
        _kill_marked(f"{_MARK}={mark}".encode())


def _kill_marked(mark: bytes) -> None:
    """Kill what still carries this run's environment: the supervisor itself was killed."""
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in entry.read_bytes().split(b"\0"):
                os.kill(int(entry.parent.name), signal.SIGKILL)
