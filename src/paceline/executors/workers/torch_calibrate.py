"""A worker that measures what its machine can do: rates, memory, layers of networks, links.

Serves the jobs of a calibration, whose `values` hold ``{"probe": name, ...}``; what was measured
comes back as the rows of `layers`.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
else:
    import protocol  # a neighbour: Paceline is not installed here

    if __name__ == "__main__":  # before PyTorch is imported, which may print
        protocol.take_over_stdout()

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from paceline.executors.workers.torch_calibrate_links import (
        measure_collectives,
        measure_divided,
        measure_piped,
        measure_sharded,
    )
    from paceline.executors.workers.torch_layers import LayerTimes
    from paceline.executors.workers.torch_network import timed_parts
    from paceline.executors.workers.torch_worker import Trainer, distributed
else:
    from torch_calibrate_links import (
        measure_collectives,
        measure_divided,
        measure_piped,
        measure_sharded,
    )
    from torch_layers import LayerTimes
    from torch_network import timed_parts
    from torch_worker import Trainer, distributed

_Row = dict[str, Any]
_REST = "_rest"  # what belongs to no layer: the loss


def clock_of(device: torch.device) -> Callable[[], float]:
    """Return a clock for work on a device.

    One thread on the CPU is timed by the time for which it ran: what other programs take from it
    is not the machine's doing.
    """
    if device.type == "cuda":

        def synchronized() -> float:
            torch.cuda.synchronize()
            return time.perf_counter()

        return synchronized
    return time.thread_time if torch.get_num_threads() == 1 else time.perf_counter


def least_time(
    act: Callable[[], Any], clock: Callable[[], float], n_repeats: int, least_s: float = 2e-3
) -> float:
    """Return the least time of one call, each sample being long enough to be timed."""
    act()
    begin = clock()
    act()
    n_calls = max(1, int(least_s / max(clock() - begin, 1e-7)))
    best = float("inf")
    for _ in range(n_repeats):
        begin = clock()
        for _ in range(n_calls):
            act()
        best = min(best, (clock() - begin) / n_calls)
    return best


def measure_rates(values: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time matrix products and convolutions of several sizes, forward and backward."""
    clock, n = clock_of(device), values["n_repeats"]
    rows = [_matmul_row(size, device, clock, n) for size in values["matmul"]]
    return rows + [_conv_row(shape, device, clock, n) for shape in values["conv"]]


def _matmul_row(size: int, device: torch.device, clock: Any, n: int) -> _Row:
    a = torch.randn(size, size, device=device, requires_grad=True)
    b = torch.randn(size, size, device=device, requires_grad=True)
    forward, backward = _passes(lambda: a @ b, (a, b), clock, n)
    return _rate_row("linear", 2 * size**3, forward, backward)


def _conv_row(shape: list[int], device: torch.device, clock: Any, n: int) -> _Row:
    """Time a convolution of (batch, channels, filters, side, kernel)."""
    batch, channels, filters, side, kernel = shape
    x = torch.randn(batch, channels, side, side, device=device, requires_grad=True)
    w = torch.randn(filters, channels, kernel, kernel, device=device, requires_grad=True)
    forward, backward = _passes(
        lambda: functional.conv2d(x, w, padding=kernel // 2), (x, w), clock, n
    )
    flop = 2 * batch * channels * filters * kernel**2 * side**2
    return _rate_row("conv", flop, forward, backward)


def _rate_row(kind: str, flop: int, forward: float, backward: float) -> _Row:
    return {"kind": kind, "flop": flop, "forward_s": forward, "backward_s": backward}


def _passes(
    forward: Callable[[], Tensor], inputs: tuple[Tensor, ...], clock: Any, n: int
) -> tuple[float, float]:
    output = forward()
    gradient = torch.ones_like(output)
    back = least_time(
        lambda: torch.autograd.grad(output, inputs, gradient, retain_graph=True), clock, n
    )
    return least_time(forward, clock, n), back


def measure_memory(values: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time the sum of two large vectors: two are read, one is written."""
    n = values["n_bytes"] // 4
    a, b, c = (torch.ones(n, device=device) for _ in range(3))
    seconds = least_time(lambda: torch.add(a, b, out=c), clock_of(device), values["n_repeats"])
    return [{"n_bytes": 12 * n, "seconds": seconds}]


def measure_network(job: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time every layer of a network in both passes, its loss, its input and its updates.

    The least time of each over the steps, stretched so that they add up to the least time of
    the whole pass.
    """
    clock, n_steps = clock_of(device), job["n_steps"]
    trainer = Trainer(job, device)
    trainer.overlapped(job["n_warmup"], trainer.network)
    layers = LayerTimes(timed_parts(trainer.network, job), device, clock=clock)
    totals: dict[str, list[float]] = {"input": [], "forward": [], "backward": [], "update": []}
    for _ in range(n_steps):
        _timed_step(trainer, layers, clock, totals)
    layers.close()
    rows = [{"name": "_input", "forward_s": min(totals["input"])}]
    passes = {
        "forward_s": _stretched(layers.forward, totals["forward"]),
        "backward_s": _stretched(layers.backward, totals["backward"]),
    }
    for name in (*layers.names, _REST):
        rows.append({"name": name, **{key: times[name] for key, times in passes.items()}})
    rows += _updates(trainer, clock, min(totals["update"]))
    rows.append({"name": "_step", "forward_s": min(_plain_steps(trainer, clock, n_steps))})
    return rows


def _timed_step(
    trainer: Trainer, layers: LayerTimes, clock: Any, totals: dict[str, list[float]]
) -> None:
    begin = clock()
    inputs, targets = trainer._batch(lambda phase: None)
    totals["input"].append(clock() - begin)
    layers.begin()
    begin = clock()
    loss = trainer._loss(trainer.network(inputs), targets)
    totals["forward"].append(clock() - begin - layers.own_s)
    layers.end_forward()
    layers.begin()
    begin = clock()
    torch.autograd.backward(loss)
    totals["backward"].append(clock() - begin - layers.own_s)
    layers.end_backward()
    begin = clock()
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    totals["update"].append(clock() - begin)
    trainer.losses.append(0.0)


def _stretched(times: dict[str, list[float]], totals: list[float]) -> dict[str, float]:
    least = {name: min(steps) for name, steps in times.items()}
    sums = (sum(steps) for steps in zip(*times.values()))  # noqa: B905  # Python 3.8
    rests = [max(0.0, total - own) for total, own in zip(totals, sums)]  # noqa: B905
    least[_REST] = min(rests)
    factor = min(totals) / max(sum(least.values()), 1e-12)
    return {name: factor * seconds for name, seconds in least.items()}


def _updates(trainer: Trainer, clock: Any, own_s: float) -> list[_Row]:
    """Time a step of every optimizer on the same gradients.

    Alone they find everything in the caches; the network's own was timed within its steps, and
    the others are stretched as it is.
    """
    inputs, targets = trainer._batch(lambda phase: None)
    trainer._loss(trainer.network(inputs), targets).backward()  # type: ignore[no-untyped-call]
    alone = {
        name: least_time(make(trainer.parameters).step, clock, 3, least_s=0.0)
        for name, make in _OPTIMIZERS.items()
    }
    stretch = own_s / alone[trainer.job["optimizer"]["name"]]
    return [{"name": f"_update_{name}", "forward_s": stretch * s} for name, s in alone.items()]


_OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-6),
    "momentum": lambda p: torch.optim.SGD(p, lr=1e-6, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-6),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-6),
}


