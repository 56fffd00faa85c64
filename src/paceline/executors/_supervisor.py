"""Run a command, and end with it everything that it started.

The process between Paceline and a command: ``python -I -S _supervisor.py REPORT_FD COMMAND...``.
It adopts orphans, so a child that left its session, cleared its environment or forked twice is
still found. The end of its standard input (Paceline asked, or died) ends the command. It prints
nothing: output goes from the command straight to Paceline, the outcome goes to REPORT_FD.
Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 1.0  # for helpers that clean up after their parent, such as resource trackers
_END_S = 10.0


def descendants(root: int) -> list[int]:
    """Return the processes below one process, zombies left out (Linux; elsewhere none)."""
    children: dict[int, list[int]] = {}
    zombies: set[int] = set()
    for pid, parent, state in _processes():
        children.setdefault(parent, []).append(pid)
        if state in "ZX":
            zombies.add(pid)
    found: list[int] = []
    below = [root]
    while below:
        below = [pid for parent in below for pid in children.get(parent, [])]
        found += below
    return [pid for pid in found if pid not in zombies]


def _processes() -> Iterator[tuple[int, int, str]]:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # the name, in parentheses, may hold anything: the rest begins after the last one
            state, parent = entry.read_text(errors="replace").rpartition(")")[2].split()[:2]
            yield int(entry.parent.name), int(parent), state


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap(main: int) -> tuple[bool, int | None]:
    """Collect ended children; return whether any is left, and the main one's exit code."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, code
        if pid == 0:
            return True, code
        if pid == main:
            code = os.waitstatus_to_exitcode(status)


def _wait(main: int, control: int, wakeups: int) -> int | None:
    """Wait for the end of the command or of the control pipe; return its exit code, if ended."""
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    poll.register(wakeups, select.POLLIN)
    while True:
        _, code = _reap(main)
        if code is not None:
            return code
        for descriptor, _ in poll.poll():
            if descriptor == control or signal.SIGTERM in os.read(wakeups, 4096):
                return None


def _settle(main: int) -> None:
    """Let helpers of an ended command end by themselves."""
    end = time.monotonic() + _GRACE_S
    while _reap(main)[0] and time.monotonic() < end:
        time.sleep(0.01)


def _end_all(main: int) -> int:
    """Kill every descendant; return how many there were."""
    seen: set[int] = set()
    end = time.monotonic() + _END_S
    while time.monotonic() < end:
        for pid in descendants(os.getpid()):
            seen.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(main, signal.SIGKILL)  # where there is no /proc
        if not _reap(main)[0]:
            break
        time.sleep(0.005)
    return len(seen)


def _supervise(command: list[str]) -> dict[str, object]:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    _adopt_orphans()
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        return {"error": f"{error.strerror}: {command[0]}"}
    code = _wait(process.pid, sys.stdin.fileno(), read_end)
    if code is not None:
        _settle(process.pid)
    return {"exit_code": code, "n_ended": _end_all(process.pid)}


def _main() -> None:
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    outcome = _supervise(sys.argv[2:])
    with contextlib.suppress(BrokenPipeError):  # Paceline is gone: nobody to tell
        os.write(report, json.dumps(outcome).encode())
    os._exit(0)  # nothing to clean up, and `process` was waited for above


if __name__ == "__main__":
    _main()
