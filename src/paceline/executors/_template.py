"""Processes of workers: started anew, or forked from one that has imported the framework."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Any, Protocol

from paceline.executors.workers.template import MAX_MESSAGE_BYTES, VARIABLE

_START_S = 180.0
_ANSWER_S = 10.0


class Child(Protocol):
    """A process with three pipes."""

    pid: int
    streams: tuple[IO[bytes], IO[bytes], IO[bytes]]

    def code(self) -> int | None:
        """Return how it ended (negative: the signal), or None; its id stays taken."""
        ...

    def release(self) -> None:
        """Wait for its end and let go of its id."""
        ...


class Spawned:
    """A process that is started anew."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            start_new_session=True,
        )
        self.pid = self._process.pid
        streams = self._process.stdin, self._process.stdout, self._process.stderr
        assert streams[0] and streams[1] and streams[2]  # each was asked for as a pipe
        self.streams = streams[0], streams[1], streams[2]

    def code(self) -> int | None:
        """Return how it ended, or None."""
        if self._process.returncode is not None:
            return self._process.returncode
        state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if state is None:
            return None
        return state.si_status if state.si_code == os.CLD_EXITED else -state.si_status

    def release(self) -> None:
        """Wait for its end."""
        self._process.wait()


class Template:
    """A process that has imported a framework and forks workers from itself.

    Parameters
    ----------
    command, environment
        What to start: a worker that forks on request.

    Raises
    ------
    OSError
        When it does not become ready.

    Notes
    -----
    It ends when `close` is called or this process is gone. Its workers have the layout of its
    memory in common: for independent process lives take several templates.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                list(command),
                env={**environment, VARIABLE: str(theirs.fileno())},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            self._control.settimeout(_START_S)
            self._receive()
            self._control.settimeout(_ANSWER_S)
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether it can fork."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the template."""
        return self._process.pid

    def fork(self, environment: Mapping[str, str]) -> Forked:
        """Return a new worker with these variables.

        Raises
        ------
        OSError
            When the template is gone.
        """
        own = self._environment
        changed = {k: v for k, v in environment.items() if own.get(k) != v}
        ends = [os.pipe() for _ in range(3)]
        theirs = [ends[0][0], ends[1][1], ends[2][1]]
        ours = [ends[0][1], ends[1][0], ends[2][0]]
        try:
            message = json.dumps({"fork": changed}).encode()
            socket.send_fds(self._control, [message], theirs)
            pid = int(self._receive()["pid"])
        except BaseException:
            for end in ours:
                os.close(end)
            raise
        finally:
            for end in theirs:
                os.close(end)
        return Forked(self, pid, ours)

    def code(self, pid: int, *, release: bool = False) -> int | None:
        """Return how a worker ended; when the template is gone, that it was killed."""
        try:
            self._control.sendall(json.dumps({"pid": pid, "release": release}).encode())
            code: int | None = self._receive()["code"]
        except OSError:
            return -signal.SIGKILL
        return code

    def close(self) -> None:
        """End the template, not its workers; once is enough."""
        self._control.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def _receive(self) -> dict[str, Any]:
        message = self._control.recv(MAX_MESSAGE_BYTES)
        if not message:
            raise ConnectionError("the template is gone")
        answer: dict[str, Any] = json.loads(message)
        return answer


class Forked:
    """A process that was forked from a template."""

    def __init__(self, template: Template, pid: int, descriptors: Sequence[int]) -> None:
        self._template, self.pid = template, pid
        stdin, stdout, stderr = descriptors
        self.streams: tuple[IO[bytes], IO[bytes], IO[bytes]] = (
            os.fdopen(stdin, "wb", 0),
            os.fdopen(stdout, "rb", 0),
            os.fdopen(stderr, "rb", 0),
        )
        self._code: int | None = None

    def code(self) -> int | None:
        """Return how it ended, or None."""
        if self._code is None:
            self._code = self._template.code(self.pid)
        return self._code

    def release(self) -> None:
        """Wait for its end."""
        self._template.code(self.pid, release=True)
