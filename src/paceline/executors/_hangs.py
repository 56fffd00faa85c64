"""Who holds up the others when workers are not through in time, and where it is."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from paceline.executors._process import WorkerProcess

_ANSWER_S = 1.0
_STACK = "(most recent call first):"
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>\S+)')
# innermost calls of a worker that waits for others
_WAITING_FILES = ("torch_unlocked.py", "torch_halo.py", "torch_phases.py")
_WAITING_NAMES = ("_engine_run_backward",)  # a backward pass that ends with an exchange


@dataclass(frozen=True, slots=True)
class _Whereabouts:
    """Where a worker is; `words` is empty when nothing is known."""

    words: str
    is_waiting: bool = False


def find_hung(
    workers: Sequence[WorkerProcess], silent: Sequence[int], first_rank: int = 0
) -> tuple[list[int], str]:
    """Return which of the silent workers hold up the others, and where they are, in words.

    Those do that are stopped, give no sign of life, or are in something other than an exchange
    with others; all when that tells nobody apart. `first_rank` is where counting begins in words.
    """
    for rank in silent:
        workers[rank].ask_for_stack()
    end = time.monotonic() + _ANSWER_S
    found = {rank: _look(workers[rank], end) for rank in silent}
    hung = [rank for rank in silent if not found[rank].is_waiting] or list(silent)
    words = "; ".join(f"worker {first_rank + r} {found[r].words}" for r in hung if found[r].words)
    return hung, words


def _look(worker: WorkerProcess, end: float) -> _Whereabouts:
    if worker.state() in ("T", "t"):
        return _Whereabouts("was stopped")
    while _STACK not in worker.log_tail and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.01)  # for the rest of its lines
    frames = list(_FRAME.finditer(worker.log_tail.rpartition(_STACK)[2]))
    if not frames:
        return _Whereabouts("")
    path, name = PurePath(frames[0]["file"]), frames[0]["name"]
    waits = "/torch/distributed/" in str(path) or path.name in _WAITING_FILES
    waits |= name in _WAITING_NAMES
    if waits:
        return _Whereabouts("waited for others", is_waiting=True)
    return _Whereabouts(f"was in `{name}`, {path.name}, line {frames[0]['line']}")
