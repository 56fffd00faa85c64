"""Pools of workers, with workers that misbehave in every way; no framework is needed."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paceline.errors import (
    DeviceMemoryError,
    ExecutionError,
    InvalidInputError,
    RunTimeoutError,
)
from paceline.executors import Job, PoolLimits, SimulatedExecutor, WorkerPool
from paceline.executors import _process as process_file

WORKERS = Path(process_file.__file__).parent / "workers"

WORKER = """
import os, subprocess, sys, time
sys.path.insert(0, {workers!r})
import protocol
protocol.take_over_stdout()
print("printing does no harm")

def run_job(job):
    rank, what = protocol.rank(), job["module"]["name"]
    only_one = rank == 1
    if what == "child":
        child = subprocess.Popen(["sleep", "600"])
        open(job["module"]["file"], "w").write(str(child.pid))
        what = "hang"
    if what == "exit" and only_one:
        print("last words", file=sys.stderr)
        os._exit(3)
    if what == "hang" or (what in ("exit", "fail one", "memory error") and not only_one):
        time.sleep(600)
    if what in ("fail all", "fail one"):
        raise ValueError("too\\nbad")
    if what == "refuse":
        raise protocol.RefusedError("This cannot be built.")
    if what == "memory error":
        raise MemoryError("no more")
    if what == "eat":
        hoard = []
        while True:
            hoard.append(b"x" * 10_000_000)
    if what == "garbage":
        protocol._channel[1].write(b"garbage\\n")
    if what == "a line without end":
        for _ in range(1000):
            protocol._channel[1].write(b"x" * 1_000_000)
    if what == "much log":
        for _ in range(3000):
            print("noise " * 100)
    return {{"step_s": [0.001, 0.002], "losses": [1.0]}}

