"""A plan as a script of its own that torchrun starts."""

from __future__ import annotations

import json
import math
from pathlib import Path
from string import Template
from typing import Any

from paceline.errors import InvalidInputError
from paceline.scenario import Plan, Strategy
from paceline.workloads import load_workload

_MOST_PER_NODE = 8


def export_script(plan: Plan, path: str | Path = "train.py") -> tuple[str, str]:
    """Return a training script of a plan, and the command that starts it.

    Parameters
    ----------
    plan
        Of data, sharded (ZeRO-2 and 3) or pipeline parallelism, with or without replicas.
    path
        Where the script will be, for the command.

    Raises
    ------
    InvalidInputError
        When the plan divides layers, which torch does not do by itself.
    """
    strategy = plan.strategy
    inner = strategy.n_devices // (strategy.data * strategy.pipeline)
    if inner > 1 or strategy.schedule == "unlocked" or strategy.shard == 1:
        raise InvalidInputError(
            "An exported plan must be of data, ZeRO-2, ZeRO-3 or pipeline parallelism, but this "
            f"one is {strategy}. Run it with: paceline run"
        )
    if strategy.recompute:
        raise InvalidInputError("An exported plan must not recompute. Run it with: paceline run")
    text = _TEMPLATE.substitute(plan=_literal(_settings(plan)), summary=str(strategy))
    return text, _command(strategy.n_devices, Path(path))


def _settings(plan: Plan) -> dict[str, Any]:
    strategy = plan.strategy
    ranks = {d: i for i, d in enumerate(sorted(d for row in plan.placement for d in row))}
    return {
        "workload": dict(plan.workload),
        "splits": _splits(plan),
        "placement": [[ranks[d] for d in row] for row in plan.placement],
        "replica_batches": list(plan.replica_batches),
        "micro_batches": strategy.micro_batches,
        "schedule": strategy.schedule if strategy.virtual_stages > 1 else _plain(strategy),
        "shard": strategy.shard,
        "optimizer": plan.optimizer,
        "precision": plan.precision,
        "predicted_step_s": plan.predicted["step_s"],
    }


def _splits(plan: Plan) -> list[str]:
    """Return what every stage but the first begins with: a part of ours, or a user's module."""
    if "module" in plan.workload:
        return [stage.names[0] for stage in plan.stages[1:]]
    workload = load_workload(str(plan.workload["name"]))
    layers = workload.graph(dict(plan.workload.get("values") or {})).layers
    return [layers[stage.first].block for stage in plan.stages[1:]]


def _plain(strategy: Strategy) -> str:
    return "gpipe" if strategy.schedule in ("gpipe", "sequential") else "1f1b"


def _literal(settings: dict[str, Any]) -> str:
    """Return settings as Python that is also readable."""
    text = json.dumps(settings, indent=4)
    return text.replace(": true", ": True").replace(": false", ": False").replace("null", "None")


def _command(n: int, path: Path) -> str:
    if n <= _MOST_PER_NODE:
        return f"torchrun --standalone --nproc-per-node {n} {path}"
    per_node = math.gcd(n, _MOST_PER_NODE)
    return (
        f"torchrun --nnodes {n // per_node} --nproc-per-node {per_node} --rdzv-backend c10d "
        f"--rdzv-endpoint HOST:29500 {path}"
    )


