"""Commands that fork, print without end, or lose Paceline: nothing is left running."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.executors.commands import TIME, marked, python

from paceline.errors import (
    ExecutionError,
    RunTimeoutError,
)
from paceline.executors._command import CommandExecutor
from paceline.executors._watched import CommandLimits

# children that try to stay: in the same group, in a session of their own without a trace in
# the environment, forked twice, and one that ignores polite signals and holds the output open
FORKS = """
import os, signal, subprocess, sys, time
mark = sys.argv[1]
sleep = [sys.executable, "-c", "import time; time.sleep(600)", mark]
subprocess.Popen(sleep)
subprocess.Popen(sleep, start_new_session=True, env={})
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.execve(sys.executable, sleep, {})
    os._exit(0)
for _ in range(3): print("time 0.5", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("then", ["0.3", "600"])
def test_forked_children_are_gone_after_the_end_and_after_the_limit(then: str) -> None:
    mark = f"fork-{os.getpid()}-{then}"
    executor = CommandExecutor(python(FORKS, mark, then), steps=TIME, n_warmup=0)
    if then == "600":
        with pytest.raises(RunTimeoutError, match="3 steps seen"):
            executor.run({}, timeout_s=2)
    else:
        record = executor.run({}, timeout_s=60)
        assert record.step_s == (0.5,) * 3 and record.n_ended == 3
    assert marked(mark) == []


def peak_kib() -> int:
    """Largest resident memory of this process since the peak was last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def reset_peak_kib() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak_kib()


GIGABYTE = (
    "import os\nblock = (b'x' * 99 + b'\\n') * 10000\nfor _ in range(1050): os.write(1, block)"
)


def test_a_gigabyte_of_output_is_ended_at_the_limit_in_bounded_memory() -> None:
    before = reset_peak_kib()
    executor = CommandExecutor(python(GIGABYTE), steps=TIME)
    with pytest.raises(ExecutionError, match="at most 50000000 bytes") as caught:
        executor.run({}, max_bytes=50_000_000, timeout_s=120)
    assert len(caught.value.log_tail) <= 8192
    assert peak_kib() - before < 32 * 1024


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["time 0.5 " + "x" * 90 + "\\n", "x" * 100], ids=["many lines", "one line"]
)
def test_a_gigabyte_without_a_limit_is_read_in_bounded_memory(line: str) -> None:
    code = GIGABYTE.replace("(b'x' * 99 + b'\\n')", f"b'{line}'") + "\nprint('\\ntime 0.5')"
    before = reset_peak_kib()
    executor = CommandExecutor(
        python(code), steps=TIME, n_warmup=0, limits=CommandLimits(output_bytes=None)
    )
    record = executor.run({}, timeout_s=300)
    assert set(record.step_s) == {0.5} and len(record.step_s) <= 1_000_000
    assert peak_kib() - before < 100 * 1024


CAMPAIGN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from paceline.executors._command import CommandExecutor
from paceline.executors._pattern_steps import PatternSteps
CommandExecutor(sys.argv[1:], steps=PatternSteps("(?P<time>1)")).run({})
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_command_does_not_outlive_paceline(number: signal.Signals) -> None:
    mark = f"orphan-{os.getpid()}-{number.value}"
    command = python(FORKS, mark, "600")
    campaign = subprocess.Popen(
        [sys.executable, "-c", CAMPAIGN, *command], stderr=subprocess.DEVNULL
    )
    assert _until(lambda: len(marked(mark)) >= 6)  # campaign, supervisor, command, 3 children
    campaign.send_signal(number)
    campaign.wait(timeout=60)
    assert _until(lambda: marked(mark) == [])


def test_a_killed_supervisor_leaves_nothing_behind_that_carries_the_mark() -> None:
    mark = f"super-{os.getpid()}"
    code = (
        "import os, signal, subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]],\n"
        "                 start_new_session=True)\n"
        "os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)"
    )
    with pytest.raises(ExecutionError, match="ended from outside"):
        CommandExecutor(python(code, mark), steps=TIME).run({}, timeout_s=60)
    assert _until(lambda: marked(mark) == [])


def _until(condition, limit_s: float = 20.0) -> bool:  # type: ignore[no-untyped-def]
    end = time.monotonic() + limit_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return bool(condition())
