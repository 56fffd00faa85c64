"""Workers that are forked from a process which has imported everything already."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from paceline.errors import ExecutionError
from paceline.executors import Job
from paceline.executors._pool import WorkerPool, base_variables
from paceline.executors._template import Template

_WORKERS = Path(__file__).parents[2] / "src" / "paceline" / "executors" / "workers"
_WORKER = f"""
import os, sys
sys.path.insert(0, {str(_WORKERS)!r})
import protocol, template

def run(job):
    if job["seed"] == 1:
        os._exit(3)
    return {{"step_s": [0.5], "losses": [float(os.getppid()), float(os.environ["RANK"])]}}

if template.VARIABLE in os.environ:
    template.fork_on_request()
protocol.take_over_stdout(again=True)
protocol.serve("plain", {{}}, run)
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    path = tmp_path / "worker.py"
    path.write_text(_WORKER)
    return [sys.executable, str(path)]


@pytest.fixture
def template(command: list[str]) -> Iterator[Template]:
    template = Template(command, base_variables({}))
    yield template
    template.close()


def pool_of(template: Template | None, command: list[str], n_workers: int = 2) -> WorkerPool:
    return WorkerPool(lambda rank: command, n_workers, template=template)


def job(n_workers: int = 2, seed: int = 0) -> Job:
    return Job(sample={}, optimizer={}, device_batches=[1] * n_workers, seed=seed)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def wait_until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def test_workers_are_children_of_the_template(template: Template, command: list[str]) -> None:
    with pool_of(template, command) as pool:
        record = pool.run(job(), 10.0)
        pids = pool.pids
    assert [worker.losses for worker in record.workers] == [(template.pid, 0), (template.pid, 1)]
    assert len({worker.process for worker in record.workers}) == 2
    assert not any(map(is_running, pids))


def test_every_pool_has_fresh_processes(template: Template, command: list[str]) -> None:
    seen = []
    for _ in range(3):
        with pool_of(template, command) as pool:
            pool.start()
            seen += pool.pids
    assert len(set(seen)) == 6


def test_a_worker_that_dies_says_how(template: Template, command: list[str]) -> None:
    with pool_of(template, command, 1) as pool:
        with pytest.raises(ExecutionError, match="exited with 3"):
            pool.run(job(1, seed=1), 10.0)
        assert pool.run(job(1), 10.0).step_s == (0.5,)


def test_without_its_template_a_pool_starts_workers_anew(
    template: Template, command: list[str]
) -> None:
    with pool_of(template, command) as pool:
        pool.run(job(), 10.0)
        template.close()
        record = pool.run(job(), 10.0)
        pids = pool.pids
    assert {worker.losses[0] for worker in record.workers} == {os.getpid()}
    assert not any(map(is_running, pids))


def test_a_template_that_cannot_start_says_so() -> None:
    with pytest.raises(OSError, match="the template is gone"):
        Template([sys.executable, "-c", "raise SystemExit(1)"], base_variables({}))


def test_nothing_is_left_when_the_parent_is_killed(command: list[str], tmp_path: Path) -> None:
    script = f"""
import sys, time
from paceline.executors._pool import WorkerPool, base_variables
from paceline.executors._template import Template
command = {command!r}
template = Template(command, base_variables({{}}))
pool = WorkerPool(lambda rank: command, 2, template=template)
pool.start()
print(template.pid, *pool.pids, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 3 and all(map(is_running, pids))
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not any(map(is_running, pids)))
