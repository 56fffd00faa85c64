"""``paceline run``: predicted beside measured, kept, and every mistake in one line."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.executors.plans import make_plan, module_plan

from paceline.dataset import read_observations, read_store
from paceline.executors._supervisor import descendants
from paceline.scenario import save_plan

Run = Callable[..., Any]
NET = """
from torch import nn

def Net(width=16):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
        nn.Linear(width, 10),
    )
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    save_plan(make_plan("lenet5", {}, {"data": 2}, global_batch=16), path)
    return path


def test_a_run_shows_predicted_beside_measured_at_80_columns(run: Run, plan: Path) -> None:
    done = run("run", plan, "--steps", "4", "--warmup", "1")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    lines = done.out.splitlines()
    assert (
        lines[0] == "lenet5 on 2 workers: data 2; 16 samples a step, sgd, float32; 4 steps timed."
    )
    assert "predicted" in lines[2] and "measured" in lines[2]
    for label in ("step (median)", "forward", "backward", "exchange and waiting", "update"):
        assert any(line.strip().startswith(label) for line in lines)
    assert "Predicted for cpu-xeon6148, measured on this machine" in done.out
    assert not [pid for pid in descendants(os.getpid()) if "worker" in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_what_was_measured_is_kept_for_the_next_fit(run: Run, plan: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    done = run("run", plan, "--steps", "4", "-o", store, "--output-format", "json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["schema"] == "paceline/run/1"
    assert document["step_s"]["predicted"] > 0 and document["step_s"]["measured"] > 0
    assert document["traffic_bytes"]["measured"] == document["traffic_bytes"]["predicted"]
    assert [worker["rank"] for worker in document["workers"]] == [0, 1]
    other = tmp_path / "other.json"
    save_plan(make_plan("lenet5", {}, {"data": 1}, global_batch=16), other)
    assert run("run", other, "--steps", "4", "-o", store).code == 0
    dataset = read_store(store)
    assert dataset.n_rows == 2 and dataset.basis.time_per == "step"
    assert sorted(dataset.X["data"]) == [1.0, 2.0] and set(dataset.X["workload"]) == {"lenet5"}
    assert dataset.roles["data"] == "extrinsic" and dataset.roles["filters"] == "intrinsic"
    assert list(read_observations(store)[0].times_s) == document["times_s"]


def test_a_module_of_ones_own_is_cut_where_the_plan_says(run: Run, tmp_path: Path) -> None:
    net = tmp_path / "net.py"
    net.write_text(NET)
    plan = tmp_path / "plan.json"
    save_plan(module_plan(net, "Net", {"pipeline": 2, "micro_batches": 4}, ends=[3, 6]), plan)
    moved = tmp_path / "elsewhere.py"
    net.rename(moved)
    gone = run("run", plan)
    assert gone.code == 2 and "net.py" in gone.err
    done = run("run", plan, "--module", f"{moved}:Net", "--steps", "3", "--output-format", "json")
    assert done.code == 0, done.err
    sent = [worker["traffic_bytes"]["send"] for worker in json.loads(done.out)["workers"]]
    assert sent == [8 * 16 * 4] * 2  # samples, width, bytes; both ways


def test_real_samples_are_trained_on(run: Run, plan: Path, tmp_path: Path) -> None:
    done = run("run", plan, "--data", f"idx:{tmp_path}")
    assert done.code == 2 and "must hold a file train-images" in done.err
    done = run("run", plan, "--data", "sound:here")
    assert done.code == 2 and "--data must be KIND:FOLDER" in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fingerprint": "f" * 16}, "with the network that it was made for"),
        ({"cluster": "nowhere"}, "No cluster is called 'nowhere'"),
        ({"cluster": "thesis-rtx2080", "placement": ((0,), (3,))}, "has 3, but got device 3"),
        ({"precision": "float8"}, "to be run, but is in float8"),
    ],
)
def test_mistakes_are_told_in_one_line(
    run: Run, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "plan.json"
    save_plan(replace(make_plan("lenet5", {}, {"data": 2}), **change), path)
    done = run("run", path)
    assert done.code == 2 and message in done.err
    assert len(done.err.splitlines()) <= 2 and "Traceback" not in done.err


def test_a_plan_edited_into_nonsense_is_refused(run: Run, plan: Path) -> None:
    data = json.loads(plan.read_text())
    plan.write_text(json.dumps({**data, "replica_batches": [16, 16]}))
    done = run("run", plan)
    assert done.code == 2 and "must sum to the global batch of 16" in done.err
    plan.write_text("{")
    assert "a plan must be JSON" in run("run", plan).err
    assert run("run", plan.parent / "none.json").code == 2
    done = run("run", plan, "-o", plan.parent / "no" / "runs.db")
    assert done.code == 2 and "must exist" in done.err


def test_a_module_for_a_workloads_plan_is_refused(run: Run, plan: Path) -> None:
    done = run("run", plan, "--module", "net.py:Net")
    assert done.code == 2 and "must go with a plan for a module" in done.err


def test_late_gradients_are_told(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    strategy = {"pipeline": 2, "micro_batches": 2, "schedule": "unlocked"}
    save_plan(make_plan("lenet5", {}, strategy), path)
    done = run("run", path, "--steps", "3")
    assert done.code == 0, done.err
    assert "Gradients come late, by stage up to 1, 0 updates." in " ".join(done.out.split())
