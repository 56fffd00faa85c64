"""Where the time of a divided step goes: both passes, exchanges and the update, from outside.

Modules are watched by hooks, the backward pass and everything that waits for other workers by
functions put in their place while the watch lasts. Every moment belongs to one phase: an exchange
within a pass counts as exchange. Exchanges include waiting for the others, so a pipeline's bubble
is in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

EXCHANGE = "transfer"
# on CPUs all waiting is in `Work.wait`; on GPUs these are waited for where they are called
_CALLS = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "broadcast", "barrier")
_MERGED = {EXCHANGE: ["wait"], "io": ["md", "h2d"]}


class PhaseTimes:
    """Times the phases of steps.

    Parameters
    ----------
    network
        What this worker holds.
    device
        Where it computes: on other devices than the CPU every change of phase waits for it.

    Attributes
    ----------
    phases
        Seconds by phase, one mapping per step.
    step_s
        Of the steps as wholes.
    """

    merged = _MERGED

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self.phases: list[dict[str, float]] = []
        self.step_s: list[float] = []
        self._network, self._waits = network, device.type == "cuda"
        self._open: list[str] = []
        self._last = 0.0
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> PhaseTimes:
        for part in _parts(self._network):
            hooks = (
                part.register_forward_pre_hook(lambda *_: self._begin("forward")),
                part.register_forward_hook(lambda *_: self._end(), always_call=True),
            )
            self._undo += [hook.remove for hook in hooks]
        self._replace(torch.autograd, "backward", "backward")
        for name in _CALLS:
            self._replace(dist, name, EXCHANGE)
        self._replace(dist.Work, "wait", EXCHANGE)
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            self._undo.pop()()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Time one step."""
        self.phases.append({})
        begin = self._last = self._now()
        yield
        self.step_s.append(self._now() - begin)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what happens inside as that phase."""
        self._begin(name)
        try:
            yield
        finally:
            self._end()

    def _begin(self, name: str) -> None:
        self._credit()
        inside = self._open[-1] if self._open else ""
        # layers that are computed again for the backward pass belong to it
        self._open.append(inside if inside == "backward" and name == "forward" else name)

    def _end(self) -> None:
        self._credit()
        self._open.pop()

    def _credit(self) -> None:
        now = self._now()
        if self._open and self.phases:
            times = self.phases[-1]
            times[self._open[-1]] = times.get(self._open[-1], 0.0) + now - self._last
        self._last = now

    def _now(self) -> float:
        if self._waits:
            torch.cuda.synchronize()
        return time.perf_counter()

    def _replace(self, home: Any, name: str, phase: str) -> None:
        plain = getattr(home, name)

        def timed(*args: Any, **keywords: Any) -> Any:
            with self.phase(phase):
                return plain(*args, **keywords)

        setattr(home, name, timed)
        self._undo.append(lambda: setattr(home, name, plain))


def _parts(network: nn.Module) -> Iterator[nn.Module]:
    """Return what runs as a whole: parts of a chain may be run without the chain."""
    if isinstance(network, (nn.Sequential, nn.ModuleList)):
        for part in network:
            yield from _parts(part)
    else:
        yield network
