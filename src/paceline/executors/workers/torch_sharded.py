"""Sharded data parallelism: replicas share out state, gradients and weights (ZeRO, FSDP2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

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
        for part in network.children():
            if any(True for _ in part.parameters()):
                fully_shard(part, mesh=mesh, reshard_after_forward=frees)
        fully_shard(network, mesh=mesh, reshard_after_forward=frees)
        self.network = network

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Let FSDP take the mean of the replicas, each weighted by its samples."""
        n_pieces = self.strategy.get("micro_batches", 1)
        parts = []
        for piece, wanted in zip(inputs.chunk(n_pieces), targets.chunk(n_pieces), strict=True):
            loss = self.loss(self.network(piece), wanted) * (len(piece) / len(inputs))
            torch.autograd.backward(loss * (self.share * self.strategy["data"]))
            parts.append(loss.detach())
        return torch.stack(parts).sum().mul(self.share)
