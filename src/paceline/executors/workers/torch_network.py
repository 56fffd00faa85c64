"""Networks of PyTorch from operations (docs/executors.md) or from the user's own file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from paceline.executors.workers.protocol import RefusedError, is_out_of_memory
    from paceline.executors.workers.torch_attention import (
        CausalAttention,
        Embedding,
        Experts,
        RotaryAttention,
        SelfAttention,
    )
else:
    from protocol import (
        RefusedError,
        is_out_of_memory,
    )  # a neighbour: Paceline is not installed here
    from torch_attention import (
        CausalAttention,
        Embedding,
        Experts,
        RotaryAttention,
        SelfAttention,
    )

Operation = Mapping[str, Any]
_ACTIVATIONS = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "leaky_relu": nn.LeakyReLU,
}
_CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_MAXIMA = {1: nn.MaxPool1d, 2: nn.MaxPool2d, 3: nn.MaxPool3d}
_AVERAGES = {1: nn.AvgPool1d, 2: nn.AvgPool2d, 3: nn.AvgPool3d}
_BATCH_NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


def seed_everything(seed: int) -> None:
    """Seed all generators; `torch.manual_seed` takes milliseconds where there is no CUDA."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def build(job: Mapping[str, Any]) -> nn.Module:
    """Return the network of a job, its weights drawn from the job's seed.

    Raises
    ------
    RefusedError
        When it cannot be built.
    """
    seed_everything(job["seed"])
    try:
        if job.get("module"):
            return _from_file(**job["module"])
        return _share_weights(_chain(job["network"]))
    except RefusedError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        shown = " ".join(str(error).split())
        raise RefusedError(
            f"The network must be one that PyTorch can build, but: {type(error).__name__}: {shown}"
        ) from error


def timed_parts(network: nn.Module, job: Mapping[str, Any]) -> Iterator[tuple[str, nn.Module]]:
    """Return what is timed as a layer: every operation, or every module without children."""
    if job.get("module"):
        return ((n or "network", m) for n, m in network.named_modules() if not any(m.children()))
    return operations_of(network)


def replace_part(network: nn.Module, part: nn.Module, new: nn.Module) -> None:
    """Put a module in the place of another one within a network."""
    for parent in network.modules():
        for name, child in list(parent.named_children()):
            if child is part:
                setattr(parent, name, new)
                return


