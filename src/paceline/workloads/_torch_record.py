"""What PyTorch does while a module runs without data: operations, FLOP, and what is kept.

Imported only where a module is traced: the rest of Paceline needs no PyTorch.
"""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

Key = tuple[str, int]  # of a place: path of the module, and how many calls began or ended before


@dataclass(slots=True)
class Place:
    """Operations of one call of a module, or between two calls inside it."""

    path: str
    module: nn.Module | None
    is_leaf: bool
    operations: list[str] = field(default_factory=list)
    views_only: bool = True
    reads: dict[int, Tensor] = field(default_factory=dict)
    writes: dict[int, Tensor] = field(default_factory=dict)
    weights: dict[int, Tensor] = field(default_factory=dict)
    buffers: dict[int, Tensor] = field(default_factory=dict)
    forward_flop: int = 0
    backward_flop: int = 0
    given: Tensor | None = None  # of a leaf: what it was called with, and what it returned
    returned: Tensor | None = None
    n_products: int = 0  # of the first batch of products of matrices


def storage(tensor: Tensor) -> int:
    """Return what tells memory apart; views share it."""
    return int(tensor.untyped_storage()._cdata)


def without_data(module: nn.Module, device: str) -> nn.Module:
    """Return a copy of a module all of whose tensors are empty ones on `device`."""
    memo: dict[int, Any] = {}
    plain = [v for m in module.modules() for v in vars(m).values() if isinstance(v, Tensor)]
    for tensor in [*module.parameters(), *module.buffers(), *plain]:
        empty = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
        if isinstance(tensor, nn.Parameter):
            empty = nn.Parameter(empty, requires_grad=tensor.requires_grad)
        memo[id(tensor)] = empty
    return copy.deepcopy(module, memo).train()


class Whereabouts:
    """Knows in which module the run is."""

    def __init__(self, module: nn.Module) -> None:
        self._stack: list[tuple[str, nn.Module | None]] = [("", None)]
        self._clock = 0
        self._handles: list[Any] = []
        self.ends: dict[Key, list[Tensor | None]] = {}
        for path, part in module.named_modules():
            self._handles.append(part.register_forward_pre_hook(self._enter(path)))
            self._handles.append(part.register_forward_hook(self._leave, always_call=True))

    @property
    def key(self) -> Key:
        """The present place."""
        return self._stack[-1][0], self._clock

    @property
    def module(self) -> nn.Module | None:
        """The innermost module that is running."""
        return self._stack[-1][1]

    def close(self) -> None:
        """Take all hooks off."""
        for handle in self._handles:
            handle.remove()

    def _enter(self, path: str) -> Any:
        def hook(module: nn.Module, inputs: Any) -> None:
            self._stack.append((path, module))
            self._clock += 1
            self.ends[self.key] = [_first_tensor(inputs), None]

        return hook

    def _leave(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self.key in self.ends:  # no other call between its begin and its end
            self.ends[self.key][1] = _first_tensor(output)
        self._stack.pop()
        self._clock += 1

    @contextmanager
    def inside(self, path: str) -> Iterator[None]:
        """Say that what follows belongs to something that is no module."""
        self._stack.append((path, None))
        self._clock += 1
        try:
            yield
        finally:
            self._stack.pop()
            self._clock += 1


def _first_tensor(values: Any) -> Tensor | None:
    return next((v for v in tree_leaves(values) if isinstance(v, Tensor)), None)


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every operation of both passes at its place."""

    def __init__(self, module: nn.Module, where: Whereabouts, given: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.places: dict[Key, Place] = {}
        self.is_backward = False
        self.failing = ""  # the operation that has begun and not ended, and where
        self._where = where
        self._weights = {storage(p): p for p in module.parameters()}
        self._buffers = {storage(b): b for b in module.buffers()}
        self._flowing = {storage(given)}  # what the input or a weight went into
        self._alive: list[Tensor] = [given]  # or memory would be told apart wrongly
        self._numbers: list[int] = []
        self._keys: list[Key] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        node: Any = torch._C._current_autograd_node()
        path = self._where.key[0]
        self.failing = f"the operation '{func}'" + (f" in {path!r}" if path else "")
        result = func(*args, **kwargs)
        self.failing = ""
        count = flop_registry.get(func._overloadpacket)
        flop = int(count(*args, **kwargs, out_val=result)) if count else 0
        if node is not None:
            self._backward_place(node).backward_flop += flop
        elif not self.is_backward:
            self._note(func, tree_leaves((args, kwargs)), tree_leaves(result), flop)
        return result

    def _backward_place(self, node: Any) -> Place:
        """Return where the forward operation ran whose gradient is computed."""
        i = bisect_right(self._numbers, node._sequence_nr()) - 1
        return self.places[self._keys[max(i, 0)]]

    def _note(self, func: Any, given: list[Any], result: list[Any], flop: int) -> None:
        place = self._place()
        place.forward_flop += flop
        place.operations.append(func._overloadpacket.__name__)
        place.views_only &= bool(func.is_view)
        if func._overloadpacket is torch.ops.aten.bmm and not place.n_products:
            place.n_products = len(given[0])
        flows = [self._read(place, t) for t in given if isinstance(t, Tensor)]
        for tensor in result:
            if isinstance(tensor, Tensor):
                self._alive.append(tensor)
                self._write(place, tensor, any(flows), bool(func.is_view))

    def _place(self) -> Place:
        key, module = self._where.key, self._where.module
        number = torch._C._autograd._get_sequence_nr() - 1  # of this operation's gradient
        if not self._numbers or number > self._numbers[-1]:  # else it has none of its own
            self._numbers.append(number)
            self._keys.append(key)
        if key not in self.places:
            leaf = module is not None and not any(module.children())
            self.places[key] = Place(key[0], module, leaf)
        return self.places[key]

    def _read(self, place: Place, tensor: Tensor) -> bool:
        key = storage(tensor)
        if key in self._weights:
            place.weights[key] = self._weights[key]
            return True
        if key in self._buffers:
            place.buffers[key] = self._buffers[key]
        elif key in self._flowing and key not in place.writes:
            place.reads.setdefault(key, tensor)
        return key in self._flowing

    def _write(self, place: Place, tensor: Tensor, flows: bool, is_view: bool) -> None:
        key = storage(tensor)
        if not flows or key in self._weights or key in self._buffers:
            return
        self._flowing.add(key)
        if not is_view:
            place.writes[key] = tensor


class Keeper(saved_tensors_hooks):
    """Adds up at its place what autograd keeps, each memory once, weights and buffers never."""

    def __init__(self, module: nn.Module, where: Whereabouts) -> None:
        self.kept: dict[Key, int] = {}
        self._where = where
        self._seen = {storage(t) for t in [*module.parameters(), *module.buffers()]}
        self._alive: list[Tensor] = []
        super().__init__(self._pack, lambda tensor: tensor)

    def _pack(self, tensor: Tensor) -> Tensor:
        self._alive.append(tensor)
        key = storage(tensor)
        if key not in self._seen:
            self._seen.add(key)
            size = tensor.untyped_storage().nbytes()
            self.kept[self._where.key] = self.kept.get(self._where.key, 0) + size
        return tensor
