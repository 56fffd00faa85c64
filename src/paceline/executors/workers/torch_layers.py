"""Times of layers from hooks that are set from outside.

Every moment belongs to one layer: forward by hooks around each layer (the way to a layer is part
of it), backward by hooks on each layer's output, which run just before the gradients of that layer
are computed. What belongs to none is the loss. What the hooks themselves take is kept apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn


class LayerTimes:
    """Collects the times of layers, step by step.

    Parameters
    ----------
    parts
        Layers by name, in the order of the network.
    device
        Where they run: on other devices than the CPU every hook waits for the device.
    clock
        What the time is; by default that on the wall.
    """

    def __init__(
        self,
        parts: Iterable[tuple[str, nn.Module]],
        device: torch.device,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self.names: list[str] = []
        self.forward: dict[str, list[float]] = {}
        self.backward: dict[str, list[float]] = {}
        self.own_s = 0.0  # what the hooks took in this phase
        self._waits = device.type == "cuda"
        self._now: dict[str, float] = {}
        self._open: list[str] = []
        self._last = 0.0
        self._handles: list[Any] = []
        for name, module in parts:
            self.names.append(name)
            self._handles.append(module.register_forward_pre_hook(self._entering(name)))
            self._handles.append(module.register_forward_hook(self._leaving(name)))

    def begin(self) -> None:
        """Start a phase."""
        self._now, self._open, self.own_s = {}, [], 0.0
        self._last = self._time()

    def end_forward(self) -> None:
        """Keep the forward times of a step."""
        self._keep(self.forward)

    def end_backward(self) -> None:
        """Keep the backward times of a step."""
        if self._open:
            self._credit(self._open[-1])
        self._keep(self.backward)

    def close(self) -> None:
        """Take all hooks off."""
        for handle in self._handles:
            handle.remove()

    def _keep(self, times: dict[str, list[float]]) -> None:
        for name in self.names:
            times.setdefault(name, []).append(self._now.get(name, 0.0))

    def _time(self) -> float:
        if self._waits:
            torch.cuda.synchronize()
        return self._clock()

    def _credit(self, name: str) -> float:
        now = self._time()
        self._now[name] = self._now.get(name, 0.0) + now - self._last
        return now

    def _resume(self, since: float) -> None:
        self._last = self._clock()
        self.own_s += self._last - since

    def _entering(self, name: str) -> Any:
        def hook(module: nn.Module, inputs: Any) -> None:
            now = self._credit(self._open[-1] if self._open else name)
            self._open.append(name)
            self._resume(now)

        return hook

    def _leaving(self, name: str) -> Any:
        def arriving(gradient: Tensor) -> None:
            now = self._credit(self._open[-1]) if self._open else self._time()
            self._open = [name]
            self._resume(now)

        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            now = self._credit(name)
            self._open.pop()
            # a layer that hands its input on has no gradients of its own
            new = isinstance(output, Tensor) and not (inputs and output is inputs[0])
            if new and output.requires_grad:
                output.register_hook(arriving)
            self._resume(now)

        return hook
