"""Write a line whenever an optimizer has stepped: ``{"rank", "step", "t_ns", "optimizer"}``.

One file per process in the folder `PACELINE_STEPS`. A step costs one clock reading and one
append; lines are written once a second and at the end. Standard library only, besides torch's
own `register_optimizer_step_post_hook`.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from typing import Any

_AFTER = "torch.optim.optimizer"
_FLUSH_NS = 1_000_000_000
_FLUSH_STEPS = 2000
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")


class _Finder:
    """Lets the other finders find torch's optimizers, and acts after their import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _AFTER:
            return None
        sys.meta_path.remove(self)  # once, and not again from below
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _act_after(spec.loader)
                return spec
        return None


def _act_after(loader: Any) -> None:
    run = loader.exec_module

    def run_and_register(module: Any) -> None:
        run(module)
        register = getattr(module, "register_optimizer_step_post_hook", None)
        if register is not None:  # torch before 2.0 has none
            _Recorder(register)

    # on this one loader, whose class and other methods stay what they are
    loader.exec_module = run_and_register


class _Recorder:
    """Keeps clock readings and writes them now and then."""

    def __init__(self, register: Any) -> None:
        self._events: list[tuple[int, int]] = []
        self._n_written = 0
        self._due_ns = 0
        self._is_set_up = False
        self._file: Any = None
        self._rank = 0
        register(self.note)
        atexit.register(self.flush)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def note(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Take the time: called by torch after every step of every optimizer."""
        now_ns = time.perf_counter_ns()
        events = self._events
        events.append((now_ns, id(optimizer)))
        if now_ns > self._due_ns or len(events) > _FLUSH_STEPS:
            self.flush()
            self._due_ns = now_ns + _FLUSH_NS

    def flush(self) -> None:
        """Write what has been noted; a full disk or a closed folder must not stop training."""
        if not self._events:
            return
        events, self._events = self._events, []
        try:
            self._set_up()
            self._file.write("".join(self._lines(events)))
            self._file.flush()
        except (OSError, ValueError):
            pass
        self._n_written += len(events)

    def _lines(self, events: list[tuple[int, int]]) -> list[str]:
        return [
            '{"rank": %d, "step": %d, "t_ns": %d, "optimizer": %d}\n'  # noqa: UP031  cheapest
            % (self._rank, self._n_written + index, now_ns, optimizer)
            for index, (now_ns, optimizer) in enumerate(events)
        ]

    def _set_up(self) -> None:
        """Open the file at the first step, when the process knows its rank."""
        if self._is_set_up:
            return
        self._is_set_up = True
        self._rank = _rank()
        folder = os.environ.get("PACELINE_STEPS", "")
        name = "steps-%d-%d.jsonl" % (self._rank, os.getpid())  # noqa: UP031
        self._file = open(os.path.join(folder, name), "a")  # noqa: PTH118, PTH123, SIM115
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:  # such children end without `atexit`
            multiprocessing.Finalize(None, self.flush, exitpriority=10)

    def _forget(self) -> None:
        """Begin anew in a forked child: what was noted is its parent's."""
        self._events = []
        self._n_written = 0
        self._is_set_up = False
        self._file = None


def _rank() -> int:
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    for name in _RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def install() -> None:
    """Wait for torch's optimizers."""
    sys.meta_path.insert(0, _Finder())
