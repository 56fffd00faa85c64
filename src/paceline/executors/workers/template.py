"""Fork workers from a process that has imported its framework, which takes seconds.

Standard library only. The parent holds the other end of a socket: each request for a worker comes
with its three streams, and is answered with its process id. A worker that ended stays a zombie
until the parent lets it go, so that its id is not given to another process.
"""

from __future__ import annotations

import gc
import json
import os
import socket
from typing import Any

VARIABLE = "PACELINE_TEMPLATE"  # names the descriptor of the socket
MAX_MESSAGE_BYTES = 1 << 16


def fork_on_request() -> bool:
    """Fork as often as asked; return true in every worker, never in the template itself.

    Returns false at once when this process is no template.
    """
    descriptor = os.environ.pop(VARIABLE, "")
    if not descriptor:
        return False
    gc.collect()
    gc.freeze()  # looking through what all workers share would copy it
    control = socket.socket(fileno=int(descriptor))
    control.sendall(b'{"ready": true}')
    while True:
        message, streams, _, _ = socket.recv_fds(control, MAX_MESSAGE_BYTES, 3)
        if not message:
            os._exit(0)  # the parent is gone, or needs no more workers
        request = json.loads(message)
        pid = os.fork() if "fork" in request else -1
        if pid == 0:
            control.close()
            _become_worker(streams, request["fork"])
            return True
        for stream in streams:
            os.close(stream)
        answer = {"pid": pid} if pid > 0 else {"code": _code(**request)}
        control.sendall(json.dumps(answer).encode())


def _become_worker(streams: list[int], variables: dict[str, str]) -> None:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.update(variables)


def _code(pid: int, release: bool) -> Any:
    """Return how a worker ended (negative: the signal), or None; wait for it to release it."""
    flags = os.WEXITED if release else os.WEXITED | os.WNOHANG | os.WNOWAIT
    state = os.waitid(os.P_PID, pid, flags)
    if state is None:
        return None
    return state.si_status if state.si_code == os.CLD_EXITED else -state.si_status
