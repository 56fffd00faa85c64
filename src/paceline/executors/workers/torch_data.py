"""Data parallelism: every worker a replica, gradients exchanged while the backward pass runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from paceline.executors.workers.torch_divided import Division
    from paceline.executors.workers.torch_exchange import all_reduce_gradients
else:
    from torch_divided import Division
    from torch_exchange import all_reduce_gradients


class DataDivision(Division):
    """Every worker holds all and takes a share of the samples; alone it is serial training."""

    def divide(self, network: nn.Module) -> None:
        """Keep the whole network."""
        self.network = network
        self.replica: nn.Module = network
        if dist.is_initialized():
            devices = [self.device] if self.device.type == "cuda" else None
            self.replica = DistributedDataParallel(
                network,
                device_ids=devices,
                init_sync=False,
                process_group=self.place.group("data"),
            )

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Let DDP take the mean of the replicas, each weighted by its samples."""
        scale = float(self.strategy["data"])
        loss = self.accumulate(self.replica, inputs, targets, scale=scale, around=self._exchange)
        if self.is_apart and self.replica is not self.network:
            all_reduce_gradients(self.parameters(), self.place.group("data"))
            for parameter in self.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(self.strategy["data"])
        return loss

    def _exchange(self, is_last: bool) -> Any:
        """Exchange gradients only behind the last piece."""
        is_due = is_last and not self.is_apart
        if is_due or not isinstance(self.replica, DistributedDataParallel):
            return contextlib.nullcontext()
        return self.replica.no_sync()
