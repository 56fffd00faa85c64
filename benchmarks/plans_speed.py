"""Speed of plans on two cores, and of planted waits on up to eight processes."""

from __future__ import annotations

import itertools
from typing import Any

from paceline.clusters import load_cluster
from paceline.executors import Job
from paceline.scenario import Strategy
from paceline.workloads import load_workload
from plans_timing import jobs_of, plan_one, quick, this_machine, time_jobs

# a micro-batch of 8 samples takes some 140 ms on one thread, and has few weights to add up
NETWORK = ("resnet18", {"image_size": 128, "filters": 32, "n_classes": 100})
BATCH = 128
WANTED = 1.7
DEVICES = (1, 2, 4, 8, 16, 32, 64)


def two_workers() -> dict[str, Any]:
    """Time two workers of one thread each against one."""
    name, values = NETWORK
    cluster, micro = this_machine(), 16
    strategies = {
        "serial": Strategy(),
        "serial, 16 micro-batches": Strategy(micro_batches=micro),
        "data 2": Strategy(data=2),
        "pipeline 2": Strategy(pipeline=2, micro_batches=micro),
        "unlocked 2": Strategy(pipeline=2, micro_batches=micro, schedule="unlocked"),
    }
    plans = {n: plan_one(name, values, s, BATCH, cluster) for n, s in strategies.items()}
    timed = time_jobs(jobs_of(plans, 2 if quick() else 5, 1), 1 if quick() else 5)
    base = timed["serial"].step_s
    print(f"{name}, {BATCH} samples a step; fastest step of fresh processes in turn")
    figures = {}
    for label, found in timed.items():
        speedup = base / found.step_s
        figures[label] = {"step_s": found.step_s, "speedup": speedup}
        print(f"  {label:26} {found.step_s:7.3f} s   {speedup:.2f} x one worker", flush=True)
    held = min(figures[n]["speedup"] for n in ("data 2", "pipeline 2")) >= WANTED
    unlocked = figures["unlocked 2"]["speedup"] >= figures["pipeline 2"]["speedup"]
    print(f"  data and pipeline at least {WANTED} x: {held}; unlocked not slower: {unlocked}")
    return figures


def planted_unlocked() -> dict[str, Any]:
    """Time eight equal blocks of planted waits on K stages without locks."""
    n_blocks, micro, wait_s = 8, 16, 0.002 if quick() else 0.01
    network = [op for i in range(n_blocks) for op in _block(f"b{i}", wait_s)]
    jobs = {}
    for k in (1, 2, 4, 8):
        size = len(network) // k
        strategy = {"pipeline": k, "micro_batches": micro, "schedule": "unlocked"}
        stages = [[i * size, (i + 1) * size] for i in range(k)]
        jobs[str(k)] = _waiting_job([*network, _head()], strategy, stages, batch=micro)
    return _speedups("unlocked, planted waits", jobs)


