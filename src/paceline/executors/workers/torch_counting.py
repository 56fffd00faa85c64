"""Count what a step sends and holds, as PyTorch's dispatcher sees it."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_COLLECTIVES = ("c10d", "_c10d_functional")


class Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums payload bytes of the collectives that this worker calls, by kind.

    The payload of a collective is the tensor that it works on: the reduced one, the gathered
    one, the sent one.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.payload: dict[str, int] = defaultdict(int)
        self.calls: dict[str, int] = defaultdict(int)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Look at one operation."""
        if func.namespace in _COLLECTIVES:
            kind = _kind(func.__name__)
            if kind:
                self.payload[kind] += _payload(kind, args)
                self.calls[kind] += 1
        return func(*args, **(kwargs or {}))


def _kind(name: str) -> str:
    """Return what an operation of c10d does; empty for those that send nothing."""
    plain = name.split(".")[0].strip("_").replace("_", "")
    kinds = {
        "reducescatter": "reduce_scatter",
        "allreduce": "all_reduce",
        "allgather": "all_gather",
        "alltoall": "all_to_all",
        "broadcast": "broadcast",
        "recv": "receive",
        "send": "send",
        "gather": "gather",
        "scatter": "scatter",
        "reduce": "reduce",
    }
    return next((kind for sign, kind in kinds.items() if plain.startswith(sign)), "")


def _payload(kind: str, args: Sequence[Any]) -> int:
    """Return the largest tensor among the arguments, or sum of tensors in a list."""
    return max((_bytes(argument) for argument in args), default=0)


def _bytes(thing: Any) -> int:
    if isinstance(thing, Tensor):
        return thing.numel() * thing.element_size()
    if isinstance(thing, (list, tuple)):
        return sum(_bytes(part) for part in thing)
    return 0


class StoragePeak(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the sum of all tensor storages that are alive, and its peak.

    Parameters
    ----------
    known
        Tensors that are alive already.
    """

    def __init__(self, known: Sequence[Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._sizes: dict[int, int] = {}
        for tensor in known:
            self._see(tensor)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Follow the outputs of one operation."""
        self._look_again()
        out = func(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._see(tensor)
        return out

    def _see(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._alive:
            self._alive[key] = weakref.ref(storage, self._forget(key))
        self._count(key, storage.nbytes())

    def _look_again(self) -> None:
        """Count storages anew that were resized, which no operation tells (FSDP does so)."""
        for key, alive in list(self._alive.items()):
            storage = alive()
            if storage is not None:
                self._count(key, storage.nbytes())

    def _count(self, key: int, n_bytes: int) -> None:
        self.now += n_bytes - self._sizes.get(key, 0)
        self._sizes[key] = n_bytes
        self.peak = max(self.peak, self.now)

    def _forget(self, key: int) -> Callable[[Any], None]:
        def forget(_: Any) -> None:
            self._alive.pop(key, None)
            self.now -= self._sizes.pop(key, 0)

        return forget
