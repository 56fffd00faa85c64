"""Any command line: placeholders, the sources of step times, and every way it can go wrong."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.executors.commands import TIME, marked, printing, python

from paceline.errors import (
    DeviceMemoryError,
    ExecutionError,
    InvalidInputError,
    RunTimeoutError,
    UnknownNameError,
)
from paceline.executors._command import CommandExecutor
from paceline.executors._json_steps import JsonLinesSteps
from paceline.executors._pattern_steps import PatternSteps
from paceline.executors._placeholders import fill
from paceline.executors._steps import steady
from paceline.executors._watched import CommandLimits

# placeholders


def test_values_fill_the_words_of_a_command_and_may_hold_spaces() -> None:
    executor = CommandExecutor("train --batch={batch} '{name}' {{}} {lr:.1e}", steps=TIME)
    values = {"batch": 64.0, "name": "two words; rm", "lr": 0.00123, "unused": 1}
    assert executor.command(values) == ("train", "--batch=64", "two words; rm", "{}", "1.2e-03")


def test_an_unknown_placeholder_names_the_trials_parameters_before_anything_runs(
    tmp_path: Path,
) -> None:
    executor = CommandExecutor(
        f"touch {tmp_path / 'ran'} {{global_batch}}", steps=TIME, n_warmup=0
    )
    with pytest.raises(UnknownNameError, match="Did you mean 'global_batches'") as caught:
        executor.run({"global_batches": 1})
    assert caught.value.known == ("global_batches",)
    for nothing in (None, float("nan")):
        with pytest.raises(InvalidInputError, match="`global_batch` must have a value"):
            executor.run({"global_batch": nothing})
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("template", ["", "   ", "echo 'open", "echo {open", "echo }"])
def test_a_broken_template_is_refused_with_the_rule(template: str) -> None:
    with pytest.raises(InvalidInputError, match="must"):
        CommandExecutor(template, steps=TIME).command({})


@pytest.mark.parametrize("attack", ["{a.__class__}", "{a[0]}", "{}", "{0}"])
def test_a_placeholder_is_a_name_and_nothing_else(attack: str) -> None:
    with pytest.raises(UnknownNameError):
        fill(attack, {"a": [1]})


@settings(deadline=None)
@given(st.text(), st.text())
def test_any_text_arrives_in_its_word_unchanged(value: str, around: str) -> None:
    escaped = around.replace("{", "{{").replace("}", "}}")
    assert fill(escaped + "{x}", {"x": value}) == around + value


# steady state

TIMES = st.lists(st.floats(1e-6, 1e3), max_size=120)


@settings(deadline=None)
@given(TIMES, st.integers(0, 20))
def test_steady_steps_are_the_last_ones_and_at_least_half(times: list[float], n: int) -> None:
    kept = steady(times, n)
    n_after = max(len(times) - n, 0)
    assert list(kept) == times[len(times) - len(kept) :]
    assert n_after / 2 <= len(kept) <= n_after


@settings(deadline=None)
@given(TIMES, st.integers(-20, 20))
def test_the_unit_does_not_change_what_is_steady(times: list[float], power: int) -> None:
    factor = 2.0**power  # exact in floating point
    assert steady([t * factor for t in times], 3) == tuple(t * factor for t in steady(times, 3))


@settings(deadline=None)
@given(st.integers(20, 100), st.floats(1e-3, 1.0), st.lists(st.floats(0, 0.04), max_size=100))
def test_nothing_is_dropped_from_steps_within_the_allowance(
    n: int, step_s: float, noise: list[float]
) -> None:
    times = [step_s * (1 + share) for share in (noise + [0.0] * n)[:n]]
    assert len(steady(times, 0)) == n


@settings(deadline=None)
@given(st.integers(1, 4), st.floats(1.2, 50))
def test_a_slow_start_is_dropped(n_blocks: int, factor: float) -> None:
    slow = [factor] * (5 * n_blocks)
    assert steady(slow + [1.0] * 60, 0) == (1.0,) * 60


# sources


def test_throughput_and_units_become_seconds() -> None:
    throughput = PatternSteps(
        r"(?P<throughput>\d+) img/s", kind="throughput", batch="global_batch"
    )
    run = CommandExecutor(printing("at 640 img/s", "at 320 img/s"), steps=throughput, n_warmup=0)
    assert run.run({"global_batch": 64}).step_s == (0.1, 0.2)
    ms = PatternSteps(r"(?P<time>[\d.]+)ms", unit="ms")
    record = CommandExecutor(printing("1.5ms", "noise", "2ms"), steps=ms, n_warmup=1).run({})
    assert (record.step_s, record.n_dropped, record.source) == ((0.002,), 1, "pattern")


@pytest.mark.parametrize(
    "clocks",
    [
        ("10.0", "10.5", "11.5"),
        ("23:59:59.5", "00:00:00", "00:00:01"),
        ("2026-01-01 10:00:00,000", "2026-01-01 10:00:00,500", "2026-01-01 10:00:01,500"),
    ],
)
def test_differences_of_clocks_are_step_times(clocks: tuple[str, ...]) -> None:
    steps = PatternSteps(r"\[(?P<time>.+)\]", kind="timestamps")
    lines = [f"[{clock}] step" for clock in clocks]
    record = CommandExecutor(printing(*lines), steps=steps, n_warmup=0).run({})
    assert record.step_s == pytest.approx((0.5, 1.0))


def test_a_log_line_every_ten_steps_is_divided_by_ten() -> None:
    steps = PatternSteps(r"(?P<time>[\d.]+) step (?P<step>\d+)", kind="timestamps")
    lines = ["1.0 step 0", "2.0 step 10", "4.0 step 20"]
    record = CommandExecutor(printing(*lines), steps=steps, n_warmup=0).run({})
    assert record.step_s == pytest.approx((0.1, 0.2))


def test_progress_bars_and_standard_error_are_read_too() -> None:
    code = r"import sys; sys.stderr.write('\r1% time 0.5\r2% time 0.25')"
    assert CommandExecutor(python(code), steps=TIME, n_warmup=0).run({}).step_s == (0.5, 0.25)


@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_json_lines_file_gives_only_what_this_run_wrote(mode: str, tmp_path: Path) -> None:
    (tmp_path / "times-7.jsonl").write_text('{"step_s": 9.0}\n{"step_s": 8.0}\n')
    code = (
        "import sys, json; f = open(sys.argv[1], sys.argv[2])\n"
        "for t in (1, 2.5, 3, 4): print(json.dumps({'step_s': t, 'loss': None}), file=f)\n"
        "print('{\"epoch\": 1}', file=f); f.write('{\"step_s\": 1')"
    )
    executor = CommandExecutor(
        python(code, "times-{seed}.jsonl", mode),
        steps=JsonLinesSteps("times-{seed}.jsonl"),
        working_folder=tmp_path,
        n_warmup=1,
    )
    record = executor.run({"seed": 7})
    assert (record.step_s, record.n_dropped, record.source) == ((2.5, 3.0, 4.0), 1, "jsonl")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "there is no such file"),
        ("", "new lines with the key 'step_s', but has none"),
        ("step 1\n", "one JSON object per line"),
        ('{"step_s": "fast"}\n', "must be a positive number"),
    ],
)
def test_a_json_lines_file_without_times_is_explained(
    text: str | None, reason: str, tmp_path: Path
) -> None:
    code = "import sys\nif sys.argv[1:]: open('out', 'w').write(sys.argv[1])"
    command = python(code, *([] if text is None else [text.replace("{", "{{").replace("}", "}}")]))
    executor = CommandExecutor(command, steps=JsonLinesSteps("out"), working_folder=tmp_path)
    with pytest.raises(ExecutionError, match=reason):
        executor.run({})


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "no group"},
        {"pattern": "(?P<time>"},
        {"pattern": "(?P<time>.)", "unit": "h"},
        {"pattern": "(?P<time>.)", "kind": "throughput", "batch": 1},
        {"pattern": "(?P<throughput>.)", "kind": "throughput"},
        {"pattern": "(?P<time>.)", "kind": "speed"},
    ],
)
def test_a_pattern_that_cannot_give_times_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        PatternSteps(**arguments)  # type: ignore[arg-type]


# faults


def test_output_that_never_matches_is_shown_beside_the_pattern() -> None:
    with pytest.raises(ExecutionError, match="no line does") as caught:
        CommandExecutor(printing("epoch 1", "loss 2"), steps=TIME).run({})
    assert f"`{TIME.pattern}`" in caught.value.reason
    assert "epoch 1 | loss 2" in caught.value.reason
    assert "loss 2" in caught.value.log_tail


def test_a_group_that_holds_no_number_is_shown_with_its_line() -> None:
    steps = PatternSteps(r"time (?P<time>\w+)")
    with pytest.raises(ExecutionError, match="'soon' in the line 'time soon'"):
        CommandExecutor(printing("time soon"), steps=steps).run({})


def test_a_command_that_exits_at_once_gives_its_code_and_its_last_line() -> None:
    code = "import sys; print('time 1.0'); sys.exit('no such dataset')"
    with pytest.raises(ExecutionError, match=r"code 1\. Its last line: no such dataset") as caught:
        CommandExecutor(python(code), steps=TIME).run({})
    assert "time 1.0" in caught.value.log_tail


def test_a_crash_is_named_by_its_signal() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    with pytest.raises(ExecutionError, match="SIGSEGV"):
        CommandExecutor(python(code), steps=TIME).run({})


def test_a_missing_program_or_folder_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="No such file or directory: no-such-program"):
        CommandExecutor("no-such-program", steps=TIME).run({})
    with pytest.raises(InvalidInputError, match="`working_folder` must exist"):
        CommandExecutor("true", steps=TIME, working_folder=tmp_path / "none").run({})


def test_too_few_steps_for_the_warm_up_are_counted() -> None:
    with pytest.raises(ExecutionError, match=r"More than 5 steps .* but there were 1"):
        CommandExecutor(printing("time 1"), steps=TIME).run({})


def test_a_command_that_says_it_is_out_of_memory_is_believed() -> None:
    with pytest.raises(DeviceMemoryError, match="exited with code 1"):
        CommandExecutor(python("raise MemoryError"), steps=TIME).run({})


def test_more_memory_than_allowed_ends_a_command() -> None:
    code = "b = b'1' * (300 << 20)\nimport time; time.sleep(60)"
    executor = CommandExecutor(
        python(code), steps=TIME, limits=CommandLimits(timeout_s=60, memory_bytes=200 << 20)
    )
    with pytest.raises(DeviceMemoryError, match="at most 209715200 bytes"):
        executor.run({})


def test_a_hanging_command_ends_at_its_limit_and_says_what_was_seen() -> None:
    mark = f"hang-{os.getpid()}"
    code = "import time; print('starting', flush=True); time.sleep(600)"
    executor = CommandExecutor(python(code, mark), steps=TIME)
    with pytest.raises(RunTimeoutError, match=r"within 1 s.*without a step.*starting"):
        executor.run({}, timeout_s=1)
    assert marked(mark) == []


def test_a_long_training_is_stopped_when_there_are_enough_steps() -> None:
    code = "import time\nwhile True: print('time 0.01', flush=True); time.sleep(0.01)"
    executor = CommandExecutor(python(code), steps=TIME, stop_after=20)
    record = executor.run({}, timeout_s=60)
    assert len(record.step_s) >= 15 and record.exit_code is None


def test_a_record_is_plain_enough_for_json() -> None:
    record = CommandExecutor(printing("time 1", "time 2"), steps=TIME, n_warmup=0).run({})
    assert json.loads(json.dumps(record.step_s)) == [1.0, 2.0]
    assert record.drift == pytest.approx(1.0) and record.exit_code == 0 and record.seconds > 0
