"""A user's training script, which knows nothing of Paceline."""

import argparse
import json
import time
from pathlib import Path

import torch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--optimizers", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--ddp", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = [torch.nn.Linear(args.width, args.width) for _ in range(3)]
    net: torch.nn.Module = torch.nn.Sequential(*layers)
    if args.ddp:
        torch.distributed.init_process_group("gloo")
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizers = [
        torch.optim.SGD(list(net.parameters())[i :: args.optimizers], lr=0.01)
        for i in range(args.optimizers)
    ]
    log = Path(args.json).open("w") if args.json else None  # noqa: SIM115
    x = torch.randn(args.batch, args.width)
    began = time.perf_counter()
    for step in range(args.steps):
        for _ in range(args.accumulate):
            net(x).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        now = time.perf_counter()
        print(f"step {step} time {now - began:.6f}", flush=True)
        if log:
            log.write(json.dumps({"step": step, "step_s": now - began}) + "\n")
        began = now
    if args.ddp:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
