"""Bytes that real processes send are those that the oracle says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline.clusters import load_cluster
from paceline.oracle import sweep
from paceline.oracle._columns import columns_of
from paceline.scenario import Strategy
from paceline.workloads import load_workload

pytest.importorskip("torch")
pytestmark = pytest.mark.serial

WORKER = Path(__file__).with_name("traffic_worker.py")
WORKERS = Path(paceline.__file__).parent / "executors" / "workers"
NETWORKS: dict[str, dict[str, Any]] = {
    "resnet18": {"image_size": 32, "n_classes": 10, "filters": 8},
    "lenet5": {},
    "gpt": {"layers": 2, "width": 32, "heads": 4, "length": 16, "vocabulary": 64},
}
BATCH = 24


def counted(folder: Path, name: str, strategy: Strategy) -> Counter[str]:
    """Train for real with one process per device, and add up what all of them sent."""
    workload, n = load_workload(name), strategy.n_devices
    network = workload.network(NETWORKS[name])
    bounds = None
    if strategy.pipeline > 1:
        columns = columns_of(workload.graph(NETWORKS[name]))
        bounds = columns.stage_bounds(n).tolist()  # units are the operations of these networks
        assert len(columns.graph.units) == len(network.operations)
    task = {
        "n": n,
        "store": str(folder / "store"),
        "workers": str(WORKERS),
        "operations": network.operations,
        "sample": network.sample,
        "batch": BATCH,
        "bounds": bounds,
        "schedule": strategy.schedule,
        "micro_batches": strategy.micro_batches,
    }
    processes = [_start({**task, "rank": rank}) for rank in range(n)]
    try:
        outputs = [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            _stop(process)
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors
    total: Counter[str] = Counter()
    for out, _ in outputs:
        total.update(json.loads(out.splitlines()[-1]))
    return total


def _start(task: dict[str, Any]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), json.dumps(task)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()  # closes its pipes too


def predicted(name: str, strategy: Strategy) -> Any:
    graph = load_workload(name).graph(NETWORKS[name])
    return sweep(graph, load_cluster("abci"), [strategy], global_batch=BATCH)


@pytest.mark.parametrize(("name", "n"), [("resnet18", 2), ("lenet5", 3), ("gpt", 4)])
def test_replicas_send_what_is_said(tmp_path: Path, name: str, n: int) -> None:
    """Buffers of batch normalisation are broadcast besides."""
    strategy = Strategy(data=n)
    sent, said = counted(tmp_path, name, strategy), predicted(name, strategy)
    assert sent["all_reduce"] == n * said["all_reduce_bytes"][0] > 0
    assert sent["broadcast"] == n * said["broadcast_bytes"][0]
    assert (sent["broadcast"] > 0) == (name == "resnet18")
    assert set(sent) <= {"all_reduce", "broadcast"}


@pytest.mark.parametrize(
    ("name", "n", "schedule"),
    [("resnet18", 2, "1f1b"), ("lenet5", 3, "gpipe"), ("gpt", 4, "1f1b")],
)
def test_stages_send_what_is_said(tmp_path: Path, name: str, n: int, schedule: str) -> None:
    strategy = Strategy(pipeline=n, micro_batches=4, schedule=schedule)
    sent, said = counted(tmp_path, name, strategy), predicted(name, strategy)
    assert sent["send"] == sent["receive"] == said["transfer_payload_bytes"][0] > 0
    assert said["point_to_point_bytes"][0] == said["transfer_payload_bytes"][0]
