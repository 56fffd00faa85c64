"""One step divided among workers as a plan says: the frame that every strategy shares.

A job with a `division` has ``strategy`` (degrees and more), ``placement`` (the workers of every
replica, stage by stage, within a stage part by part), ``stages`` (first operation and the one
behind the last of every stage), ``replica_batches``, and ``split_layers``, the names of the layers
that a degree within a stage deals out; for space ``grid``, parts along each axis, and
``n_leading``, how many operations work on blocks; for Transformers ``tensor_roles`` by layer.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.samples import load_samples
    from paceline.executors.workers.torch_counting import StoragePeak, Traffic
    from paceline.executors.workers.torch_network import build
    from paceline.executors.workers.torch_phases import PhaseTimes
    from paceline.executors.workers.torch_place import SPLITS, Place
    from paceline.executors.workers.torch_training import loss_of, make_optimizer, tensors_of
else:
    import protocol  # neighbours: Paceline is not installed here
    from samples import load_samples
    from torch_counting import StoragePeak, Traffic
    from torch_network import build
    from torch_phases import PhaseTimes
    from torch_place import SPLITS, Place
    from torch_training import loss_of, make_optimizer, tensors_of

# where the division of each degree lives; replicas of all of them are part of it
_MEMBERS = {
    "data": ("torch_data", "DataDivision"),
    "sharded": ("torch_sharded", "ShardedDivision"),
    "pipeline": ("torch_pipeline", "PipelineDivision"),
    "spatial": ("torch_spatial", "SpatialDivision"),
    "unlocked": ("torch_unlocked", "UnlockedDivision"),
    "tensor": ("torch_tensor", "TensorDivision"),
    "filter": ("torch_filter", "FilterDivision"),
    "channel": ("torch_filter", "ChannelDivision"),
}
_TYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


class Division(ABC):
    """A network as this worker trains it.

    Parameters
    ----------
    job
        What to train and how it is divided.
    place
        Where this worker stands.
    device
        Where it computes.

    Attributes
    ----------
    network
        What this worker holds; its parameters are those that its optimizer updates.
    is_apart
        Whether exchanges wait until the passes are over, so that both can be timed.
    """

    network: nn.Module
    is_apart = False

    def __init__(self, job: dict[str, Any], place: Place, device: torch.device) -> None:
        self.job, self.place, self.device = job, place, device
        self.division, self.strategy = job["division"], job["division"]["strategy"]
        self.dtype = _TYPES[job.get("precision", "float32")]
        self.share = self.division["replica_batches"][place.replica] / self.global_batch
        network = build(job).to(device=device, dtype=self.dtype).train()
        self.divide(recomputed(network) if self._recomputes else network)

    @property
    def _recomputes(self) -> bool:
        is_own = self.strategy.get("schedule") == "unlocked" and self.strategy["pipeline"] > 1
        return bool(self.strategy.get("recompute")) and not is_own

    @property
    def global_batch(self) -> int:
        """Samples of a step over all replicas."""
        return int(sum(self.division["replica_batches"]))

    @abstractmethod
    def divide(self, network: nn.Module) -> None:
        """Take this worker's part of the whole network, which all workers built alike."""

    @abstractmethod
    def gradients(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Run both passes over the replica's batch and exchange what must be.

        Afterwards every parameter of this worker has its gradient of the mean loss over the
        global batch. Returns what this worker adds to that loss: the sum over all workers is it.
        """

    def accumulate(
        self,
        run: Callable[[Tensor], Tensor],
        inputs: Tensor,
        targets: Tensor,
        *,
        scale: float = 1.0,
        around: Callable[[bool], AbstractContextManager[None]] | None = None,
    ) -> Tensor:
        """Run both passes over every micro-batch and return the replica's part of the loss.

        Parameters
        ----------
        run
            From inputs to outputs.
        inputs, targets
            Of the replica.
        scale
            Of the gradients, for exchanges that take a mean where a sum is meant.
        around
            Context of a micro-batch, given whether it is the last.
        """
        n_pieces, parts = self.strategy.get("micro_batches", 1), []
        pieces = list(zip(inputs.chunk(n_pieces), targets.chunk(n_pieces), strict=True))
        for i, (piece, wanted) in enumerate(pieces, 1):
            with around(i == len(pieces)) if around else contextlib.nullcontext():
                loss = self.loss(run(piece), wanted) * (len(piece) / len(inputs) * self.share)
                torch.autograd.backward(loss if scale == 1.0 else loss * scale)
            parts.append(loss.detach())
        return torch.stack(parts).sum()

    def close(self) -> None:  # noqa: B027  # most have nothing under way
        """Finish what is under way between workers."""

    def parameters(self) -> list[nn.Parameter]:
        """Return what this worker updates."""
        return [p for p in self.network.parameters() if p.requires_grad]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of some samples."""
        return loss_of(self.job["loss"], outputs, targets)


class _Recomputed(nn.Module):
    """A part that keeps its input alone and computes the rest again for the backward pass."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, *inputs: Any) -> Any:
        return checkpoint(self.part, *inputs, use_reentrant=False)


def recomputed(network: nn.Module) -> nn.Module:
    """Let every part of a network be computed again; of a module that is no chain, all of it."""
    if not isinstance(network, nn.Sequential):
        return _Recomputed(network)
    for name, part in list(network.named_children()):
        if any(True for _ in part.parameters()):
            setattr(network, name, _Recomputed(part))
    return network


class Run:
    """Steps of a division on this worker."""

    def __init__(self, job: dict[str, Any], division: Division, device: torch.device) -> None:
        self.job, self.division, self.device = job, division, device
        self.samples = load_samples(job)
        # a stage may have nothing to learn, and no optimizer takes that
        parameters = division.parameters() or [nn.Parameter(torch.zeros(0, device=device))]
        self.optimizer = make_optimizer(job["optimizer"], parameters)
        self.losses: list[Tensor] = []

    def steps(self, n_steps: int) -> list[float]:
        """Train and return the times of the steps."""
        times = []
        for _ in range(n_steps):
            begin = time.perf_counter()
            loss = self.division.gradients(*self._batch())
            self.optimizer.step()
            self.optimizer.zero_grad()
            if self.device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
            self.losses.append(loss.detach().double().reshape(()).cpu())
        return times

    def timed_steps(self, n_steps: int) -> dict[str, Any]:
        """Train some more steps, whose phases are timed apart, and return them."""
        if not n_steps:
            return {}
        self.division.is_apart = True
        with PhaseTimes(self.division.network, self.device) as times:
            for _ in range(n_steps):
                with times.step():
                    with times.phase("io"):
                        batch = self._batch()
                    loss = self.division.gradients(*batch)
                    with times.phase("update"):
                        self.optimizer.step()
                        self.optimizer.zero_grad()
                self.losses.append(loss.detach().double().reshape(()).cpu())
        self.division.is_apart = False
        merged = dict(times.merged)
        return {"phases": times.phases, "phase_step_s": times.step_s, "merged": merged}

    def observed_step(self) -> dict[str, Any]:
        """Train one more step, slower, and return what it sends and holds."""
        state = [v for s in self.optimizer.state.values() for v in s.values()]
        known = [t for t in state if isinstance(t, Tensor)]
        traffic = Traffic()
        known += [*self.division.network.parameters(), *self.division.network.buffers()]
        peak = StoragePeak(known)
        with traffic, peak:
            self.steps(1)
        return {"traffic_bytes": dict(traffic.payload), "tensor_peak_bytes": peak.peak}

    def global_losses(self) -> list[float]:
        """Return the loss of every step over the global batch, the same on all workers."""
        losses = torch.stack(self.losses)
        if dist.is_initialized():
            losses = losses.to(self.device)
            dist.all_reduce(losses)
        return [float(loss) for loss in losses.cpu()]

    def weights(self) -> list[float]:
        """Return all weights of this worker, those of its stages in order, when asked for."""
        if not self.job["return_weights"]:
            return []
        whole = [_whole(p.detach()).flatten().float().cpu() for p in self.division.parameters()]
        return [float(w) for w in torch.cat(whole)]

    def _batch(self) -> tuple[Tensor, Tensor]:
        batches = self.division.division["replica_batches"]
        replica, step = self.division.place.replica, len(self.losses)
        start, count = step * sum(batches) + sum(batches[:replica]), batches[replica]
        raw, labels = self.samples.read(start, count), self.samples.labels(start, count)
        inputs, targets = tensors_of(self.samples, raw, labels, self.job["loss"], self.device)
        if inputs.is_floating_point():
            inputs = inputs.to(self.division.dtype)
        if targets.is_floating_point():
            targets = targets.to(self.division.dtype)
        return inputs, targets


def run_divided(job: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Run a job that a plan divides and return what this worker measured."""
    gc.collect()
    place = Place(job["division"], device)
    run = Run(job, _member(job["division"])(job, place, device), device)
    warmup_s = run.steps(job["n_warmup"])
    step_s = run.steps(job["n_steps"])
    phases = run.timed_steps(job["n_phase_steps"])
    observed = run.observed_step()
    run.division.close()
    return {
        "step_s": step_s,
        "warmup_s": warmup_s,
        "losses": run.global_losses(),
        "weights": run.weights(),
        **phases,
        **observed,
    }


def _whole(tensor: Tensor) -> Tensor:
    """Return all of a tensor that may be sharded."""
    gather = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()


def _member(division: dict[str, Any]) -> type[Division]:
    """Return the strategy that a division names; each is imported only when it is needed."""
    strategy = division["strategy"]
    used = [name for name in ("pipeline", *SPLITS) if strategy.get(name, 1) > 1]
    if len(used) > 1 or (used and used[0] not in _MEMBERS):
        raise protocol.RefusedError(f"No worker runs {' with '.join(used)} yet.")
    whole = "sharded" if strategy.get("shard") else "data"
    if used and strategy.get("shard"):
        raise protocol.RefusedError(f"No worker shards replicas of {used[0]} yet.")
    if used == ["pipeline"] and strategy["schedule"] == "unlocked":
        used = ["unlocked"]
    home, name = _MEMBERS[used[0] if used else whole]
    package = "" if "." not in __name__ else __name__.rsplit(".", 1)[0] + "."
    member: type[Division] = getattr(importlib.import_module(package + home), name)
    return member
