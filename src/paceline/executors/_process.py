"""One worker process: its lines, the tail of its log, its life and its end."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from paceline.executors._supervisor import descendants
from paceline.executors._template import Child

_CHUNK = 1 << 18
_TAIL_BYTES = 8192
_KEEPER = Path(__file__).parent / "workers" / "keeper.py"


class WorkerProcess:
    """A process in a session of its own, whose output is read without ever blocking.

    Parameters
    ----------
    child
        The process, just started.
    line_bytes
        Longest line that is taken from it.
    """

    def __init__(self, child: Child, line_bytes: int) -> None:
        self._child, self._is_released = child, False
        self.stdin, self.stdout, self.stderr = child.streams
        for pipe in child.streams:
            os.set_blocking(pipe.fileno(), False)
        self._line_bytes = line_bytes
        self._buffer = bytearray()
        self._tail = bytearray()
        self._working_pid = self.pid

    @property
    def pid(self) -> int:
        """Process id, which is also that of its process group."""
        return self._child.pid

    @property
    def log_tail(self) -> str:
        """The last that it wrote to standard error."""
        self.read_log()
        return self._tail.decode(errors="replace").strip()

    def read_log(self) -> bool:
        """Take in what stands on standard error; False at its end."""
        while True:
            chunk = _read(self.stderr)
            if not chunk:
                return chunk is None
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def read_message(self) -> dict[str, Any] | None:
        """Return the next message, or None when there is none yet.

        Raises
        ------
        EOFError
            When the worker has closed its output.
        ValueError
            When a line is too long or is not a message.
        """
        end = self._buffer.find(b"\n")
        while end < 0:
            chunk = _read(self.stdout)
            if chunk is None:
                return None
            if not chunk:
                raise EOFError
            found = chunk.find(b"\n")
            end = len(self._buffer) + found if found >= 0 else -1
            self._buffer += chunk
            if len(self._buffer) > self._line_bytes:
                raise ValueError(f"a line of more than {self._line_bytes} bytes")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return _message(line)

    def write(self, line: bytes, deadline: float) -> None:
        """Send a line; what a dead or deaf worker does not take shows when it does not answer."""
        rest = memoryview(line)
        with contextlib.suppress(OSError), selectors.DefaultSelector() as selector:
            selector.register(self.stdin, selectors.EVENT_WRITE)
            while rest and selector.select(max(0.0, deadline - time.monotonic())):
                rest = rest[os.write(self.stdin.fileno(), rest) :]

    def exit_code(self) -> int | None:
        """Return how it ended (negative: the signal), or None; its id stays taken until `kill`."""
        return self._child.code()

    def wait_for_exit(self, timeout_s: float) -> int | None:
        """Return how it ended, waiting for at most as long as said."""
        end, pause = time.monotonic() + timeout_s, 0.001
        while (code := self.exit_code()) is None and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return code

    def works_as(self, process: str) -> None:
        """Learn which process does the work, when it is another one that this one had started.

        On another host it may have the id of a stranger here, so it must be below us.
        """
        pid = process.partition("-")[0]
        if pid != str(self.pid) and pid in map(str, descendants(os.getpid())):
            self._working_pid = int(pid)

    def memory_bytes(self) -> int:
        """Return the resident memory of the work now; 0 where the system does not say."""
        try:
            pages = Path(f"/proc/{self._working_pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def state(self) -> str:
        """Return the letter of what the work does now (``T``: stopped); empty when unknown."""
        try:
            stat = Path(f"/proc/{self._working_pid}/stat").read_text(errors="replace")
        except OSError:
            return ""
        return stat.rpartition(")")[2].split()[0]

    def ask_for_stack(self) -> None:
        """Have the work write to its log where it is (`protocol.serve` prepares for that)."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._working_pid, signal.SIGUSR1)

    def kill(self) -> None:
        """End it with all its children, and let nothing of it remain."""
        if not self._is_released:  # not waited for yet, so the id is still its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._child.release()
            self._is_released = True
        for pipe in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(OSError):
                pipe.close()


class Keeper:
    """A process that outlives this one for a moment, to kill the groups it was told of."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """Have a group killed when this process ends."""
        self._tell(group)

    def forget(self, group: int) -> None:
        """Leave a group alone from now on."""
        self._tell(-group)

    def _tell(self, number: int) -> None:
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).write(b"%d\n" % number)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            _pipe(self._process.stdin).close()
        self._process.wait()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # every stream used here was asked for as a pipe
    return stream


def _read(stream: IO[bytes]) -> bytes | None:
    """Return what stands ready, None when nothing does, nothing at the end."""
    try:
        return os.read(stream.fileno(), _CHUNK)
    except BlockingIOError:
        return None
    except (OSError, ValueError):
        return b""


def _message(line: bytes) -> dict[str, Any]:
    shown = line[:80].decode(errors="replace")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"something other than a message: {shown!r}") from None
    if not isinstance(message, dict):
        raise ValueError(f"something other than a message: {shown!r}")
    return message