def _plain_steps(trainer: Trainer, clock: Any, n_steps: int) -> list[float]:
    """Return the times of whole steps without any hooks: what the parts must add up to."""
    times = []
    for _ in range(n_steps):
        begin = clock()
        trainer.overlapped(1, trainer.network)
        times.append(clock() - begin)
    return times


def measure_crowd(job: dict[str, Any], device: torch.device) -> list[_Row]:
    """Time steps beside those of the other workers, by the clock on the wall.

    ``_alone`` are those of the first worker while the others wait: machines get faster and slower
    by the minute, so the same minute tells what being many costs. ``_together`` begin at once and
    exchange nothing; ``_exchanged`` add up gradients as DDP does.
    """
    trainer, n_steps = Trainer(job, device), job["n_steps"]
    trainer.overlapped(job["n_warmup"], trainer.network)
    dist.barrier()
    alone = trainer.overlapped(n_steps, trainer.network) if dist.get_rank() == 0 else []
    together = []
    for _ in range(n_steps):
        dist.barrier()
        together += trainer.overlapped(1, trainer.network)
    replica = distributed(trainer.network, device)
    trainer.overlapped(job["n_warmup"], replica)
    exchanged = trainer.overlapped(n_steps, replica)
    return [
        {"name": "_alone", "seconds": alone},
        {"name": "_together", "seconds": together},
        {"name": "_exchanged", "seconds": exchanged},
    ]


def run_probe(job: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Measure what a job asks for."""
    gc.collect()
    values = job["values"]
    probes: dict[str, Callable[[], list[_Row]]] = {
        "rates": lambda: measure_rates(values, device),
        "memory": lambda: measure_memory(values, device),
        "network": lambda: measure_network(job, device),
        "crowd": lambda: measure_crowd(job, device),
        "collectives": lambda: measure_collectives(values, device),
        "divided": lambda: measure_divided(values, device),
        "sharded": lambda: measure_sharded(values, device),
        "piped": lambda: measure_piped(values, device),
    }
    return {"step_s": [], "layers": probes[values["probe"]]()}


def _connect(backend: str) -> None:
    if os.environ.get("MASTER_ADDR") == "127.0.0.1":
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback)
    dist.init_process_group(backend, init_method="env://")


def main() -> None:
    """Serve probes; the backend of exchanges is the first argument."""
    backend = sys.argv[1] if len(sys.argv) > 1 else "gloo"
    device = torch.device("cpu")
    if backend == "nccl":
        local = int(os.environ.get("LOCAL_RANK", "0"))
        device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if protocol.world_size() > 1:
        _connect(backend)
    protocol.serve("torch", {"torch": torch.__version__}, lambda job: run_probe(job, device))
    sys.stderr.flush()
    os._exit(0)  # at once, as the other worker does


if __name__ == "__main__":
    main()
