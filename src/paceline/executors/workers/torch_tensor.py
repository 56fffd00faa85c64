"""Tensor parallelism of Transformers (Megatron-LM, arXiv 1909.08053, section 3).

Attention is dealt out by heads, pairs of linear maps by the width between them, embedding and
output map by words. DTensor's column shards would cut the fused map of queries, keys and values
across heads, so parts are taken here, with the exchanges of `torch_exchange`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.torch_attention import CausalAttention
    from paceline.executors.workers.torch_divided import Division
    from paceline.executors.workers.torch_exchange import (
        CopyToParts,
        SumOfParts,
        all_reduce_gradients,
    )
    from paceline.executors.workers.torch_network import operations_of, replace_part
else:
    import protocol  # neighbours: Paceline is not installed here
    from torch_attention import CausalAttention
    from torch_divided import Division
    from torch_exchange import CopyToParts, SumOfParts, all_reduce_gradients
    from torch_network import operations_of, replace_part


class TensorDivision(Division):
    """Heads, widths and words dealt out; everything else on every worker of a replica."""

    def divide(self, network: nn.Module) -> None:
        """Take this worker's part of every layer that has a role in the plan."""
        self.group = self.place.group("split")
        self.deals_words = False
        roles = dict(self.division["tensor_roles"])
        tables: dict[int, nn.Parameter] = {}  # parts of tables that two layers share
        for name, operation in list(operations_of(network)):
            role = roles.pop(name, "")
            if role:
                part = _PARTS[role](operation, self.group, tables)
                replace_part(network, operation, part)
                self.deals_words |= role == "vocabulary_out"
        if roles:
            raise protocol.RefusedError(f"The network has no layer called {min(roles)!r}.")
        self.network = network

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train the replica; then replicas add up their gradients, each by its samples."""
        loss = self.accumulate(self.network, inputs, targets)
        if self.strategy["data"] > 1:
            all_reduce_gradients(self.parameters(), self.place.group("data"))
        return loss.div(self.place.n_parts)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross entropy of words that are dealt out."""
        if not self.deals_words:
            return super().loss(outputs, targets)
        scores, wanted = outputs.flatten(0, -2), targets.flatten()
        with torch.no_grad():
            largest = scores.max(dim=1).values
            dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=self.group)
        shifted = scores - largest[:, None]
        sums = _sum(shifted.exp().sum(dim=1), self.group)
        here = wanted - dist.get_rank(self.group) * scores.shape[1]
        is_here = (here >= 0) & (here < scores.shape[1])
        own = shifted.gather(1, here.clamp(0, scores.shape[1] - 1)[:, None])[:, 0] * is_here
        return (sums.log() - _sum(own, self.group)).mean()


class _Heads(nn.Module):
    """Some heads of attention; their results are added up with the others'."""

    def __init__(self, inner: Any, group: Any, tables: dict[int, nn.Parameter]) -> None:
        super().__init__()
        self.inner, self.group = inner, group
        maps = (
            [inner.inputs]
            if isinstance(inner, CausalAttention)
            else [
                inner.query,
                inner.key,
                inner.value,
            ]
        )
        for layer in maps:
            n_blocks = 3 if len(maps) == 1 else 1
            layer.weight = _rows(layer.weight, group, n_blocks)
            if layer.bias is not None:
                layer.bias = _rows(layer.bias, group, n_blocks)
        self.bias = _take_inputs(inner.result, group)

    def forward(self, x: Tensor) -> Tensor:
        y = _sum(self.inner(_copy(x, self.group)), self.group)
        return y if self.bias is None else y + self.bias


class _Column(nn.Module):
    """Some outputs of a linear map, which the next one takes as they are."""

    def __init__(self, inner: Any, group: Any, tables: dict[int, nn.Parameter]) -> None:
        super().__init__()
        self.inner, self.group = inner, group
        inner.weight = _shared(inner.weight, group, tables)
        if inner.bias is not None:
            inner.bias = _rows(inner.bias, group)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(_copy(x, self.group))  # type: ignore[no-any-return]


class _Row(nn.Module):
    """Some inputs of a linear map; outputs are added up with the others'."""

    def __init__(self, inner: Any, group: Any, tables: dict[int, nn.Parameter]) -> None:
        super().__init__()
        self.inner, self.group = inner, group
        self.bias = _take_inputs(inner, group)

    def forward(self, x: Tensor) -> Tensor:
        y = _sum(self.inner(x), self.group)
        return y if self.bias is None else y + self.bias


class _Words(nn.Module):
    """Some rows of an embedding; a token that is elsewhere counts nothing here."""

    def __init__(self, inner: Any, group: Any, tables: dict[int, nn.Parameter]) -> None:
        super().__init__()
        self.inner, self.group = inner, group
        inner.tokens.weight = _shared(inner.tokens.weight, group, tables)

    def forward(self, x: Tensor) -> Tensor:
        table = self.inner.tokens.weight
        here = x - dist.get_rank(self.group) * len(table)
        is_here = (here >= 0) & (here < len(table))
        rows = table[here.clamp(0, len(table) - 1)] * is_here[..., None]
        rows = _sum(rows, self.group)
        positions = self.inner.positions
        return rows if positions is None else rows + positions[: x.shape[1]]


_PARTS = {
    "heads": _Heads,
    "column": _Column,
    "row": _Row,
    "vocabulary_in": _Words,
    "vocabulary_out": _Column,
}


def _copy(x: Tensor, group: Any) -> Tensor:
    return CopyToParts.apply(x, group)  # type: ignore


def _sum(x: Tensor, group: Any) -> Tensor:
    return SumOfParts.apply(x, group)  # type: ignore


def _rows(weight: Tensor, group: Any, n_blocks: int = 1) -> nn.Parameter:
    """Return this worker's rows of each of some equal blocks of rows."""
    n, part = dist.get_world_size(group), dist.get_rank(group)
    blocks = weight.data.view(n_blocks, -1, *weight.shape[1:])
    if blocks.shape[1] % n:
        raise protocol.RefusedError(
            f"`tensor` must divide heads, widths and words, but {n} does not divide "
            f"{blocks.shape[1]}."
        )
    return nn.Parameter(blocks.chunk(n, dim=1)[part].flatten(0, 1).clone())


def _shared(weight: nn.Parameter, group: Any, tables: dict[int, nn.Parameter]) -> nn.Parameter:
    """Return this worker's rows; layers that share a table share its part."""
    if id(weight) not in tables:
        tables[id(weight)] = _rows(weight, group)
    return tables[id(weight)]


def _take_inputs(layer: Any, group: Any) -> nn.Parameter | None:
    """Leave a linear map this worker's inputs, and return its bias, to be added once."""
    n, part = dist.get_world_size(group), dist.get_rank(group)
    layer.weight = nn.Parameter(layer.weight.data.chunk(n, dim=1)[part].contiguous())
    bias: nn.Parameter | None = layer.bias
    layer.bias = None
    return bias
