"""One of several processes that train a step for real and count the bytes that they send."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import pipelining
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Join the group, take three steps, print what the third one sent."""
    task = json.loads(sys.argv[1])
    rank, n = task["rank"], task["n"]
    sys.path.insert(0, task["workers"])  # as the executor runs its worker files
    dist.init_process_group("gloo", init_method=f"file://{task['store']}", rank=rank, world_size=n)
    torch.set_num_threads(1)
    step = replicated(task) if task["bounds"] is None else staged(task)
    from torch_counting import Traffic

    for _ in range(3):  # in the second, replicas agree on their buckets
        with Traffic() as traffic:
            step()
    print(json.dumps(dict(traffic.payload)), flush=True)
    dist.barrier()
    os._exit(0)  # at once: taking the group down may wait for neighbours that are gone


def network(task: dict[str, Any]) -> nn.Sequential:
    from torch_network import build

    return build({"seed": 0, "network": task["operations"]})


def samples(task: dict[str, Any], n: int) -> tuple[torch.Tensor, torch.Tensor]:
    sample = task["sample"]
    if sample.get("vocabulary"):
        tokens = torch.randint(0, sample["vocabulary"], (n, *sample["shape"]))
        return tokens, tokens
    return torch.randn(n, *sample["shape"]), torch.randint(0, sample["n_classes"], (n,))


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(output.flatten(0, -2), target.flatten())


def replicated(task: dict[str, Any]) -> Any:
    """Return a step of data parallelism."""
    module = DistributedDataParallel(network(task))
    x, y = samples(task, task["batch"] // task["n"])

    def step() -> None:
        loss_of(module(x), y).backward()

    return step


def staged(task: dict[str, Any]) -> Any:
    """Return a step of a pipeline with as many stages as processes."""
    rank, n = task["rank"], task["n"]
    first, end = task["bounds"][rank : rank + 2]
    module = network(task)[first:end]
    stage = pipelining.PipelineStage(module, rank, n, torch.device("cpu"))
    kinds = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B}
    schedule = kinds[task["schedule"]](stage, task["micro_batches"], loss_fn=loss_of)
    x, y = samples(task, task["batch"])

    def step() -> None:
        given = (x,) if rank == 0 else ()
        schedule.step(*given, target=y if rank == n - 1 else None)

    return step


if __name__ == "__main__":
    main()
