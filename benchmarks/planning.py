"""Planners beside what they must beat: placements, cuts, shardings, and the time of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from paceline.clusters import load_cluster
from paceline.errors import InfeasibleError
from paceline.planners import (
    Chain,
    PassTimes,
    PlacementProblem,
    partition_and_merge,
    partition_exactly,
    partition_greedily,
    place_at_random,
    place_by_annealing,
    place_by_assignment,
    place_exactly,
    place_genetically,
    place_round_robin,
    search_plans,
    search_shardings,
    search_unequal,
    shard_exactly,
    sharding_problem,
)
from paceline.workloads import load_workload

N_SMALL, N_LARGE = 8, 4  # placements with a proven best, and with the best that any found
N_CHAINS = 50
DEEP = {"layers": 96, "width": 1024, "heads": 16, "length": 1024, "vocabulary": 50000}
PLANS = (
    ("resnet152", {}, "abci", 64, 1024),
    ("resnet152", {}, "abci", 1024, 4096),
    ("gpt", DEEP, "dgx-a100", 64, 64),
    ("gpt", DEEP, "dgx-a100", 1024, 1024),
)


def measure() -> dict[str, object]:
    return {
        "placements": placements(),
        "cuts": cuts(),
        "unequal": unequal(),
        "shardings": shardings(),
        "plans": [plan(*asked) for asked in PLANS],
    }


def random_placement(seed: int, n_stages: int, n_replicas: int) -> PlacementProblem:
    """Return stages and replicas for as many devices of different speed in nodes of two."""
    rng = np.random.default_rng(seed)
    n = n_stages * n_replicas
    node = rng.permutation(n) // 2
    far = node[:, None] != node[None, :]
    apart = ~np.eye(n, dtype=bool)
    return PlacementProblem(
        stage_s=rng.lognormal(0, 0.5, n_stages),
        hand_over_bytes=rng.lognormal(0, 0.5, n_stages - 1) * 3e8,
        weight_bytes=rng.lognormal(0, 0.5, n_stages) * 3e8,
        memory_bytes=np.ones(n_stages),
        n_replicas=n_replicas,
        micro_batches=int(rng.choice([2, 8, 16])),
        speeds=rng.uniform(0.5, 2, n),
        memories=np.ones(n),
        latency_s=np.where(far, 1e-4, 1e-5) * apart,
        seconds_per_byte=np.where(far, 1e-9, 1e-10) * apart,
    )


def placements() -> dict[str, dict[str, float]]:
    """Return by how much each placement is slower than the best, on average."""
    small = [random_placement(seed, 3, 2) for seed in range(N_SMALL)]
    large = [random_placement(seed, 4, 4) for seed in range(N_LARGE)]
    proven = [place_exactly(problem, max_seconds=10).step_s for problem in small]
    return {
        "6 devices, proven": compared("6 devices, proven", small, proven),
        "16 devices, best found": compared("16 devices, best found", large, None),
    }


def compared(
    label: str, problems: list[PlacementProblem], best: list[float] | None
) -> dict[str, float]:
    """Print the gaps of every way; annealing and draws take as many evaluations as genes."""
    times: dict[str, list[float]] = {}
    for seed, problem in enumerate(problems):
        genetic = place_genetically(problem, use_seeds=False, random_state=seed)
        n = genetic.n_evaluations
        ways: dict[str, Callable[[], float]] = {
            "genetic": lambda g=genetic: g.step_s,
            "annealing": lambda p=problem, n=n: place_by_annealing(p, n).step_s,
            "random": lambda p=problem, n=n: place_at_random(p, n).step_s,
            "assignment": lambda p=problem: place_by_assignment(p).step_s,
            "round-robin": lambda p=problem: float(p.step_seconds(place_round_robin(p)[None])[0]),
        }
        for name, way in ways.items():
            times.setdefault(name, []).append(_seconds(way))
    table = np.array(list(times.values()))
    least = table.min(axis=0) if best is None else np.array(best)
    means = dict(zip(times, (table / least - 1).mean(axis=1).tolist(), strict=True))
    for name, mean in means.items():
        print(f"placement, {label}, {name:>12}: {100 * mean:6.2f} % above it", flush=True)
    return means


def _seconds(way: Callable[[], float]) -> float:
    try:
        return way()
    except InfeasibleError:
        return float("inf")


def cuts() -> dict[str, float]:
    """Return by how much merged and greedy cuts are slower than the exact one."""
    gaps: dict[str, list[float]] = {"merged": [], "greedy": []}
    for seed in range(N_CHAINS):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(16, 64)), int(rng.choice([2, 4, 8]))
        chain = Chain(
            work_s=rng.lognormal(0, 0.8, n),
            cut_s=rng.lognormal(-2, 0.8, n),
            micro_batches=int(rng.choice([4, 16])),
        )
        exact = partition_exactly(chain, counts=[k]).step_s
        gaps["merged"].append(partition_and_merge(chain, order=[0] * k).step_s / exact - 1)
        gaps["greedy"].append(partition_greedily(chain, order=[0] * k).step_s / exact - 1)
    means = {name: float(np.mean(values)) for name, values in gaps.items()}
    for name, mean in means.items():
        print(f"cut, {name:>12}: {100 * mean:6.2f} % above the exact one", flush=True)
    return means


def unequal() -> dict[str, float]:
    """Return what unequal micro-batches gain on the best equal size, simulated."""
    gains = []
    for seed in range(10):
        rng = np.random.default_rng(seed)

        def times(rng: np.random.Generator = rng) -> PassTimes:
            return PassTimes(
                fixed_s=rng.uniform(0, 3, 6),
                sample_s=rng.uniform(0.1, 1, 6),
                latency_s=rng.uniform(0, 1, 5),
                transfer_sample_s=rng.uniform(0, 0.2, 5),
            )

        gains.append(search_unequal(times(), times(), 96).gain)
    found = {"mean_gain": float(np.mean(gains)), "largest_gain": float(np.max(gains))}
    print(f"unequal micro-batches save {100 * found['mean_gain']:.1f} % on average, at most "
          f"{100 * found['largest_gain']:.1f} % (simulated)", flush=True)  # fmt: skip
    return found


def shardings() -> list[dict[str, object]]:
    """Return how near coordinate descent comes to the exact shardings."""
    rows: list[dict[str, object]] = []
    for name, mesh in (("vgg16", (4,)), ("vgg16", (4, 4)), ("alexnet", (8, 2)), ("gpt2", (8,))):
        problem = sharding_problem(load_workload(name).graph(), load_cluster("abci"), mesh, 64)
        exact, found = shard_exactly(problem), search_shardings(problem)
        rows.append(
            {
                "workload": name,
                "mesh": list(mesh),
                "gap": found.step_s / exact.step_s - 1,
                "saved": 1 - exact.step_s / exact.data_s,
            }
        )
        print(f"shardings, {name} on {mesh}: {100 * float(str(rows[-1]['gap'])):.2f} % above the "
              f"exact ones, which save {100 * float(str(rows[-1]['saved'])):.1f} % of all by "
              "samples", flush=True)  # fmt: skip
    return rows


def plan(
    name: str, values: dict[str, int], cluster: str, n_devices: int, global_batch: int
) -> dict[str, object]:
    """Return how long a plan takes to find."""
    graph, machine = load_workload(name).graph(values), load_cluster(cluster)
    begin, busy = time.perf_counter(), time.process_time()
    found = search_plans(graph, machine, n_devices, global_batch)
    wall, cpu = time.perf_counter() - begin, time.process_time() - busy
    print(f"plan, {name} on {n_devices}: {wall:.2f} s ({cpu:.2f} s of processor), "
          f"{found.n_scenarios} scenarios: {found.plan.strategy}", flush=True)  # fmt: skip
    return {
        "workload": name,
        "n_devices": n_devices,
        "wall_s": wall,
        "cpu_s": cpu,
        "n_scenarios": found.n_scenarios,
        "strategy": str(found.plan.strategy),
    }