_TEMPLATE = Template('''"""Train as planned: $summary. Written by Paceline; yours to change."""

import argparse
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    SplitPoint,
    pipeline,
)

PLAN = $plan
DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16}


def build():
    """Return the network, what a sample is, and the loss's name."""
    torch.manual_seed(0)
    workload = PLAN["workload"]
    if "module" in workload:
        import importlib.util

        module = workload["module"]
        spec = importlib.util.spec_from_file_location("own_network", module["file"])
        file = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(file)
        network = getattr(file, module["name"])(**module["arguments"])
        return network, workload["sample"], workload["loss"], []
    import paceline.executors.workers as workers
    from paceline.workloads import load_workload

    sys.path.insert(0, list(workers.__path__)[0])
    from torch_network import build as build_network

    job = load_workload(workload["name"]).job_keywords(workload["values"])
    network = build_network({**job, "seed": 0})
    return network, job["sample"], job["loss"], [op["name"] for op in job["network"]]


def generate(sample, loss, n, dtype):
    """Return inputs and targets of the right shape; put your own data here."""
    if "vocabulary" in sample:
        tokens = torch.randint(sample["vocabulary"], (n, sample["shape"][0] + 1))
        return tokens[:, :-1], tokens[:, 1:]
    inputs = torch.rand(n, *sample["shape"]).to(dtype)
    if loss == "mse":
        return inputs, inputs.flatten(1)
    return inputs, torch.randint(sample["n_classes"], (n,))


def loss_of(name):
    """Return the function from outputs and targets to a mean loss."""
    if name == "mse":
        return lambda outputs, targets: nn.functional.mse_loss(outputs.flatten(1), targets)
    return lambda outputs, targets: nn.functional.cross_entropy(
        outputs.flatten(0, -2), targets.flatten()
    )


def stages_of(network, names, example, mine, device, group):
    """Return this worker's stages of the network, cut where the plan says."""
    n_stages = len(PLAN["splits"]) + 1
    if isinstance(network, nn.Sequential) and names:
        inside = [names.index(name) for name in PLAN["splits"]]
        bounds = [0, *inside, len(network)]
        return [
            PipelineStage(network[bounds[i] : bounds[i + 1]].to(device), i, n_stages, device,
                          group=group)
            for i in mine
        ]
    spec = {name: SplitPoint.BEGINNING for name in PLAN["splits"]}
    traced = pipeline(network, mb_args=(example,), split_spec=spec)
    return [traced.build_stage(i, device, group=group) for i in mine]


def main():
    """Train for some steps and print how long they take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10)
    steps = parser.parse_args().steps
    has_gpus = torch.cuda.is_available()
    dist.init_process_group("nccl" if has_gpus else "gloo")
    rank = dist.get_rank()
    device = torch.device("cpu")
    if has_gpus:
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    placement = torch.tensor(PLAN["placement"])
    if placement.numel() != dist.get_world_size():
        sys.exit(f"This plan is for {placement.numel()} workers, not {dist.get_world_size()}.")
    mesh = DeviceMesh(device.type, placement, mesh_dim_names=("data", "pipeline"))
    replica, stage = (int(i) for i in (placement == rank).nonzero()[0])
    batch, total = PLAN["replica_batches"][replica], sum(PLAN["replica_batches"])
    dtype = DTYPES[PLAN["precision"]]
    network, sample, loss_name, names = build()
    network = network.to(dtype).train()
    loss_fn = loss_of(loss_name)
    torch.manual_seed(1 + replica)
    n_stages, pieces = placement.shape[1], PLAN["micro_batches"]

    if n_stages == 1:
        network = network.to(device)
        if PLAN["shard"] and dist.get_world_size() > 1:
            from torch.distributed.fsdp import fully_shard

            for part in network.children():
                if any(True for _ in part.parameters()):
                    fully_shard(part, mesh=mesh["data"],
                                reshard_after_forward=PLAN["shard"] == 3)
            trained = fully_shard(network, mesh=mesh["data"])
        else:
            trained = nn.parallel.DistributedDataParallel(network)
        parameters = list(trained.parameters())

        def gradients(inputs, targets):
            found = 0.0
            for x, y in zip(inputs.chunk(pieces), targets.chunk(pieces)):
                loss = loss_fn(trained(x), y) * len(x) / len(inputs)
                # replicas with more samples weigh more
                torch.autograd.backward(loss * (batch / total * len(placement)))
                found += loss.item()
            return found
    else:
        mine = list(range(stage, len(PLAN["splits"]) + 1, n_stages))
        example = generate(sample, loss_name, batch // pieces, dtype)[0]
        parts = stages_of(network, names, example, mine, device, mesh.get_group("pipeline"))
        parameters = [p for part in parts for p in part.submod.parameters()]
        if len(mine) > 1:
            schedule = ScheduleInterleaved1F1B(parts, pieces, loss_fn=loss_fn)
        else:
            kinds = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
            schedule = kinds[PLAN["schedule"]](parts[0], pieces, loss_fn=loss_fn)
        is_last = len(PLAN["splits"]) in mine

        def gradients(inputs, targets):
            losses = []
            given = (inputs,) if stage == 0 else ()
            schedule.step(*given, **({"target": targets, "losses": losses} if is_last else {}))
            if len(placement) > 1:
                for p in parameters:
                    p.grad.mul_(batch / total)
                    dist.all_reduce(p.grad, group=mesh.get_group("data"))
            return sum(x.item() for x in losses) / len(losses) if losses else None

    kinds = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.01),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=0.001),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.001),
    }
    optimizer = kinds[PLAN["optimizer"]](parameters)
    times = []
    for step in range(steps):
        inputs, targets = (t.to(device) for t in generate(sample, loss_name, batch, dtype))
        dist.barrier()
        begin = time.perf_counter()
        loss = gradients(inputs, targets)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        times.append(time.perf_counter() - begin)
        if loss is not None and replica == 0:
            print(f"step {step}: loss {loss:.4f}, {times[-1]:.4f} s", flush=True)
    if rank == 0:
        median = sorted(times)[len(times) // 2]
        print(f"median {median:.4g} s, predicted {PLAN['predicted_step_s']:.4g} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
''')