def planted_hybrid() -> dict[str, Any]:
    """Time a small 3D-ResAttNet whose units wait as the large one's would compute."""
    name, small = "resattnet34", {"volume": 16, "filters": 4}  # can be cut into equal halves
    # seconds of a sample, both passes; pieces large enough for two cores to compute between waits
    batch, piece, total_s = (512 if quick() else 2048), 32, 0.03
    units = _shares(name)
    network = load_workload(name).network(small)
    operations = []
    for operation, share in zip(network.operations, units, strict=True):
        wait = {"forward_s": total_s * share / 3, "backward_s": total_s * share * 2 / 3}
        operations += [operation, {"op": "sleep", "name": f"{operation['name']}.wait", **wait}]
    cut = 2 * _halves(units)
    stages = [[0, cut], [cut, len(operations)]]
    jobs = {}
    for k, data in ((1, 1), (2, 2), (4, 2), (8, 4)):
        strategy = {"data": data, "pipeline": k // data, "micro_batches": batch // data // piece}
        chosen = stages if k > data else [[0, len(operations)]]
        jobs[str(k)] = _waiting_job(operations, strategy, chosen, batch, dict(network.sample))
    return _speedups("3D-ResAttNet hybrid (data x pipeline), planted waits", jobs, n_lives=1)


def predicted_speedups() -> dict[str, Any]:
    """Return what plans for up to 64 real devices promise, at the same global batch."""
    cluster, batch = load_cluster("dgx-a100"), 128
    found = {}
    print(f"predicted for resattnet34 on dgx-a100, {batch} samples a step (speedup by devices)")
    for label, make in _predicted().items():
        step_s = []
        for n in DEVICES:
            plan = plan_one("resattnet34", {}, make(n), batch, cluster, runnable_only=False)
            step_s.append(plan.predicted["step_s"])
        found[label] = {n: step_s[0] / t for n, t in zip(DEVICES, step_s, strict=True)}
        shown = "  ".join(f"{n}: {s:.1f}" for n, s in found[label].items())
        print(f"  {label:22} {shown}", flush=True)
    return found


def _predicted() -> dict[str, Any]:
    def hybrid(schedule: str) -> Any:
        def make(n: int) -> Strategy:
            stages = min(n, 4)
            data = n // stages
            micro = min(32, 128 // data) if stages > 1 else 1
            return Strategy(data=data, pipeline=stages, micro_batches=micro, schedule=schedule)

        return make

    return {
        "data": lambda n: Strategy(data=n),
        "data x pipeline 4": hybrid("1f1b"),
        "data x unlocked 4": hybrid("unlocked"),
    }


def _speedups(title: str, jobs: dict[str, Job], n_lives: int = 2) -> dict[str, Any]:
    timed = time_jobs(jobs, 1 if quick() else n_lives)
    base = timed["1"].step_s
    print(f"{title}: runtime overhead only")
    figures = {}
    for k, found in timed.items():
        share = base / found.step_s / int(k)
        figures[k] = {"step_s": found.step_s, "share": share}
        verdict = "holds" if share >= 0.9 else "misses"
        shown = f"{base / found.step_s:.2f} x = {share:.3f} K"
        print(f"  {k} workers: {found.step_s:.3f} s, {shown} ({verdict})", flush=True)
    return figures


def _block(name: str, wait_s: float) -> list[dict[str, Any]]:
    linear = {"op": "linear", "name": f"{name}.map", "in": 16, "out": 16, "bias": True}
    return [linear, _sleep(name, wait_s)]


def _sleep(name: str, wait_s: float) -> dict[str, Any]:
    return {"op": "sleep", "name": f"{name}.wait", "forward_s": wait_s, "backward_s": 2 * wait_s}


def _head() -> dict[str, Any]:
    return {"op": "linear", "name": "head", "in": 16, "out": 10, "bias": True}


def _waiting_job(
    operations: list[dict[str, Any]],
    strategy: dict[str, Any],
    stages: list[list[int]],
    batch: int,
    sample: dict[str, Any] | None = None,
) -> Job:
    full = {"data": 1, "pipeline": 1, "schedule": "1f1b", **strategy}
    n = full["data"] * full["pipeline"]
    stages = [*stages[:-1], [stages[-1][0], len(operations)]]
    inner = full["pipeline"]
    return Job(
        network=operations,
        sample=sample or {"shape": [16], "n_classes": 10},
        optimizer={"name": "sgd", "learning_rate": 0.01},
        device_batches=[batch // full["data"]] * n,
        data={"kind": "generated", "n_samples": batch},
        n_warmup=1,
        n_steps=2,
        division={
            "strategy": full,
            "placement": [list(range(q * inner, (q + 1) * inner)) for q in range(full["data"])],
            "stages": stages,
            "replica_batches": [batch // full["data"]] * full["data"],
        },
    )


def _shares(name: str) -> list[float]:
    """Return the share of every unit in the FLOP of the network at its full size."""
    graph = load_workload(name).graph()
    flop = graph.column("forward_flop")
    each = [float(flop[a:b].sum()) for a, b in graph.units]
    return [x / sum(each) for x in each]


def _halves(shares: list[float]) -> int:
    """Return behind which unit the network is cut into the most equal halves."""
    sums = list(itertools.accumulate(shares))
    return 1 + min(range(len(sums)), key=lambda i: abs(sums[i] - 0.5))
