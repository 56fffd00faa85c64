"""Campaigns on a local Ray cluster of two nodes, one of which is killed."""

import importlib.util
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.measurement.small_studies import small_study

from paceline.dataset import read_observations
from paceline.executors import Job, SimulatedExecutor
from paceline.measurement import Progress, measure

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="pip install 'paceline[ray]'"
    ),
    pytest.mark.filterwarnings("default"),  # Ray's own
]


def slow_step(job: Job) -> float:
    import time

    time.sleep(0.02)
    return 1e-3 * sum(job.device_batches)


@pytest.fixture
def cluster() -> Iterator[Any]:
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    ray.init(address=cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_a_lost_node_costs_no_trial(tmp_path: Path, cluster: Any) -> None:
    path = tmp_path / "runs.db"
    node = cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    killed = []

    def kill_soon(progress: Progress) -> None:
        if progress.runs_done == 10 and not killed:
            cluster.remove_node(node, allow_graceful=False)
            killed.append(progress.runs_done)
            cluster.add_node(num_cpus=2)  # runs of two workers need a machine again

    dataset = measure(
        small_study(n_trials=30),
        path,
        engine="ray",
        progress=kill_soon,
        executors={"torch": SimulatedExecutor(slow_step)},
    )
    assert killed and len(dataset) == 38
    assert not any(seen.failed for seen in read_observations(path))
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT count(*), count(DISTINCT trial || '-' || attempt || '-' || life)"
        n_runs, n_different = connection.execute(f"{query} FROM campaign_runs").fetchone()
    assert n_runs == n_different >= 76


def test_more_workers_than_processors_still_run(tmp_path: Path, cluster: Any) -> None:
    dataset = measure(
        small_study(n_trials=4, restrict={"n_devices": [2]}),
        tmp_path / "runs.db",
        engine="ray",
        executors={"torch": SimulatedExecutor(slow_step)},
    )
    assert len(dataset) == 5  # on a machine with one processor
