"""Pipelines: every worker a stage, micro-batches following each other; replicas of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipeline,
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
        """Keep the layers of this worker's stages."""
        n_stages = self.strategy["pipeline"] * self.strategy.get("virtual_stages", 1)
        mine = range(self.place.stage, n_stages, self.strategy["pipeline"])
        is_chain = not self.job.get("module")
        stages = (self._chain if is_chain else self._traced)(network, mine, n_stages)
        self.network = nn.ModuleList([stage.submod for stage in stages])
        self.tied = self._tied(network) if is_chain else []
        self.schedule = self._schedule(stages)
        self.is_first, self.is_last = 0 in mine, n_stages - 1 in mine

    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Run the schedule; replicas then exchange the gradients of their stage."""
        losses: list[Tensor] = []
        given = (inputs,) if self.is_first else ()
        wanted = {"target": targets, "losses": losses} if self.is_last else {}
        self.schedule.step(*given, **wanted)
        for parameter, group in self.tied:
            assert parameter.grad is not None  # it is used in every step
            dist.all_reduce(parameter.grad, group=group)
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(self.share)
        if self.strategy["data"] > 1:
            all_reduce_gradients(self.parameters(), self.place.group("data"))
        mean = torch.stack(losses).mean() if losses else torch.zeros((), dtype=self.dtype)
        return mean.mul(self.share)

    def _chain(self, network: nn.Module, mine: range, n_stages: int) -> list[Any]:
        """Return the stages of a chain of operations."""
        assert isinstance(network, nn.Sequential)  # shipped networks are chains
        ranges, group = self.division["stages"], self.place.group("pipeline")
        return [
            PipelineStage(network[slice(*ranges[i])], i, n_stages, self.device, group=group)
            for i in mine
        ]

    def _traced(self, network: nn.Module, mine: range, n_stages: int) -> list[Any]:
        """Return the stages of the user's own module, which is traced and cut."""
        replica_batch = self.division["replica_batches"][self.place.replica]
        size = replica_batch // self.strategy["micro_batches"]
        example = torch.zeros(
            size, *self.job["sample"]["shape"], device=self.device, dtype=self._input_type()
        )
        points = dict(_split_point(network, point) for point in self.division["split_points"])
        try:
            pipe = pipeline(network, mb_args=(example,), split_spec=points)
        except Exception as error:
            shown = " ".join(str(error).split())[:300]
            raise protocol.RefusedError(
                f"A module in a pipeline must be one that PyTorch can trace, but: {shown}"
            ) from error
        if pipe.num_stages != n_stages:
            raise protocol.RefusedError(
                f"A pipeline must have {n_stages} stages, but tracing gave {pipe.num_stages}."
            )
        group = self.place.group("pipeline")
        return [pipe.build_stage(i, self.device, group=group) for i in mine]

    def _input_type(self) -> torch.dtype:
        return torch.long if self.job["sample"].get("vocabulary") else self.dtype

    def _tied(self, network: nn.Module) -> list[tuple[nn.Parameter, Any]]:
        """Return this worker's weights that other stages use too, with all who have them.

        Each has a copy; gradients are added up, so that copies stay equal.
        """
        holders: dict[int, list[int]] = {}
        for i, stage in enumerate(self.division["stages"]):
            for parameter in network[slice(*stage)].parameters():  # type: ignore[index]
                holders.setdefault(id(parameter), []).append(i % self.strategy["pipeline"])
        mine = {id(parameter): parameter for parameter in self.parameters()}
        found = []
        for key, stages in holders.items():
            for ranks in self.place.ranks[:, sorted(set(stages)), 0].tolist():
                if len(ranks) > 1:  # all workers make all groups, in the same order
                    group = dist.new_group(ranks)
                    if protocol.rank() in ranks:
                        found.append((mine[key], group))
        return found

    def _schedule(self, stages: list[Any]) -> Any:
        kinds = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
        name, n = self.strategy["schedule"], self.strategy["micro_batches"]
        if name == "interleaved":
            return ScheduleInterleaved1F1B(stages, n, loss_fn=self.loss)
        if name not in kinds:
            raise protocol.RefusedError(f"No pipeline runs the schedule {name!r}.")
        return kinds[name](stages[0], n, loss_fn=self.loss)


def _split_point(network: nn.Module, point: dict[str, str]) -> tuple[str, SplitPoint]:
    """Return where a stage begins: before one module, or behind another."""
    known = {name for name, _ in network.named_modules()}
    if point["before"] in known:
        return point["before"], SplitPoint.BEGINNING
    if point["behind"] in known:
        return point["behind"], SplitPoint.END
    raise protocol.RefusedError(
        f"A stage must begin or end with a module, but it is cut between {point['behind']!r} and "
        f"{point['before']!r}."
    )
