"""Filter and channel parallelism: convolutions and linear maps dealt out by output or input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.torch_divided import Division
    from paceline.executors.workers.torch_exchange import (
        CopyToParts,
        GatherParts,
        SumOfParts,
        TakePart,
        all_reduce_gradients,
        take,
    )
    from paceline.executors.workers.torch_network import operations_of, replace_part
else:
    import protocol  # neighbours: Paceline is not installed here
    from torch_divided import Division
    from torch_exchange import (
        CopyToParts,
        GatherParts,
        SumOfParts,
        TakePart,
        all_reduce_gradients,
        take,
    )
    from torch_network import operations_of, replace_part

_MAPS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class _SplitDivision(Division):
    """Some layers dealt out among the parts of a replica, all others on each of them."""

    wrapper: Any

    def divide(self, network: nn.Module) -> None:
        """Replace the layers that the plan names by this worker's part of them."""
        self.network = network
        self.group = self.place.group("split")
        wanted = set(self.division["split_layers"])
        for name, operation in list(operations_of(network)):
            if name in wanted:
                wanted.remove(name)
                layer = _map_of(operation)
                replace_part(network, layer, self.wrapper(layer, self.group))
        if wanted:
            raise protocol.RefusedError(f"The network has no layer called {min(wanted)!r}.")

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Train the replica; then replicas add up their gradients, each by its samples."""
        loss = self.accumulate(self.network, inputs, targets)
        if self.strategy["data"] > 1:
            all_reduce_gradients(self.parameters(), self.place.group("data"))
        return loss.div(self.place.n_parts)


class _Filters(nn.Module):
    """Some filters of a layer: sees all inputs, gathers all outputs."""

    def __init__(self, layer: Any, group: Any) -> None:
        super().__init__()
        self.group, self.layer = group, layer
        self.axis, self.n_real = _axis(layer), layer.weight.shape[0]
        size = -(-self.n_real // dist.get_world_size(group))
        layer.weight = nn.Parameter(take(layer.weight.data, 0, size, group))
        if layer.bias is not None:
            layer.bias = nn.Parameter(take(layer.bias.data, 0, size, group))

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(CopyToParts.apply(x, self.group))  # type: ignore[no-untyped-call]
        return GatherParts.apply(y, self.axis, self.n_real, self.group)  # type: ignore


class _Channels(nn.Module):
    """Some input channels of a layer: adds up outputs with the others."""

    def __init__(self, layer: Any, group: Any) -> None:
        super().__init__()
        self.group, self.layer = group, layer
        self.axis = _axis(layer)
        self.size = -(-layer.weight.shape[1] // dist.get_world_size(group))
        layer.weight = nn.Parameter(take(layer.weight.data, 1, self.size, group))
        if hasattr(layer, "in_channels"):
            layer.in_channels = self.size
        self.bias = layer.bias  # added once, behind the sum
        layer.bias = None

    def forward(self, x: Tensor) -> Tensor:
        part = TakePart.apply(x, self.axis, self.size, self.group)  # type: ignore
        y = SumOfParts.apply(self.layer(part), self.group)  # type: ignore[no-untyped-call]
        if self.bias is None:
            return y  # type: ignore[no-any-return]
        n_behind = y.dim() - 1 - self.axis if self.axis > 0 else 0
        return y + self.bias.view(-1, *(1,) * n_behind)  # type: ignore[no-any-return]


class FilterDivision(_SplitDivision):
    """Output channels dealt out (ParaDL, table III, "filter")."""

    wrapper = _Filters


class ChannelDivision(_SplitDivision):
    """Input channels dealt out (ParaDL, table III, "channel")."""

    wrapper = _Channels


def _axis(layer: nn.Module) -> int:
    return -1 if isinstance(layer, nn.Linear) else 1


def _map_of(operation: nn.Module) -> nn.Module:
    """Return the convolution or linear map of an operation, which may pad before it."""
    for module in operation.modules():
        if isinstance(module, _MAPS):
            return module
    raise protocol.RefusedError("A layer to be dealt out must be a convolution or a linear map.")
