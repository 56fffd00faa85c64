"""Spatial parallelism: height, width or depth of every sample dealt out, rims exchanged."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.nn import functional

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.torch_divided import Division
    from paceline.executors.workers.torch_exchange import all_reduce_gradients
    from paceline.executors.workers.torch_halo import Halo, SumOverParts, Window, bounds
    from paceline.executors.workers.torch_network import operations_of, replace_part
else:
    import protocol  # neighbours: Paceline is not installed here
    from torch_divided import Division
    from torch_exchange import all_reduce_gradients
    from torch_halo import Halo, SumOverParts, Window, bounds
    from torch_network import operations_of, replace_part

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_POOLS = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Grid:
    """Workers of a replica as blocks of space.

    Parameters
    ----------
    division
        Of the job; its ``grid`` says into how many parts each axis is cut.
    place
        Where this worker stands.
    device
        Kind of device that the mesh is of.
    """

    def __init__(self, division: dict[str, Any], place: Any, device: torch.device) -> None:
        self.parts = tuple(division["grid"])
        names = ("data", "pipeline", *(f"axis{i}" for i in range(len(self.parts))))
        ranks = place.ranks.reshape(*place.ranks.shape[:2], *self.parts)
        mesh = DeviceMesh(device.type, ranks, mesh_dim_names=names)
        self.groups = [mesh.get_group(f"axis{i}") for i in range(len(self.parts))]
        self.group = place.group("split")
        self.places = list(itertools.product(*(range(n) for n in self.parts)))
        self.here = self.places[place.part]

    def block(self, x: Tensor) -> Tensor:
        """Return this worker's block of whole samples."""
        for axis, (n_parts, part) in enumerate(zip(self.parts, self.here, strict=True), 2):
            first, end = bounds(x.shape[axis], n_parts, part)
            x = x.narrow(axis, first, end - first)
        return x.contiguous()

    def gather(self, x: Tensor) -> Tensor:
        """Return whole samples from all blocks; all must be equally large."""
        return GatherBlocks.apply(x, self)  # type: ignore


class GatherBlocks(torch.autograd.Function):
    """All blocks in their places; going back, the gradient of one's own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, grid: Grid) -> Tensor:
        """Gather the blocks of a replica at once."""
        ctx.grid = grid
        blocks = x.new_empty((len(grid.places), *x.shape))
        dist.all_gather_into_tensor(blocks.flatten(0, 1), x.contiguous(), group=grid.group)
        parts = list(blocks.unbind(0))
        for axis in range(len(grid.parts) - 1, -1, -1):  # the last axis varies fastest
            n = grid.parts[axis]
            parts = [torch.cat(parts[i : i + n], dim=axis + 2) for i in range(0, len(parts), n)]
        return parts[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the block of the gradient."""
        return ctx.grid.block(gradients[0]), None


class SpatialDivision(Division):
    """The leading layers on blocks of space; behind them every worker of a replica does all."""

    def divide(self, network: nn.Module) -> None:
        """Let the layers that the plan names work on blocks."""
        if not isinstance(network, nn.Sequential):
            raise protocol.RefusedError("Space is divided in networks that are chains of parts.")
        self.grid = Grid(self.division, self.place, self.device)
        self.n_leading = self.division["n_leading"]
        shapes = _shapes(network, self.job["sample"]["shape"])
        self._check(shapes[str(network[self.n_leading - 1].operation_name)][1])
        for name, operation in list(operations_of(network[: self.n_leading])):
            replace_part(network, operation, _on_blocks(operation, shapes[name], self.grid))
        self.network = network
        self.shared = {id(p) for p in network[self.n_leading :].parameters()}

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train on this worker's blocks, then add up gradients over all workers of the layers."""
        loss = self.accumulate(self._outputs, inputs, targets)
        for parameter in self.parameters():
            if id(parameter) in self.shared and parameter.grad is not None:
                parameter.grad.div_(self.place.n_parts)  # the same on all parts
        all_reduce_gradients(self.parameters(), None)
        return loss.div(self.place.n_parts)

    def _outputs(self, piece: Tensor) -> Tensor:
        blocks = self.network[: self.n_leading](self.grid.block(piece))  # type: ignore[index]
        rest = self.network[self.n_leading :]  # type: ignore[index]
        return rest(self.grid.gather(blocks))  # type: ignore[no-any-return]

    def _check(self, extents: Sequence[int]) -> None:
        for n, n_parts in zip(extents, self.grid.parts, strict=True):
            if n % n_parts:
                raise protocol.RefusedError(
                    f"The last layer on blocks must have extents that its grid divides, but "
                    f"{tuple(extents)} is cut into {self.grid.parts}."
                )


