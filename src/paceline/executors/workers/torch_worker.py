"""A worker of PyTorch: DDP for the real step time, a second pass for its phases."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.executors.workers import protocol, template
    from paceline.executors.workers.samples import Samples, load_samples
else:
    import protocol  # neighbours: Paceline is not installed here
    import template

    if __name__ == "__main__":  # before PyTorch is imported, which may print
        protocol.take_over_stdout()
    from samples import Samples, load_samples

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from paceline.executors.workers.torch_divided import run_divided
    from paceline.executors.workers.torch_layers import LayerTimes
    from paceline.executors.workers.torch_network import build, seed_everything, timed_parts
    from paceline.executors.workers.torch_training import loss_of, make_optimizer, tensors_of
else:
    from torch_divided import run_divided
    from torch_layers import LayerTimes
    from torch_network import build, seed_everything, timed_parts
    from torch_training import loss_of, make_optimizer, tensors_of

_BUCKET_BYTES = 25 * 2**20  # as DDP's


class Trainer:
    """One job on this worker.

    Parameters
    ----------
    job
        What to train.
    device
        Where.
    """

    def __init__(self, job: dict[str, Any], device: torch.device) -> None:
        self.job, self.device, self.rank = job, device, protocol.rank()
        self.samples: Samples = load_samples(job)
        self.network = build(job).to(device).train()
        seed_everything(job["seed"] * 7919 + self.rank + 1)  # dropout differs between workers
        self.parameters = [p for p in self.network.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(job["optimizer"], self.parameters)
        self.share = protocol.weight_of(job, self.rank)
        self.clock = protocol.Clock(job, self.rank)
        self.losses: list[float] = []

    def overlapped(self, n_steps: int, net: nn.Module) -> list[float]:
        """Train as a user would and return the times of the steps."""
        scale = self.share * len(self.job["device_batches"])  # DDP takes the plain mean
        times = []
        for _ in range(n_steps):
            begin = time.perf_counter()
            loss = self._forward(net, *self._batch(self.clock.pause))
            self.clock.pause("backward")
            torch.autograd.backward(loss if scale == 1.0 else loss * scale)
            for phase in ("wait", "transfer", "update"):
                self.clock.pause(phase)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self._synchronize()
            times.append(time.perf_counter() - begin)
            self.losses.append(loss.item())
        return times

    def apart(self, n_steps: int, layers: LayerTimes | None) -> None:
        """Train without overlap; the clock has the times of the phases."""
        for _ in range(n_steps):
            self.clock.begin_step()
            inputs, targets = self._timed_batch()
            loss = self._timed_gradients(inputs, targets, layers)
            if dist.is_initialized():
                self._timed_communication()
            else:
                self.clock.add("wait", 0.0)
                self.clock.add("transfer", 0.0)
            with self.clock.phase("update"):
                self.optimizer.step()
                self.optimizer.zero_grad()
                self._synchronize()
            self.clock.end_step()
            self.losses.append(loss.item())

    def _timed_batch(self) -> tuple[Tensor, Tensor]:
        clock = self.clock
        with clock.phase("md"):
            start, count = protocol.part_of_step(self.job, self.rank, len(self.losses))
        with clock.phase("io"):
            raw = self.samples.read(start, count)
            labels = self.samples.labels(start, count)
        with clock.phase("h2d"):
            batch = self._tensors(raw, labels)
            self._synchronize()
        return batch

    def _timed_gradients(
        self, inputs: Tensor, targets: Tensor, layers: LayerTimes | None
    ) -> Tensor:
        with self.clock.phase("forward"):
            if layers:
                layers.begin()
            loss = self._loss(self.network(inputs), targets)
            self._synchronize()
            if layers:
                layers.end_forward()
                self.clock.discount("forward", layers.own_s)
        with self.clock.phase("backward"):
            if layers:
                layers.begin()
            torch.autograd.backward(loss)
            self._synchronize()
            if layers:
                layers.end_backward()
                self.clock.discount("backward", layers.own_s)
        return loss

    def _timed_communication(self) -> None:
        with self.clock.phase("wait"):
            dist.barrier()
        with self.clock.phase("transfer"), torch.no_grad():
            for bucket in _buckets(self.parameters):
                flat = torch.cat([gradient.flatten() for gradient in bucket]).mul_(self.share)
                dist.all_reduce(flat)
                parts = torch.split(flat, [gradient.numel() for gradient in bucket])
                for gradient, part in zip(bucket, parts):  # noqa: B905  # Python 3.8
                    gradient.copy_(part.view_as(gradient))
            self._synchronize()

    def _batch(self, pause: Any) -> tuple[Tensor, Tensor]:
        pause("md")
        start, count = protocol.part_of_step(self.job, self.rank, len(self.losses))
        pause("io")
        raw, labels = self.samples.read(start, count), self.samples.labels(start, count)
        pause("h2d")
        return self._tensors(raw, labels)

    def _tensors(self, raw: bytearray, labels: Any) -> tuple[Tensor, Tensor]:
        return tensors_of(self.samples, raw, labels, self.job["loss"], self.device)

    def _forward(self, net: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        self.clock.pause("forward")
        if self.losses:
            return self._loss(net(inputs), targets)
        try:  # the first step shows whether sizes fit, before anything was exchanged
            return self._loss(net(inputs), targets)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            if protocol.is_out_of_memory(error):
                raise
            raise protocol.RefusedError(
                f"The network must fit its samples, but: {' '.join(str(error).split())}"
            ) from error

    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return loss_of(self.job["loss"], outputs, targets)

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def _buckets(parameters: list[nn.Parameter]) -> list[list[Tensor]]:
    """Return the gradients in groups that are exchanged as one message each."""
    buckets: list[list[Tensor]] = []
    room = 0
    for parameter in parameters:
        gradient = parameter.grad
        if gradient is None:
            continue
        size = gradient.numel() * gradient.element_size()
        if size > room or buckets[-1][0].dtype != gradient.dtype:
            buckets.append([])
            room = _BUCKET_BYTES
        buckets[-1].append(gradient)
        room -= size
    return buckets


def run_job(job: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Run a job and return what this worker measured."""
    if job.get("division"):
        return run_divided(job, device)
    gc.collect()  # the networks of the last job, in cycles of references
    if min(job["device_batches"]) < 1:
        raise protocol.RefusedError(
            f"`device_batches` must be at least 1, but got {job['device_batches']}."
        )
    trainer = Trainer(job, device)
    net = distributed(trainer.network, device)
    warmup_s = trainer.overlapped(job["n_warmup"], net)
    step_s = trainer.overlapped(job["n_steps"], net)
    del net  # and with it the hooks that exchange gradients during backward
    layers = _layer_times(trainer) if job["n_phase_steps"] else []
    return {
        "step_s": step_s,
        "warmup_s": warmup_s,
        "phases": trainer.clock.phases,
        "phase_step_s": trainer.clock.step_s,
        "layers": layers,
        "losses": trainer.losses,
        **_weights(trainer),
    }


