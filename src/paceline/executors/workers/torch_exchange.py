"""Exchanges between the parts of a layer that autograd goes through in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class CopyToParts(torch.autograd.Function):
    """The same input for all parts; going back, the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        """Return the input."""
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Add up over the parts."""
        return _sum(gradients[0], ctx.group), None


class SumOfParts(torch.autograd.Function):
    """The sum over the parts; going back, the same gradient for all."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        """Add up over the parts."""
        return _sum(x, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the gradient."""
        return gradients[0], None


class GatherParts(torch.autograd.Function):
    """The parts side by side along an axis; going back, the gradient of one's own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, n_real: int, group: Any) -> Tensor:
        """Gather along an axis, and drop what was only padding behind `n_real`."""
        ctx.axis, ctx.group, ctx.size = axis, group, x.shape[axis]
        return _gather(x, axis, group).narrow(axis, 0, n_real)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Return the part of the gradient."""
        return take(gradients[0], ctx.axis, ctx.size, ctx.group), None, None, None


class TakePart(torch.autograd.Function):
    """One part of an input along an axis; going back, the gradients of all side by side."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, size: int, group: Any) -> Tensor:
        """Take this worker's part of `size`, padded with zeros behind the end."""
        ctx.axis, ctx.group, ctx.n_real = axis, group, x.shape[axis]
        return take(x, axis, size, group)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Gather the gradients."""
        whole = _gather(gradients[0], ctx.axis, ctx.group).narrow(ctx.axis, 0, ctx.n_real)
        return whole, None, None, None


def take(x: Tensor, axis: int, size: int, group: Any) -> Tensor:
    """Return this worker's part along an axis, padded with zeros where the end comes first."""
    first = min(dist.get_rank(group) * size, x.shape[axis])
    part = x.narrow(axis, first, min(size, x.shape[axis] - first))
    missing = size - part.shape[axis]
    if not missing:
        return part.contiguous()
    shape = list(part.shape)
    shape[axis] = missing
    return torch.cat([part, part.new_zeros(shape)], dim=axis)


def all_reduce_gradients(parameters: Iterable[nn.Parameter], group: Any) -> None:
    """Sum gradients over a group in one message."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat, group=group)
    parts = torch.split(flat, [gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def _sum(x: Tensor, group: Any) -> Tensor:
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=group)
    return total


def _gather(x: Tensor, axis: int, group: Any) -> Tensor:
    n = dist.get_world_size(group)
    stacked = x.new_empty((n, *x.shape))
    dist.all_gather_into_tensor(stacked.flatten(0, 1), x.contiguous(), group=group)
    return torch.cat(stacked.unbind(0), dim=axis)