class _OnBlocks(nn.Module):
    """A convolution or a pooling that fetches the rims it needs."""

    def __init__(self, inner: Any, windows: Sequence[Window], grid: Grid, filling: float) -> None:
        super().__init__()
        self.inner, self.windows, self.grid, self.filling = inner, windows, grid, filling
        inner.padding = (0,) * len(windows) if isinstance(inner, _CONVOLUTIONS) else 0

    def forward(self, x: Tensor) -> Tensor:
        pads: list[int] = []
        for i, window in enumerate(self.windows):
            n_parts, part = self.grid.parts[i], self.grid.here[i]
            if n_parts > 1:
                x = Halo.apply(x, window, i + 2, self.grid.groups[i])  # type: ignore
            pads = [*window.pads(n_parts, part), *pads]  # the last axis comes first
            x = _trim(x, i + 2, window, n_parts)
        if any(pads):
            x = functional.pad(x, pads, value=self.filling)
        return self.inner(x)  # type: ignore[no-any-return]


class _NormOnBlocks(nn.Module):
    """Group or batch normalisation whose means are over all blocks of a sample."""

    def __init__(self, inner: Any, extents: Sequence[int], grid: Grid) -> None:
        super().__init__()
        self.inner, self.grid = inner, grid
        self.n_places = math.prod(extents)  # of a whole sample

    def forward(self, x: Tensor) -> Tensor:
        inner = self.inner
        is_batch = isinstance(inner, _BATCH_NORMS)
        axes = (0, *range(2, x.dim())) if is_batch else (2,)
        y = x if is_batch else x.reshape(len(x), inner.num_groups, -1)
        together = len(x) if is_batch else x.shape[1] // inner.num_groups
        count = together * self.n_places
        mean = self._sum(y.sum(axes, keepdim=True)) / count
        variance = self._sum((y - mean).square().sum(axes, keepdim=True)) / count
        if is_batch:
            self._remember(mean.detach().flatten(), variance.detach().flatten(), count)
        y = ((y - mean) * (variance + inner.eps).rsqrt()).reshape(x.shape)
        shape = (-1, *(1,) * (x.dim() - 2))
        return y * inner.weight.view(shape) + inner.bias.view(shape)  # type: ignore

    def _sum(self, x: Tensor) -> Tensor:
        return SumOverParts.apply(x, self.grid.group)  # type: ignore

    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        share = self.inner.momentum
        self.inner.running_mean.lerp_(mean, share)
        self.inner.running_var.lerp_(variance * count / (count - 1), share)


def _on_blocks(operation: Any, shapes: tuple[Any, Any], grid: Grid) -> nn.Module:
    """Return what an operation is on blocks."""
    inner, before = operation, None
    if hasattr(operation, "pads"):  # padded unequally before and behind
        inner, before = operation.inner, operation.pads[0]
    if isinstance(inner, (*_CONVOLUTIONS, *_POOLS)):
        filling = -math.inf if "MaxPool" in type(inner).__name__ else 0.0
        return _OnBlocks(inner, _windows(inner, before, shapes), grid, filling)
    if isinstance(inner, (nn.GroupNorm, *_BATCH_NORMS)):
        return _NormOnBlocks(inner, shapes[0], grid)
    return operation  # type: ignore[no-any-return]


def _windows(inner: Any, before: int | None, shapes: tuple[Any, Any]) -> list[Window]:
    extents_in, extents_out = shapes

    def along(value: Any, axis: int) -> int:
        return int(value[axis] if isinstance(value, (tuple, list)) else value)

    return [
        Window(
            n_in=n_in,
            n_out=n_out,
            kernel=along(inner.kernel_size, axis),
            stride=along(inner.stride, axis),
            padding=along(inner.padding, axis) if before is None else before,
        )
        for axis, (n_in, n_out) in enumerate(zip(extents_in, extents_out, strict=True))
    ]


def _trim(x: Tensor, axis: int, window: Window, n_parts: int) -> Tensor:
    """Drop rows behind the last that the window reaches, when nobody else has dropped them."""
    if n_parts > 1:
        return x
    low, high = window.needed(1, 0)
    return x.narrow(axis, 0, min(high, window.n_in) - max(low, 0))


def _shapes(network: nn.Module, shape: Sequence[int]) -> dict[str, tuple[Any, Any]]:
    """Return the extents of input and output of every operation, for whole samples."""
    found: dict[str, tuple[Any, Any]] = {}
    ghost = copy.deepcopy(network).to("meta")
    for name, operation in operations_of(ghost):

        def keep(_: Any, given: Any, out: Any, name: str = name) -> None:
            found[name] = tuple(given[0].shape[2:]), tuple(out.shape[2:])

        operation.register_forward_hook(keep)
    dtype = next(ghost.parameters()).dtype
    ghost(torch.empty(2, *shape, device="meta", dtype=dtype))
    return found
