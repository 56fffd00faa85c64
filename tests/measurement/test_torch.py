"""Campaigns with real worker processes."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.measurement.small_studies import small_study
from tests.measurement.test_kill import Server, runs_in, server, told

from paceline.dataset import read_observations
from paceline.errors import ExecutionError
from paceline.measurement import Study, measure

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="pip install 'paceline[torch]'"
)
__all__ = ["server"]

ROOT = Path(__file__).parents[2]
REAL: dict[str, Any] = {
    "n_trials": 3,
    "protocol": {
        **{"n_steps": 3, "n_phase_steps": 2, "recycle_every": 40},
        **{"repeat_share": 0.0, "remeasure_share": 0.0},
    },
}


def real_study(**changes: object) -> Study:
    return small_study(**{**REAL, **changes})


def workers_of(pid: int) -> set[int]:
    """Return the processes that descend from a process and run a worker file."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, queue = set(), [pid]
    while queue:
        queue += (below := children.get(queue.pop(), []))
        found |= set(below)
    return found


def wait_until_gone(pids: set[int]) -> None:
    for _ in range(200):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return
        time.sleep(0.05)
    raise AssertionError(f"left running: {pids}")


def test_real_trials_are_measured_in_two_lives_each(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    dataset = measure(real_study(), path)
    assert len(dataset) == 3 and (dataset.y > 0).all()
    for seen in read_observations(path):
        first, second = seen.provenance["lives"]
        processes = [{w["process"] for w in life["workers"]} for life in (first, second)]
        assert processes[0].isdisjoint(processes[1])
        assert len(first["workers"]) == seen.values["n_devices"]
        assert first["workers"][0]["phases"][0]["forward"] > 0
        assert first["versions"]["torch"]
    assert (dataset.other["peak_memory_bytes"] > 0).all()
    assert not workers_of(os.getpid())


def test_a_trial_beyond_its_time_fails_and_the_campaign_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    one = {"filters": [4], "activation": ["relu"], "n_devices": [1], "device_batch": [8, 4096]}
    study = real_study(
        restrict=one,
        n_trials=None,
        design="grid",
        protocol={**REAL["protocol"], "n_steps": 100},
        limits={"trial_seconds": 8},
    )
    dataset = measure(study, path)
    (failed,) = [seen for seen in read_observations(path) if seen.failed]
    assert failed.values["device_batch"] == 4096 and "time limit" in failed.reason
    assert dataset.X["device_batch"].tolist() == [8]


def test_a_trial_beyond_its_memory_fails_with_that_reason(tmp_path: Path) -> None:
    large = {"filters": [64], "n_devices": [1], "device_batch": [4096]}
    study = real_study(n_trials=1, restrict=large, limits={"memory_gb": 0.7})
    with pytest.raises(ExecutionError, match=r"all 1 failed.*bytes of 700000000"):
        measure(study, tmp_path / "runs.db")


def test_killed_campaigns_leave_no_workers_and_resume(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "runs.db"
    # enough trials that a fast machine is not done before it is killed
    study = {**REAL, "n_trials": 16, "restrict": {"n_devices": [1]}}
    for _ in range(2):
        n_before = len(told(path))
        pid = server.start(path, study=study, simulated=False)
        while len(told(path)) <= n_before:
            time.sleep(0.005)
        workers = workers_of(pid)
        os.kill(pid, signal.SIGKILL)
        server.wait()
        wait_until_gone(workers)
        assert workers and set(told(path)) <= runs_in(path)
    server.start(path, study=study, simulated=False)
    assert server.wait() == 0
    assert len(told(path)) == len(set(told(path)))
    assert len(read_observations(path)) == 16


def test_ctrl_c_stops_cleanly(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    code = (
        "import signal, sys\nfrom paceline.measurement import measure\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tests.measurement.test_torch import real_study\n"
        "study = real_study(n_trials=40, restrict={'n_devices': [1]})\n"
        "measure(study, sys.argv[1], progress=lambda p: print(p, flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout
        process.stdout.readline()
        workers = workers_of(process.pid)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors  # the command line turns it into one line
    wait_until_gone(workers)
    assert workers and runs_in(path)
    assert [p.name for p in tmp_path.iterdir()] == ["runs.db"]
