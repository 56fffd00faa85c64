"""Real steps of small networks, and what the oracle says of the same ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.oracle.conftest import CLUSTER

from paceline.executors import Job
from paceline.oracle import SweepResult, sweep
from paceline.scenario import DEGREES, Strategy
from paceline.workloads import LayerGraph, load_workload

CPU = replace(CLUSTER, n_cores=2)  # where Adam takes one tensor after another


def graph_of(name: str, values: Mapping[str, Any]) -> LayerGraph:
    return load_workload(name).graph(dict(values))


def real_job(
    name: str,
    values: Mapping[str, Any],
    strategy: Strategy,
    *,
    global_batch: int,
    optimizer: str = "sgd",
    stages: Sequence[Sequence[int]] = (),
    n_warmup: int = 1,
    **division: Any,
) -> Job:
    """Return a job that runs a strategy for two steps and observes a third."""
    workload = load_workload(name)
    keywords = workload.job_keywords(
        {**values, "optimizer": optimizer, "learning_rate": 0.01},
    )
    n_workers = math.prod(getattr(strategy, degree) for degree in DEGREES)
    inner = n_workers // strategy.data
    return Job(
        **keywords,
        device_batches=[global_batch] * n_workers,
        division={
            "strategy": strategy.to_dict(),
            "placement": [list(range(q * inner, (q + 1) * inner)) for q in range(strategy.data)],
            "stages": stages or [[0, len(keywords["network"])]],
            "replica_batches": [global_batch // strategy.data] * strategy.data,
            "split_layers": [],
            "grid": [],
            "n_leading": 0,
            **division,
        },
        n_warmup=n_warmup,
        n_steps=1,
    )


def foretold(
    name: str,
    values: Mapping[str, Any],
    strategy: Strategy,
    *,
    global_batch: int,
    optimizer: str = "sgd",
) -> SweepResult:
    """Return the oracle's row of a strategy."""
    graph = graph_of(name, values)
    result = sweep(graph, CPU, [strategy], global_batch=global_batch, optimizer=optimizer)
    assert result.is_possible[0], result.why(0)
    return result