def operations_of(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Return every operation with its name, in the order of the network."""
    for module in network.modules():
        name = getattr(module, "operation_name", None)
        if name is not None:
            yield name, module


def _from_file(file: str, name: str, arguments: Mapping[str, Any] | None = None) -> nn.Module:
    path = Path(file).resolve()
    if not path.is_file():
        raise RefusedError(f"`module.file` must be a Python file, but {file} is none.")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # the user's file may import its neighbours
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    # not imported: byte code that is kept misses edits within the same second
    exec(compile(path.read_bytes(), str(path), "exec", dont_inherit=True), module.__dict__)
    if not hasattr(module, name):
        raise RefusedError(f"`module.name` must be defined in {file}, but {name!r} is not.")
    network = getattr(module, name)(**(arguments or {}))
    assert isinstance(network, nn.Module), f"{name} must give a torch.nn.Module."
    return network


def _chain(operations: Sequence[Operation]) -> nn.Sequential:
    return nn.Sequential(*(_part(operation) for operation in operations))


def _part(operation: Operation) -> nn.Module:
    kind = operation["op"]
    if kind not in _BUILDERS:
        raise RefusedError(f"`op` must be one of {', '.join(_BUILDERS)}, but got {kind!r}.")
    module = _BUILDERS[kind](operation)
    module.operation_name = operation["name"]
    return module


def _pair(operation: Operation) -> tuple[int, int]:
    padding = operation.get("padding") or (0, 0)
    return (padding, padding) if isinstance(padding, int) else (int(padding[0]), int(padding[1]))


class _Padded(nn.Module):
    """An operation after padding that differs before and after."""

    def __init__(self, inner: nn.Module, pads: Sequence[int]) -> None:
        super().__init__()
        self.inner, self.pads = inner, list(pads)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(functional.pad(x, self.pads))  # type: ignore[no-any-return]


def _conv(operation: Operation) -> nn.Module:
    before, after = _pair(operation)
    conv = _CONVOLUTIONS[operation["dims"]](
        operation["in"],
        operation["out"],
        operation["kernel"],
        stride=operation.get("stride", 1),
        padding=before if before == after else 0,
        bias=operation.get("bias", True),
    )
    return conv if before == after else _Padded(conv, (before, after) * operation["dims"])


def _pool(operation: Operation) -> nn.Module:
    before, after = _pair(operation)
    if before != after:
        raise RefusedError(f"`padding` of a pool must have equal halves, but got {operation}.")
    sizes = {"stride": operation["stride"], "padding": before}
    if operation.get("kind", "max") == "max":
        maximum: nn.Module = _MAXIMA[operation["dims"]](operation["kernel"], **sizes)
        return maximum
    kind = _AVERAGES[operation["dims"]]
    average: nn.Module = kind(operation["kernel"], count_include_pad=False, **sizes)
    return average


class _Sleep(nn.Module):
    """Wait for some time per sample in each pass: planted work that needs no processor."""

    def __init__(self, operation: Operation) -> None:
        super().__init__()
        self.times = operation.get("forward_s", 0.0), operation.get("backward_s", 0.0)

    def forward(self, x: Tensor) -> Tensor:
        return _Waits.apply(x, *self.times)  # type: ignore


class _Waits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, forward_s: float, backward_s: float) -> Tensor:
        ctx.backward_s = backward_s
        if x.device.type != "meta":
            time.sleep(forward_s * len(x))
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        time.sleep(ctx.backward_s * len(gradients[0]))
        return gradients[0], None, None


class _GlobalPool(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(2).mean(2)


class _Residual(nn.Module):
    def __init__(self, operation: Operation) -> None:
        super().__init__()
        self.body = _chain(operation["body"])
        self.shortcut = _chain(operation.get("shortcut") or ())

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.shortcut(x)  # type: ignore[no-any-return]


class _Product(_Residual):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) * self.shortcut(x)  # type: ignore[no-any-return]


def _linear(operation: Operation) -> nn.Module:
    linear = nn.Linear(operation["in"], operation["out"], bias=operation.get("bias", True))
    linear.tied = operation.get("tied", "")
    return linear


def _share_weights(network: nn.Module) -> nn.Module:
    """Let tied maps use the weight of their embedding, drawn small as GPT-2 does."""
    parts: dict[str, Any] = dict(operations_of(network))
    for part in parts.values():
        if tied := getattr(part, "tied", ""):
            part.weight = parts[tied].tokens.weight
            nn.init.normal_(part.weight, std=0.02)
    return network


_BUILDERS: dict[str, Callable[[Operation], nn.Module]] = {
    "conv": _conv,
    "pool": _pool,
    "linear": _linear,
    "activation": lambda op: _ACTIVATIONS[op["function"]](),
    "dropout": lambda op: nn.Dropout(op["share"]),
    "flatten": lambda op: nn.Flatten(),
    "batch_norm": lambda op: _BATCH_NORMS[op["dims"]](op["features"]),
    "global_pool": lambda op: _GlobalPool(),
    "residual": _Residual,
    "product": _Product,
    "self_attention": SelfAttention,
    "embedding": Embedding,
    "group_norm": lambda op: nn.GroupNorm(op.get("groups", 4), op["features"]),
    "layer_norm": lambda op: nn.LayerNorm(op["features"]),
    "rms_norm": lambda op: nn.RMSNorm(op["features"], eps=1e-5),
    "causal_attention": CausalAttention,
    "rotary_attention": RotaryAttention,
    "experts": Experts,
    "sleep": _Sleep,
}
