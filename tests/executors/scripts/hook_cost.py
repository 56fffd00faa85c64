"""Print what the optimizer hook costs, as JSON: steps with and without it in turn, one process.

The cost in seconds is read off a step so small that it stands out of the noise (a single
parameter), then set against a real step (three layers, a millisecond or two). CPU time of the
thread is taken: other people's load is not the hook's cost. A tiny step leaves the caches warm,
so a real one pays more: `ratio` shows it, but needs several runs to stand out of the noise.
"""

import importlib.util
import json
import random
import sys
import time
from collections.abc import Callable
from statistics import median

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def hook_of(path: str) -> Callable[..., None]:
    spec = importlib.util.spec_from_file_location("step_times", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module._Recorder(lambda hook: None).note


def interleaved(net: torch.nn.Module, x: torch.Tensor, hook: object, n: int) -> list[list[float]]:
    """Return seconds of steps without the hook, again without (a control), and with it."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    times: list[list[float]] = [[], [], []]
    for _ in range(n):
        for arm in random.sample(range(3), 3):
            handle = register_optimizer_step_post_hook(hook)
            if arm < 2:  # the same preparation for both, then none to call
                handle.remove()
            began = time.thread_time()
            net(x).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            times[arm].append(time.thread_time() - began)
            handle.remove()
    return times


def mean_call_s(hook: Callable[..., None], n: int = 50_000) -> float:
    """Return the mean of many calls: it holds what is written now and then, a median does not."""
    began = time.thread_time()
    for _ in range(n):
        hook(None, (), {})
    return (time.thread_time() - began) / n


def main() -> None:
    torch.set_num_threads(1)
    hook = hook_of(sys.argv[1])
    n = int(sys.argv[2])
    tiny = interleaved(torch.nn.Linear(1, 1, bias=False), torch.ones(1, 1), hook, 10 * n)
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(3)])
    real = interleaved(net, torch.randn(32, 256), hook, n)
    outcome = {
        "tiny_step_s": median(tiny[0]),
        "cost_s": median(tiny[2]) - median(tiny[0]),
        "call_s": mean_call_s(hook),
        "step_s": median(real[0]),
        "ratio": median(real[2]) / median(real[0]),
        "control_ratio": median(real[1]) / median(real[0]),
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
