"""Rows that a worker needs of its neighbours, and sums over all of them, through autograd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def bounds(n: int, n_parts: int, part: int) -> tuple[int, int]:
    """Return the first row of a part and the one behind its last; earlier parts are larger.

    Examples
    --------
    >>> bounds(7, 2, 0), bounds(7, 2, 1)
    ((0, 4), (4, 7))
    """
    size, left = divmod(n, n_parts)
    first = part * size + min(part, left)
    return first, first + size + (part < left)


@dataclass(frozen=True)
class Window:
    """A kernel that moves along one axis.

    Parameters
    ----------
    n_in, n_out
        Extents of the whole input and output.
    kernel, stride, padding
        Of the operation; the padding is that before the first row.
    """

    n_in: int
    n_out: int
    kernel: int
    stride: int
    padding: int

    def needed(self, n_parts: int, part: int) -> tuple[int, int]:
        """Return the rows that a part's output needs, padding included."""
        first, end = bounds(self.n_out, n_parts, part)
        return (
            first * self.stride - self.padding,
            (end - 1) * self.stride - self.padding + self.kernel,
        )

    def rims(self, n_parts: int, part: int) -> tuple[int, int]:
        """Return how many rows a part needs before and behind its own; negative: has too many."""
        low, high = self.needed(n_parts, part)
        first, end = bounds(self.n_in, n_parts, part)
        return first - max(low, 0), min(high, self.n_in) - end

    def pads(self, n_parts: int, part: int) -> tuple[int, int]:
        """Return how many rows of padding a part needs before and behind."""
        low, high = self.needed(n_parts, part)
        return max(0, -low), max(0, high - self.n_in)


class Halo(torch.autograd.Function):
    """One's own rows between those that neighbours have; going back, gradients go home."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, window: Window, axis: int, group: Any) -> Tensor:
        """Fetch what the window needs along an axis."""
        n_parts, part = dist.get_world_size(group), dist.get_rank(group)
        ctx.axis, ctx.group, ctx.size = axis, group, x.shape[axis]
        ctx.rims = [window.rims(n_parts, p) for p in range(n_parts)]
        before, behind = ctx.rims[part]
        received = _fetch(x, ctx.rims, axis, group)
        own = x.narrow(axis, max(0, -before), x.shape[axis] + min(0, before) + min(0, behind))
        return torch.cat([received[0], own, received[1]], dim=axis)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        """Send gradients of fetched rows home and add those that come home."""
        gradient, axis = gradients[0], ctx.axis
        part = dist.get_rank(ctx.group)
        before, behind = ctx.rims[part]
        n_before, n_behind = max(0, before), max(0, behind)
        shape = list(gradient.shape)
        shape[axis] = ctx.size
        whole = gradient.new_zeros(shape)
        n_own = gradient.shape[axis] - n_before - n_behind
        whole.narrow(axis, max(0, -before), n_own).copy_(gradient.narrow(axis, n_before, n_own))
        lent = (
            gradient.narrow(axis, 0, n_before),
            gradient.narrow(axis, n_before + n_own, n_behind),
        )
        for rows, is_front in _give_back(lent, whole, ctx.rims, axis, ctx.group):
            n = rows.shape[axis]
            whole.narrow(axis, 0 if is_front else ctx.size - n, n).add_(rows)
        return whole, None, None, None


class SumOverParts(torch.autograd.Function):
    """A sum over workers that each of them goes on with."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        """Add up."""
        ctx.group = group
        total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Add up what each went on to do with it."""
        total = gradients[0].clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None


def _fetch(x: Tensor, rims: list[tuple[int, int]], axis: int, group: Any) -> list[Tensor]:
    """Return the rows of the neighbours before and behind."""
    part, n_parts = dist.get_rank(group), dist.get_world_size(group)
    before, behind = (max(0, rim) for rim in rims[part])
    received = [_rows(x, axis, before), _rows(x, axis, behind)]
    operations = []
    if part > 0:
        wanted = max(0, rims[part - 1][1])
        operations += _pair(x.narrow(axis, 0, wanted), received[0], part - 1, group)
    if part < n_parts - 1:
        wanted = max(0, rims[part + 1][0])
        last = x.narrow(axis, x.shape[axis] - wanted, wanted)
        operations += _pair(last, received[1], part + 1, group)
    _carry_out(operations)
    return received


def _give_back(
    lent: tuple[Tensor, Tensor],
    whole: Tensor,
    rims: list[tuple[int, int]],
    axis: int,
    group: Any,
) -> list[tuple[Tensor, bool]]:
    """Return gradients of one's first and last rows that neighbours had fetched."""
    part, n_parts = dist.get_rank(group), dist.get_world_size(group)
    operations, home = [], []
    if part > 0:
        rows = _rows(whole, axis, max(0, rims[part - 1][1]))
        operations += _pair(lent[0], rows, part - 1, group)
        home.append((rows, True))
    if part < n_parts - 1:
        rows = _rows(whole, axis, max(0, rims[part + 1][0]))
        operations += _pair(lent[1], rows, part + 1, group)
        home.append((rows, False))
    _carry_out(operations)
    return home


def _rows(x: Tensor, axis: int, n: int) -> Tensor:
    shape = list(x.shape)
    shape[axis] = n
    return x.new_empty(shape)


def _pair(sent: Tensor, received: Tensor, neighbour: int, group: Any) -> list[dist.P2POp]:
    """Return the two messages with a neighbour that are not empty."""
    peer = dist.get_global_rank(group, neighbour) if group is not None else neighbour
    found = []
    if sent.numel():
        found.append(dist.P2POp(dist.isend, sent.contiguous(), peer, group))
    if received.numel():
        found.append(dist.P2POp(dist.irecv, received, peer, group))
    return found


def _carry_out(operations: list[dist.P2POp]) -> None:
    if operations:
        for work in dist.batch_isend_irecv(operations):
            work.wait()
