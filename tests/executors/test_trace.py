"""A training script measured from outside, unedited, in several ways that must agree."""

import hashlib
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import ExecutionError, RunTimeoutError
from paceline.executors._command import CommandExecutor, CommandRecord
from paceline.executors._json_steps import JsonLinesSteps
from paceline.executors._pattern_steps import PatternSteps
from paceline.executors._trace import HOOKS, cycle_length, step_times, trace

SCRIPT = Path(__file__).parent / "scripts" / "train.py"
PRINTED = PatternSteps(r"step \d+ time (?P<time>[\d.]+)")

needs_torch = pytest.mark.skipif(
    find_spec("torch") is None,
    reason="needs torch: pip install 'paceline[torch]'",
)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    yield


def traced(*arguments: str, **options: object) -> tuple[CommandRecord, list[float]]:
    """Trace the script; return the record and what the script itself printed."""
    echo = io.BytesIO()
    command = [sys.executable, str(SCRIPT), *arguments]
    record = trace(command, echo=echo, timeout_s=300, **options)  # type: ignore[arg-type]
    reader = PRINTED.open({}, Path())
    reader.take(echo.getvalue().decode().splitlines())
    return record, list(reader.times()[0])


@needs_torch
def test_pattern_json_lines_and_hooks_agree_on_an_unedited_script(tmp_path: Path) -> None:
    digest = hashlib.sha256(SCRIPT.read_bytes()).hexdigest()
    file = tmp_path / "times.jsonl"
    reader = JsonLinesSteps(str(file)).open({}, tmp_path)
    record, printed = traced("--json", str(file), "--steps", "80")
    n = len(record.step_s)
    hooks, pattern, lines = (
        median(times[-n:]) for times in (record.step_s, printed, reader.times()[0])
    )
    assert hooks == pytest.approx(pattern, rel=0.05) and n >= 37
    assert lines == pytest.approx(pattern, rel=0.05)
    assert (record.source, record.exit_code, record.n_ended) == ("hooks", 0, 0)
    assert hashlib.sha256(SCRIPT.read_bytes()).hexdigest() == digest


@needs_torch
def test_an_executor_fills_the_users_command_and_reads_what_it_writes(
    tmp_path: Path,
) -> None:
    template = f"{sys.executable} {SCRIPT} --batch {{global_batch}} --steps 30 --json {{file}}"
    values = {"global_batch": 32, "file": tmp_path / "a file.jsonl"}
    echo = io.BytesIO()
    record = CommandExecutor(template, steps=JsonLinesSteps("{file}")).run(
        values, timeout_s=300, echo=echo
    )
    assert len(record.step_s) + record.n_dropped == 30 and record.n_dropped >= 5
    assert record.command[3:5] == ("32", "--steps")
    assert echo.getvalue().count(b"step ") == 30


@needs_torch
def test_accumulation_and_several_optimizers_count_as_one_step() -> None:
    record, printed = traced("--accumulate", "3", "--optimizers", "2", "--steps", "40")
    assert len(record.step_s) + record.n_dropped == 39  # differences of 40 ends of steps
    assert median(record.step_s) == pytest.approx(median(printed[-len(record.step_s) :]), rel=0.1)


@needs_torch
def test_every_rank_of_torchrun_is_measured() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    record = trace(
        [*torchrun, "--master-port", str(port), str(SCRIPT), "--ddp", "--width", "128"],
        timeout_s=300,
    )
    assert sorted(record.by_rank) == [0, 1]
    assert median(record.step_s) == max(median(times) for times in record.by_rank.values())
    # synchronous: the ranks keep step, so that all steps together take as long on both
    assert sum(record.by_rank[0]) == pytest.approx(sum(record.by_rank[1]), rel=0.3)


@needs_torch
def test_processes_started_by_multiprocessing_are_measured_to_their_end(tmp_path: Path) -> None:
    script = tmp_path / "spawn.py"
    script.write_text(
        "import torch, torch.multiprocessing as mp\n"
        "def main(rank):\n"
        "    w = torch.nn.Parameter(torch.ones(1)); o = torch.optim.SGD([w], lr=0.1)\n"
        "    for _ in range(30): w.grad = torch.ones(1); o.step()\n"
        "if __name__ == '__main__': mp.spawn(main, nprocs=1)\n"
    )
    record = trace([sys.executable, str(script)], timeout_s=300)
    assert len(record.step_s) + record.n_dropped == 29


@needs_torch
def test_the_hooks_own_work_is_less_than_a_hundredth_of_a_small_step(tmp_path: Path) -> None:
    """One interleaved run, caches warm; docs/own-script.md has what real steps pay."""
    script = SCRIPT.with_name("hook_cost.py")
    done = subprocess.run(
        [sys.executable, str(script), str(HOOKS / "step_times.py"), "200"],
        env={**os.environ, "PACELINE_STEPS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    cost = json.loads(done.stdout)
    assert max(cost["cost_s"], cost["call_s"]) < 0.01 * cost["step_s"]


@needs_torch
def test_an_endless_training_is_stopped_after_enough_steps() -> None:
    record, _ = traced("--steps", "1000000", stop_after=30)
    assert len(record.step_s) >= 12 and record.exit_code is None


def test_a_command_without_torch_is_told_what_is_missing() -> None:
    with pytest.raises(ExecutionError, match=r"torch optimizer must be seen.*hello {braces}"):
        trace([sys.executable, "-c", "print('hello {braces}')"], timeout_s=60)
    with pytest.raises(RunTimeoutError):
        trace([sys.executable, "-c", "import time; time.sleep(100)"], timeout_s=0.5)


def test_the_hooks_keep_the_users_own_sitecustomize_and_path(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.users_own = __name__\n")
    steps = tmp_path / "steps"
    steps.mkdir()
    code = "import sys, sitecustomize; print(sys.users_own, sitecustomize.__file__, *sys.path)"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{HOOKS}{os.pathsep}{tmp_path}",
        "PACELINE_STEPS": str(steps),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"sitecustomize {tmp_path / 'sitecustomize.py'}")
    assert str(HOOKS) not in done.stdout.split() and not done.stderr
    assert list(steps.iterdir()) == []  # no torch, no file


def test_no_folder_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ExecutionError):
        trace(["true"], timeout_s=60)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("order", "period"),
    [
        ([7] * 10, 1),
        ([1, 2] * 10, 2),
        (([1] * 50 + [2]) * 8, 51),
        ([9, 9, 9, 3] + [1, 1, 2] * 20, 3),
        ([1, 2, 3, 4] * 30 + [1, 2, 4] + [1, 2, 3, 4] * 30, 4),
        ([], 1),
    ],
)
def test_the_order_of_optimizers_is_found(order: list[int], period: int) -> None:
    assert cycle_length(order) == period


def test_optimizers_in_no_order_are_refused_not_guessed() -> None:
    order = [1, 1, 2, 1, 2, 2, 2, 1, 1, 1, 2, 1, 1, 2, 2, 1, 2, 1, 1, 1, 1, 2, 2, 1]
    with pytest.raises(ExecutionError, match="2 optimizers must step in a repeating order"):
        step_times(range(len(order)), order)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.integers(8, 20))
def test_any_repeated_round_is_one_step(round_: list[int], n_rounds: int) -> None:
    order = round_ * n_rounds
    period = cycle_length(order)
    assert period is not None and len(round_) % period == 0
    times_ns = [index * 10**9 for index in range(len(order))]
    assert set(step_times(times_ns, order)) == {float(period)}
