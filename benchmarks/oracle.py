"""Scenarios per second of the oracle, and the time of a whole survey, on one core."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from paceline.clusters import load_cluster
from paceline.oracle import survey, sweep
from paceline.scenario import StrategyTable
from paceline.workloads import load_workload

N_SCENARIOS = 100_000
REPEATS = 3
NETWORKS = {
    "resnet50": {"spatial": 4, "filter": 5, "channel": 5},
    "resnet152": {"spatial": 4, "filter": 5, "channel": 5},
    "gpt2": {"tensor": 2, "context": 4},
    "llama-7b": {"tensor": 5, "context": 4},
}
DEVICES = [2**i for i in range(11)]


def measure() -> dict[str, object]:
    figures = {"sweeps": [_sweep(name) for name in NETWORKS], "surveys": [_survey("resnet152")]}
    return figures


def _sweep(name: str) -> dict[str, object]:
    graph, cluster = load_workload(name).graph(), load_cluster("abci")
    table, batch = scenarios(NETWORKS[name])
    wall, cpu = _best(lambda: sweep(graph, cluster, table, global_batch=batch))
    print(
        f"{name:>10}: {N_SCENARIOS / cpu:9.0f} scenarios/s of processor time, "
        f"{N_SCENARIOS / wall:9.0f} of wall time ({len(graph)} layers)",
        flush=True,
    )
    return {"workload": name, "n_layers": len(graph), "wall_s": wall, "cpu_s": cpu}


def scenarios(degrees: dict[str, int]) -> tuple[StrategyTable, np.ndarray]:
    """Return random strategies: data, stages, micro-batches, recomputation and one degree more."""
    rng = np.random.default_rng(0)

    def powers(most: int) -> np.ndarray:
        return 2 ** rng.integers(0, most + 1, N_SCENARIOS)

    inner = rng.integers(0, len(degrees) + 1, N_SCENARIOS)
    columns = {
        "data": powers(6),
        "pipeline": np.where(rng.random(N_SCENARIOS) < 0.5, 1, powers(3)),
        "micro_batches": powers(4),
        "recompute": rng.integers(0, 2, N_SCENARIOS),
        "schedule": rng.integers(0, 2, N_SCENARIOS),
    }
    for i, (name, most) in enumerate(degrees.items()):
        columns[name] = np.where(inner == i, powers(most), 1)
    table = StrategyTable.from_columns(**columns)
    return table, table["data"] * table["micro_batches"] * rng.integers(1, 65, N_SCENARIOS)


def _survey(name: str) -> dict[str, object]:
    graph, cluster = load_workload(name).graph(), load_cluster("abci")
    found = survey(graph, cluster, DEVICES, device_batch=64)
    wall, cpu = _best(lambda: survey(graph, cluster, DEVICES, device_batch=64))
    print(
        f"{name:>10}: all strategies on 1..1024 devices, {found.n_scenarios} scenarios, in "
        f"{cpu:.2f} s of processor time, {wall:.2f} s of wall time",
        flush=True,
    )
    return {"workload": name, "n_scenarios": found.n_scenarios, "wall_s": wall, "cpu_s": cpu}


def _best(call: Callable[[], object]) -> tuple[float, float]:
    """Return the least wall and processor time of some calls."""
    walls, cpus = [], []
    for _ in range(REPEATS):
        start, busy = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - start)
        cpus.append(time.process_time() - busy)
    return min(walls), min(cpus)
