"""Pipelines: every worker a stage, micro-batches following each other; replicas of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
)

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.torch_divided import Division
    from paceline.executors.workers.torch_exchange import all_reduce_gradients
else:
    import protocol  # neighbours: Paceline is not installed here
    from torch_divided import Division
    from torch_exchange import all_reduce_gradients


class PipelineDivision(Division):
    """Every worker holds the layers of its stage, or of several virtual ones."""

    def divide(self, network: nn.Module) -> None:
        """Keep the operations of this worker's stages."""
        mine = range(self.place.stage, len(self.division["stages"]), self.strategy["pipeline"])
        parts = [self._stage_network(network, i) for i in mine]
        self.network = nn.ModuleList(parts)
        group = self.place.group("pipeline")
        n_stages = len(self.division["stages"])
        stages = [
            PipelineStage(part, i, n_stages, self.device, group=group)
            for part, i in zip(parts, mine, strict=True)
        ]
        self.schedule = self._schedule(stages)
        self.is_first, self.is_last = 0 in mine, n_stages - 1 in mine

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Run the schedule; replicas then exchange the gradients of their stage."""
        losses: list[Tensor] = []
        given = (inputs,) if self.is_first else ()
        wanted = {"target": targets, "losses": losses} if self.is_last else {}
        self.schedule.step(*given, **wanted)
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(self.share)
        if self.strategy["data"] > 1:
            all_reduce_gradients(self.parameters(), self.place.group("data"))
        mean = torch.stack(losses).mean() if losses else torch.zeros((), dtype=self.dtype)
        return mean.mul(self.share)

    def _stage_network(self, network: nn.Module, stage: int) -> nn.Module:
        if not isinstance(network, nn.Sequential):
            raise protocol.RefusedError(
                "A pipeline must be of a network that is a chain of parts."
            )
        first, end = self.division["stages"][stage]
        return network[first:end]

    def _schedule(self, stages: list[PipelineStage]) -> Any:
        kinds = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
        name, n = self.strategy["schedule"], self.strategy["micro_batches"]
        if name == "interleaved":
            return ScheduleInterleaved1F1B(stages, n, loss_fn=self.loss)  # type: ignore[arg-type]
        if name not in kinds:
            raise protocol.RefusedError(f"No pipeline runs the schedule {name!r}.")
        return kinds[name](stages[0], n, loss_fn=self.loss)
