"""Predicted against measured step times of all strategies, and the regret of chosen plans."""

from __future__ import annotations

from typing import Any

import numpy as np

from paceline.planners import plan_training
from paceline.scenario import Plan, Strategy
from paceline.workloads import load_workload
from plans_timing import Timed, jobs_of, mean, plan_one, possible, quick, this_machine, time_jobs

# samples of a step with each: steps of some 20 to 500 ms on one thread
NETWORKS: dict[str, tuple[str, dict[str, Any], int]] = {
    "lenet5": ("lenet5", {"filters": 32}, 256),
    "mlp": ("mlp", {"hidden": 3, "width": 1024}, 256),
    "resnet18": ("resnet18", {"image_size": 32, "filters": 32, "n_classes": 10}, 32),
    "resattnet18": ("resattnet18", {"volume": 32, "filters": 8}, 16),
    "gpt": (
        "gpt",
        {"layers": 4, "width": 128, "heads": 4, "length": 64, "vocabulary": 1024},
        16,
    ),
}
STRATEGIES = {
    "serial": Strategy(),
    "data": Strategy(data=2),
    "accumulated": Strategy(data=2, micro_batches=2),
    "zero2": Strategy(data=2, shard=2),
    "zero3": Strategy(data=2, shard=3),
    "1f1b": Strategy(pipeline=2, micro_batches=8),
    "gpipe": Strategy(pipeline=2, micro_batches=4, schedule="gpipe"),
    "unlocked": Strategy(pipeline=2, micro_batches=8, schedule="unlocked"),
    "filter": Strategy(filter=2),
    "channel": Strategy(channel=2),
    "spatial": Strategy(spatial=2),
    "tensor": Strategy(tensor=2),
}
LARGEST_ERROR, LARGEST_REGRET = 0.15, 0.03


def predictions() -> dict[str, Any]:
    """Return predicted and measured steps of every scenario, and their mean error."""
    plans = _plans(list(NETWORKS)[:1] if quick() else list(NETWORKS))
    timed = time_jobs(jobs_of(plans, 4 if quick() else 8), 1 if quick() else 5)
    rows, errors = {}, []
    for label, plan in plans.items():
        predicted, measured = plan.predicted["step_s"], timed[label].step_s
        errors.append(abs(predicted / measured - 1))
        rows[label] = {"predicted_s": predicted, "measured_s": measured}
        shown = f"{1e3 * predicted:8.1f} ms predicted {1e3 * measured:8.1f} measured"
        print(f"  {label:24} {shown} {100 * (predicted / measured - 1):+6.1f} %", flush=True)
    by_strategy = {
        name: mean([e for label, e in zip(plans, errors, strict=True) if label.endswith(name)])
        for name in STRATEGIES
        if any(label.endswith(name) for label in plans)
    }
    for name, error in by_strategy.items():
        print(f"  mean of {name:16} {100 * error:5.1f} %")
    verdict = "holds" if mean(errors) <= LARGEST_ERROR else "misses"
    print(f"{len(plans)} scenarios, mean error {100 * mean(errors):.1f} % ({verdict} 15 %)")
    return {"scenarios": rows, "mean_error": mean(errors), "by_strategy": by_strategy}


def regrets() -> dict[str, Any]:
    """Return how much slower the chosen plan is than the best of those tried."""
    found = {}
    for network in list(NETWORKS)[:1] if quick() else ("lenet5", "resnet18", "gpt"):
        found[network] = _regret(network)
    return found


def _plans(networks: list[str]) -> dict[str, Plan]:
    cluster, plans = this_machine(), {}
    for network in networks:
        name, values, batch = NETWORKS[network]
        for label, strategy in STRATEGIES.items():
            if network != "gpt" and label == "tensor":
                continue
            plan = possible(
                lambda n=name, v=values, s=strategy, b=batch: plan_one(n, v, s, b, cluster)
            )
            if plan is not None:
                plans[f"{network} {label}"] = plan
    return plans


def _regret(network: str) -> dict[str, Any]:
    name, values, batch = NETWORKS[network]
    plans = _plans([network])
    plans["chosen"] = plan_training(
        load_workload(name).graph(values),
        this_machine(),
        2,
        batch,
        workload={"name": name, "values": dict(values)},
        optimizer="sgd",
    )
    tried = time_jobs(jobs_of(plans, 4 if quick() else 8), 1 if quick() else 2)
    best = min(tried, key=lambda label: tried[label].step_s)
    if plans[best].strategy == plans["chosen"].strategy:
        best = "chosen"
    # again, in turn: what was picked as the best of many was also lucky
    again = {label: plans[label] for label in ("chosen", best)}
    retimed = time_jobs(jobs_of(again, 4 if quick() else 10), 1 if quick() else 7)
    regret, low, high = _interval(retimed["chosen"], retimed[best])
    verdict = "holds" if low <= LARGEST_REGRET else "misses"
    print(
        f"  {network}: chosen {plans['chosen'].strategy}, best tried {plans[best].strategy}; "
        f"regret {100 * regret:+.1f} % (90 % interval {100 * low:+.1f} to {100 * high:+.1f}; "
        f"{verdict} 3 %)",
        flush=True,
    )
    return {"chosen": str(plans["chosen"].strategy), "best": str(plans[best].strategy)} | {
        "regret": regret,
        "interval": [low, high],
    }


def _interval(chosen: Timed, best: Timed) -> tuple[float, float, float]:
    """Return the regret of the fastest lives, and its 90 % interval by resampling lives."""
    rng = np.random.default_rng(0)
    a, b = np.array(chosen.lives_s), np.array(best.lives_s)
    draws = [rng.choice(a, len(a)).min() / rng.choice(b, len(b)).min() - 1 for _ in range(2000)]
    low, high = np.quantile(draws, [0.05, 0.95])
    return float(a.min() / b.min() - 1), float(low), float(high)