protocol.serve("fake", {{"fake": "1.0"}}, run_job)
"""


@pytest.fixture
def worker_file(tmp_path):
    path = tmp_path / "worker.py"
    path.write_text(WORKER.format(workers=str(WORKERS)))
    return path


@pytest.fixture
def pool(worker_file):
    limits = PoolLimits(memory_bytes=300 * 2**20, line_bytes=4 * 2**20)
    with WorkerPool(lambda rank: [sys.executable, str(worker_file)], 2, limits=limits) as pool:
        yield pool


def job(what: str = "work", file: str = "", n_workers: int = 2) -> Job:
    return Job(
        module={"name": what, "file": file},
        sample={},
        optimizer={},
        device_batches=[1] * n_workers,
    )


def exists(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def gone_soon(pid: int) -> bool:
    for _ in range(200):
        if not exists(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_job_gives_a_record_of_every_worker(pool) -> None:
    record = pool.run(job(), 10.0)
    assert [worker.rank for worker in record.workers] == [0, 1]
    assert record.step_s == (0.001, 0.002)
    assert record.versions["fake"] == "1.0" and "python" in record.versions
    assert record.workers[0].peak_memory_bytes > 2**20


def test_workers_stay_alive_between_jobs(pool) -> None:
    first, second = (pool.run(job(), 10.0).workers[1].process for _ in range(2))
    assert first == second and first in pool.processes
    assert pool.is_alive


@pytest.mark.parametrize(
    ("what", "kind", "reason"),
    [
        ("exit", ExecutionError, "Worker 1 .* exited with 3"),
        ("fail all", ExecutionError, "failed: ValueError: too bad"),
        ("fail one", ExecutionError, "Worker 1 failed: ValueError: too bad"),
        ("memory error", DeviceMemoryError, "Worker 1 .* ran out of memory"),
        ("eat", DeviceMemoryError, "bytes of 314572800"),
        ("garbage", ExecutionError, "'garbage'"),
        ("a line without end", ExecutionError, "more than 4194304 bytes"),
        ("hang", RunTimeoutError, "worker 0, 1 did not"),
    ],
)
def test_a_failed_job_ends_all_workers_and_the_next_one_runs(pool, what, kind, reason) -> None:
    pool.start()
    before = pool.pids
    with pytest.raises(kind, match=reason):
        pool.run(job(what), 1.5 if what == "hang" else 60.0)
    assert not any(exists(pid) for pid in before)
    assert len(pool.run(job(), 10.0).workers) == 2
    assert not set(before) & set(pool.pids)


def test_a_refused_job_leaves_the_workers_alive(pool) -> None:
    pool.start()
    before = pool.pids
    with pytest.raises(ExecutionError, match=r"^This cannot be built\.$"):
        pool.run(job("refuse"), 10.0)
    assert pool.run(job(), 10.0) and pool.pids == before


def test_an_error_carries_the_tail_of_the_log(pool) -> None:
    with pytest.raises(ExecutionError) as caught:
        pool.run(job("exit"), 10.0)
    assert caught.value.log_tail.endswith("last words")


def test_a_worker_may_print_as_much_as_it_likes(pool) -> None:
    assert pool.run(job("much log"), 30.0).step_s


def test_children_of_workers_end_with_them(pool, tmp_path) -> None:
    note = tmp_path / "child"
    with pytest.raises(RunTimeoutError):
        pool.run(job("child", str(note)), 2.0)
    assert gone_soon(int(note.read_text()))


def test_a_job_for_another_number_of_workers_is_refused(pool) -> None:
    with pytest.raises(InvalidInputError, match="one batch for each of the pool's 2 workers"):
        pool.run(job(n_workers=3), 10.0)


def test_a_pool_has_at_least_one_worker() -> None:
    with pytest.raises(InvalidInputError, match="at least 1, but got 0"):
        WorkerPool(lambda rank: ["true"], 0)


def test_a_program_that_does_not_exist_is_said() -> None:
    with pytest.raises(ExecutionError, match="'/no/such/program' is not"):
        WorkerPool(lambda rank: ["/no/such/program"], 1).start()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("print('not a worker')", ExecutionError),
        ("raise SystemExit(4)", ExecutionError),
        ("import time; time.sleep(600)", RunTimeoutError),
    ],
)
def test_something_else_than_a_worker_fails_to_start(code, kind) -> None:
    pool = WorkerPool(lambda rank: [sys.executable, "-c", code], 2, limits=PoolLimits(start_s=2.0))
    with pytest.raises(kind):
        pool.start()
    assert pool.pids == ()


@pytest.fixture
def interrupt_soon():
    old = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.3)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, old)


def test_an_interrupt_leaves_no_worker_behind(pool, interrupt_soon) -> None:
    pool.run(job(), 10.0)
    before = pool.pids
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        pool.run(job("hang"), 30.0)
    assert not any(exists(pid) for pid in before)


@pytest.mark.parametrize("name", ["protocol", "samples", "keeper"])
def test_what_all_workers_share_runs_on_old_interpreters(name: str) -> None:
    ast.parse((WORKERS / f"{name}.py").read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("what", ["work", "hang", "child"])
def test_workers_end_when_their_parent_is_killed(worker_file, tmp_path, what) -> None:
    note, child = tmp_path / "pids", tmp_path / "child"
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import json, sys, time, threading\n"
        "from pathlib import Path\n"
        "from paceline.executors import Job, WorkerPool\n"
        f"pool = WorkerPool(lambda rank: [sys.executable, {str(worker_file)!r}], 2)\n"
        "pool.start()\n"
        f"module = {{'name': {what!r}, 'file': {str(child)!r}}}\n"
        "job = Job(module=module, sample={}, optimizer={}, device_batches=[1, 1])\n"
        "threading.Thread(target=lambda: pool.run(job, 600.0), daemon=True).start()\n"
        "time.sleep(0.5)\n"
        f"Path({str(note)!r}).write_text(json.dumps([*pool.pids, pool._keeper._process.pid]))\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, str(parent)])
    try:
        for _ in range(400):
            if note.exists() and note.read_text():
                break
            time.sleep(0.05)
        pids = json.loads(note.read_text())
        assert all(exists(pid) for pid in pids)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    pids += [int(child.read_text())] if child.exists() else []
    assert all(gone_soon(pid) for pid in pids)


def test_a_closed_pool_leaves_nothing_and_can_be_used_again(worker_file) -> None:
    pool = WorkerPool(lambda rank: [sys.executable, str(worker_file)], 1)
    one = job(n_workers=1)
    pool.run(one, 10.0)
    first = pool.pids
    pool.close()
    assert not pool.is_alive and not any(exists(pid) for pid in first)
    pool.run(one, 10.0)
    pool.close()
    pool.close()


def test_workers_know_their_place(tmp_path) -> None:
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS", "MINE")
    path = tmp_path / "place.py"
    path.write_text(
        "import sys, os\n"
        f"sys.path.insert(0, {str(WORKERS)!r})\n"
        "import protocol\n"
        f"versions = {{name: os.environ[name] for name in {names!r}}}\n"
        "protocol.serve('fake', versions, lambda job: {})\n"
    )
    with WorkerPool(lambda rank: [sys.executable, str(path)], 1, {"MINE": "yes"}) as pool:
        pool.start()
        assert pool.versions["RANK"] == "0" and pool.versions["WORLD_SIZE"] == "1"
        assert pool.versions["MASTER_ADDR"] == "127.0.0.1" and pool.versions["MINE"] == "yes"
        assert pool.versions["OMP_NUM_THREADS"] == os.environ.get("OMP_NUM_THREADS", "1")


def test_simulated_workers_take_the_time_they_are_told() -> None:
    executor = SimulatedExecutor(
        lambda job: 0.01 * sum(job.device_batches), noise=0.0, imbalance={1: 1.5}
    )
    work = Job(sample={}, optimizer={}, device_batches=[1, 1], n_steps=2, n_phase_steps=3)
    with executor.open(2) as pool:
        record = pool.run(work, 1.0)
    fast, slow = record.workers
    assert slow.phases[0]["wait"] == pytest.approx(0.0)
    assert fast.phases[0]["wait"] == pytest.approx(0.5 * 0.02 * 0.9)
    assert sum(slow.phases[0].values()) == pytest.approx(0.03)
    assert not pool.is_alive
