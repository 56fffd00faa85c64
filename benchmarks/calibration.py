"""How well `paceline calibrate` and the oracle foretell data-parallel steps on this machine.

The machine is calibrated by the ten short networks of `paceline calibrate`. Then other sizes of
three networks are trained on 1, 2 and 3 workers, and, where network namespaces can be made, on
2 and 3 hosts with links of limited bandwidth, which are calibrated by the same command. A time is
that of the fastest of five fresh processes: its least steady step, or its median one where workers
share cores. Run it on a machine that does nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from namespaces import Hosts, can_make_hosts, limited_hosts
from paceline.clusters import Cluster
from paceline.executors import FrameworkExecutor
from paceline.measurement import calibrate
from paceline.scenario import Plan, Strategy
from plans_timing import Timed, jobs_of, mean, plan_one, quick, time_jobs

# none of these sizes is among the networks that calibrate
NETWORKS: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "lenet5": ({"filters": 16, "kernel_size": 5}, (48, 192)),
    "mlp": ({"hidden": 2, "width": 640}, (48, 192)),
    "resnet18": ({"filters": 48, "image_size": 48, "n_classes": 20}, (6, 16)),
}
LARGEST = {1: 0.10, 2: 0.10, 3: 0.15}
LIMITS_BITS = (200e6, 1e9)


def measure() -> dict[str, Any]:
    lives = 1 if quick() else 5
    figures: dict[str, Any] = {"one host": _compare("one host", (1, 2, 3), lives, None)}
    if not can_make_hosts():
        print("limited links: left out, since making network namespaces needs root")
        return figures
    for bits in LIMITS_BITS[: 1 if quick() else None]:
        label = f"links of {bits / 1e6:.0f} Mbit/s"
        with limited_hosts(3, bits) as hosts:
            figures[label] = _compare(label, (2, 3), lives, hosts)
    return figures


def _compare(label: str, counts: tuple[int, ...], lives: int, hosts: Hosts | None) -> Any:
    """Calibrate, predict and measure; print each and return all."""
    elsewhere = {"environment": hosts.environment, "launch": hosts.launch} if hosts else {}
    start = time.perf_counter()
    found = calibrate(workers=counts, **elsewhere)
    seconds = time.perf_counter() - start
    print(f"-- {label}: calibrated in {seconds:.0f} s\n{found}", flush=True)
    plans = {n: _plans(found.cluster, n) for n in counts}
    executor = FrameworkExecutor("torch", **elsewhere)
    # all in turn: what the machine changes by within minutes is seen by every job
    jobs = {(n, name): job for n in counts for name, job in jobs_of(plans[n], 8, 3).items()}
    timed = time_jobs(jobs, lives, executor)
    by_count = {
        n: _errors(label, n, plans[n], {name: timed[n, name] for name in plans[n]}) for n in counts
    }
    return {"calibrate_s": seconds, "workers": by_count}


def _plans(cluster: Cluster, n: int) -> dict[str, Plan]:
    return {
        f"{name} {batch} a worker": plan_one(name, values, Strategy(data=n), n * batch, cluster)
        for name, (values, batches) in NETWORKS.items()
        for batch in batches
    }


def _errors(label: str, n: int, plans: Mapping[str, Plan], timed: Mapping[str, Timed]) -> Any:
    rows, errors, floors = {}, [], []
    for name, plan in plans.items():
        predicted, measured = plan.predicted["step_s"], timed[name].step_s
        errors.append(abs(predicted / measured - 1))
        floors.append(_floor(timed[name]))
        rows[name] = {"predicted_s": predicted, "measured_s": measured, "floor": floors[-1]}
        shown = f"{1e3 * predicted:8.2f} ms predicted {1e3 * measured:8.2f} measured"
        print(f"  {name:22} {shown} {100 * (predicted / measured - 1):+6.1f} %", flush=True)
    verdict = "holds" if mean(errors) <= LARGEST[n] else "misses"
    print(
        f"{label}, {n} workers: off by {100 * mean(errors):.1f} % on average ({verdict} "
        f"{100 * LARGEST[n]:.0f} %); processes differ by {100 * mean(floors):.1f} %",
        flush=True,
    )
    return {"scenarios": rows, "mean_error": mean(errors), "noise_floor": mean(floors)}


def _floor(timed: Timed) -> float:
    """Return by how much the fresh processes of one job differ from their middle."""
    lives = np.array(timed.lives_s)
    return float(np.mean(np.abs(lives / np.median(lives) - 1)))