def distributed(network: nn.Module, device: torch.device) -> nn.Module:
    """Return what averages gradients over all workers; the network itself where there is one."""
    if not dist.is_initialized():
        return network
    # no first exchange of weights: the seed has made them equal
    devices = [device] if device.type == "cuda" else None
    return DistributedDataParallel(network, device_ids=devices, init_sync=False)


def _layer_times(trainer: Trainer) -> list[dict[str, Any]]:
    job = trainer.job
    if not job["per_layer"]:
        trainer.apart(job["n_phase_steps"], None)
        return []
    layers = LayerTimes(timed_parts(trainer.network, job), trainer.device)
    trainer.apart(job["n_phase_steps"], layers)
    layers.close()
    phases = trainer.clock.phases
    return protocol.layer_times(layers.names, layers.forward, layers.backward, phases)


def _weights(trainer: Trainer) -> dict[str, Any]:
    with torch.no_grad():
        flat = torch.cat([p.detach().flatten().float().cpu() for p in trainer.parameters])
    digest = protocol.digest([flat.numpy().tobytes()])
    weights = flat.tolist() if trainer.job["return_weights"] else []
    return {"weights_digest": digest, "weights": weights}


def _connect(device: torch.device) -> None:
    """Join the other workers, as torchrun's variables say."""
    if os.environ.get("MASTER_ADDR") == "127.0.0.1":
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", init_method="env://")


def _warm_up(device: torch.device) -> None:
    """Do what PyTorch does only once, so that it is not in the first job."""
    job: dict[str, Any] = {
        "network": [{"op": "linear", "name": "a", "in": 4, "out": 2, "bias": True}],
        "sample": {"shape": [4], "n_classes": 2},
        "data": {"kind": "generated", "n_samples": 8},
        "optimizer": {"name": "adam", "learning_rate": 1e-3},
        "device_batches": [1] * protocol.world_size(),
        **{"loss": "cross_entropy", "seed": 0, "n_warmup": 1, "n_steps": 1, "n_phase_steps": 1},
        **{"per_layer": True, "return_weights": False, "delays": []},
    }
    run_job(job, device)
    gc.collect()
    gc.freeze()  # what PyTorch is made of need not be looked through again


def main() -> None:
    """Serve jobs, as the process that was started or as one forked from it."""
    if template.VARIABLE in os.environ:
        importlib.import_module("torch._dynamo")  # else every worker's first optimizer does
        template.fork_on_request()
        protocol.take_over_stdout(again=True)
    device = torch.device("cpu")
    if torch.cuda.is_available():
        local = int(os.environ.get("LOCAL_RANK", "0"))
        device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if protocol.world_size() > 1:
        _connect(device)
    _warm_up(device)
    protocol.serve("torch", {"torch": torch.__version__}, lambda job: run_job(job, device))
    sys.stderr.flush()
    os._exit(0)  # at once: leaving in order takes longer than a trial


if __name__ == "__main__":
    main()
