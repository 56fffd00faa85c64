"""A worker of a plan that dies, hangs or runs out of memory ends the run; nothing is left."""

import os
import socket
import textwrap
import threading

import pytest
from tests.executors.plans import make_plan, module_plan

from paceline.errors import DeviceMemoryError, ExecutionError, RunTimeoutError
from paceline.executors import FrameworkExecutor, Rendezvous, job_of_plan, load_executor
from paceline.executors._supervisor import descendants
from paceline.measurement import run_plan

NET = """
import os, signal, time
import torch
from torch import nn

class Fault(nn.Module):
    calls = 0

    def forward(self, x):
        Fault.calls += x.device.type != "meta"
        if Fault.calls == 5 and os.environ.get("RANK") == "1":
            {fault}
        return x

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.fault, self.outer = nn.Linear(64, 8), Fault(), nn.Linear(8, 10)

    def forward(self, x):
        return self.outer(self.fault(self.inner(x.flatten(1))))
"""
FAULTS = {
    "killed": (
        "os.kill(os.getpid(), signal.SIGKILL)",
        ExecutionError,
        "Worker 1 must finish within its limits, but it was killed by SIGKILL",
    ),
    "asleep": (
        "time.sleep(600)",
        RunTimeoutError,
        "but worker 1 did not: worker 1 was in `forward`, net.py, line",
    ),
    "stopped": (
        "os.kill(os.getpid(), signal.SIGSTOP)",
        RunTimeoutError,
        "but worker 1 did not: worker 1 was stopped",
    ),
    "out of memory": (
        "torch.empty(10**15)",
        DeviceMemoryError,
        "Worker 1 must finish within its limits, but it ran out of memory",
    ),
    "wrong": ("raise ValueError('too bad')", ExecutionError, "Worker 1 failed: .*too bad"),
}


@pytest.fixture(scope="module")
def executor():
    """Workers forked from one process that has imported PyTorch."""
    executor = load_executor("torch").warm()
    yield executor
    executor.close()


@pytest.fixture
def net(tmp_path):
    def write(fault):
        path = tmp_path / "net.py"
        path.write_text(textwrap.dedent(NET).replace("{fault}", fault))
        return path

    return write


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_of_one_worker_ends_the_run_by_name_and_leaves_nothing(executor, net, case):
    fault, error, message = FAULTS[case]
    plan = module_plan(net(fault), "Net", {"data": 2})
    before = set(descendants(os.getpid()))
    with pytest.raises(error, match=message):
        run_plan(plan, n_steps=10, n_phase_steps=0, timeout_s=8, executor=executor)
    assert set(descendants(os.getpid())) <= before


def test_a_stage_of_a_pipeline_that_dies_ends_the_run(executor, net):
    plan = module_plan(net("pass"), "Net", {"pipeline": 2, "micro_batches": 2})
    before = set(descendants(os.getpid()))
    with executor.open(2) as pool:
        job = job_of_plan(plan, n_steps=10**6)
        timer = threading.Timer(4.0, os.kill, (pool.pids[0], 9))
        timer.start()
        with pytest.raises(ExecutionError, match=r"Worker 0 .* killed by SIGKILL"):
            pool.run(job, 60)
        timer.cancel()
    assert set(descendants(os.getpid())) <= before


def test_a_worker_beyond_its_memory_ends_the_run_by_name(executor):
    plan = make_plan("lenet5", {}, {"data": 2})
    with pytest.raises(DeviceMemoryError, match=r"Worker \d .* bytes of 50000000"):
        run_plan(plan, timeout_s=60, memory_bytes=50_000_000, executor=executor)


def test_after_a_fault_the_next_run_has_all_it_needs(executor, net):
    bad = module_plan(net("os._exit(3)"), "Net", {"data": 2})
    with pytest.raises(ExecutionError, match=r"Worker 1 .* exited with 3"):
        run_plan(bad, timeout_s=30, executor=executor)
    plan = make_plan("lenet5", {}, {"data": 2})
    good = run_plan(plan, n_steps=2, timeout_s=60, executor=executor)
    assert good.step_s > 0


def test_hosts_that_meet_run_one_plan():
    """Two executors as on two hosts: each starts and hears its own workers."""
    plan = make_plan("lenet5", {}, {"data": 2})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = {}

    def run(node):
        place = Rendezvous(host="127.0.0.1", port=port, n_nodes=2, node_rank=node)
        own = FrameworkExecutor("torch", rendezvous=place)
        found[node] = run_plan(plan, n_steps=3, timeout_s=60, executor=own)

    threads = [threading.Thread(target=run, args=(node,)) for node in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranks = [[worker["rank"] for worker in found[node].workers] for node in (0, 1)]
    assert ranks == [[0], [1]]
    assert found[0].record.workers[0].losses == found[1].record.workers[0].losses
