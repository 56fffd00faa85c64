"""Sharded data parallelism: replicas share out state, gradients and weights (ZeRO, FSDP2)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.torch_divided import Division
else:
    import protocol  # neighbours: Paceline is not installed here
    from torch_divided import Division


class ShardedDivision(Division):
    """Every worker holds a part of every weight and gathers the rest when it is needed.

    Stage 3 lets go of gathered weights behind each pass, stage 2 keeps them until the update.
    """

    def divide(self, network: nn.Module) -> None:
        """Shard every part of the network that has weights, then what is left."""
        if self.place.mesh is None:
            self.network = network
            return
        if self.strategy["shard"] not in (2, 3):
            raise protocol.RefusedError(
                f"`shard` must be 2 or 3 to be run (torch shards gradients with the state), but "
                f"got {self.strategy['shard']}."
            )
        mesh = self.place.mesh["data"]
        frees = self.strategy["shard"] == 3
        for parts in _sharing(network):
            fully_shard(parts, mesh=mesh, reshard_after_forward=frees)
        fully_shard(network, mesh=mesh, reshard_after_forward=frees)
        self.network = network

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Let FSDP take the mean of the replicas, each weighted by its samples."""
        scale = float(self.strategy["data"])
        return self.accumulate(
            self.network, inputs, targets, scale=scale, around=self._keep_weights
        )

    @contextlib.contextmanager
    def _keep_weights(self, is_last: bool) -> Iterator[None]:
        """Let stage 2 gather weights once a step, not once a micro-batch."""
        if self.strategy["shard"] == 2 and isinstance(self.network, FSDPModule):
            self.network.set_reshard_after_backward(is_last)
        yield


def _sharing(network: nn.Module) -> list[list[nn.Module]]:
    """Return the parts that have weights; those that share one are together."""
    found: list[tuple[set[int], list[nn.Module]]] = []
    for part in network.children():
        weights = {id(p) for p in part.parameters()}
        together = [group for group in found if group[0] & weights]
        for group in together:
            weights |= group[0]
            found.remove(group)
        if weights:
            found.append((weights, [*(m for _, ms in together for m in ms), part]))
    return [modules for _, modules in found]
