"""Any command line as an executor: run it with a trial's values, take its step times."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO

from paceline.errors import (
    DeviceMemoryError,
    ExecutionError,
    InvalidInputError,
    RunTimeoutError,
)
from paceline.executors._placeholders import fill, split_command
from paceline.executors._steps import Source, StepReader, Steps, steady
from paceline.executors._watched import CommandLimits, Ended, Output, run_watched

# how frameworks say that memory ran out
_MEMORY_WORDS = ("MemoryError", "out of memory", "OutOfMemoryError", "can't allocate memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRecord:
    """What was measured of one run of a command.

    Parameters
    ----------
    command
        The words that were run, placeholders filled.
    source
        Where the step times come from: ``pattern``, ``jsonl`` or ``hooks``.
    step_s
        Seconds of the steady steps; of several processes, those of the slowest.
    by_rank
        Seconds of the steady steps of every process that was seen, by rank.
    n_dropped
        Steps before the first of `step_s`: warm-up, and what was not steady yet.
    exit_code
        None if it was stopped because there were enough steps.
    log_tail
        The end of the output.
    seconds
        From start to end.
    n_ended
        Processes that were still running at the end and were ended.
    """

    command: tuple[str, ...]
    source: Source
    step_s: tuple[float, ...]
    by_rank: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    n_dropped: int
    exit_code: int | None
    log_tail: str
    seconds: float
    n_ended: int = 0

    @property
    def drift(self) -> float:
        """How much slower the later half of `step_s` is than the earlier, as a share."""
        half = len(self.step_s) // 2
        if half == 0:
            return 0.0
        return median(self.step_s[half:]) / median(self.step_s[:half]) - 1.0


@dataclass(frozen=True, slots=True)
class CommandExecutor:
    """Measure any command line.

    Parameters
    ----------
    template
        A command line (split as a shell does; no shell runs) or its words, with ``{name}`` where
        a trial's value goes. ``{{`` and ``}}`` stand for braces.
    steps
        Where step times come from: `PatternSteps`, `JsonLinesSteps` or `HookSteps`.
    working_folder
        Where the command runs, by default here.
    environment
        Variables to set besides the inherited ones.
    limits
        Seconds, output and memory of a run.
    n_warmup
        Steps to drop in any case (see `steady`).
    stop_after
        Stop the command when this many steps have been seen, for scripts that train for days;
        looked at once a second.

    Examples
    --------
    >>> from paceline.executors import PatternSteps
    >>> executor = CommandExecutor(
    ...     "echo step 1 time {step_time}",
    ...     steps=PatternSteps(r"time (?P<time>[0-9.]+)"),
    ...     n_warmup=0,
    ... )
    >>> executor.run({"step_time": 0.25}).step_s
    (0.25,)
    """

    template: str | Sequence[str]
    steps: Steps = field(kw_only=True)
    working_folder: str | Path | None = field(default=None, kw_only=True)
    environment: Mapping[str, str] | None = field(default=None, kw_only=True)
    limits: CommandLimits = field(default_factory=CommandLimits, kw_only=True)
    n_warmup: int = field(default=5, kw_only=True)
    stop_after: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        split_command(self.template)
        if self.n_warmup < 0:
            raise InvalidInputError(f"`n_warmup >= 0` must hold, but got {self.n_warmup}.")
        if self.stop_after is not None and self.stop_after <= self.n_warmup:
            raise InvalidInputError(
                f"`stop_after > n_warmup` must hold, but got {self.stop_after} <= {self.n_warmup}."
            )

    def command(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the words that would be run for a trial."""
        return tuple(fill(word, values) for word in split_command(self.template))

    def run(
        self,
        values: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        max_bytes: int | None = None,
        echo: BinaryIO | None = None,
    ) -> CommandRecord:
        """Run the command with the values of a trial.

        Parameters
        ----------
        values
            The trial: a value for every placeholder; others are ignored.
        timeout_s, max_bytes
            Instead of the limits of the executor.
        echo
            Where the output is copied to as it comes.

        Raises
        ------
        UnknownNameError
            A placeholder that the trial does not know; nothing was run.
        RunTimeoutError, DeviceMemoryError, ExecutionError
            The run failed; the error carries the reason and the end of the output.
        """
        command = self.command(values)
        folder = Path(self.working_folder or Path.cwd())
        reader = self.steps.open(values, folder)
        output = Output(on_lines=reader.take, echo=echo)
        try:
            ended = run_watched(
                command,
                output,
                folder=folder,
                environment=reader.environment({**os.environ, **(self.environment or {})}),
                limits=self._limits(timeout_s, max_bytes),
                is_enough=lambda: self._is_enough(reader),
            )
            _raise_if_failed(ended, output, reader, self._limits(timeout_s, max_bytes))
            return self._record(command, ended, output, reader)
        except ExecutionError as error:
            error.log_tail = output.tail
            raise
        finally:
            reader.close()

    def _limits(self, timeout_s: float | None, max_bytes: int | None) -> CommandLimits:
        return replace(
            self.limits,
            timeout_s=self.limits.timeout_s if timeout_s is None else timeout_s,
            output_bytes=self.limits.output_bytes if max_bytes is None else max_bytes,
        )

    def _is_enough(self, reader: StepReader) -> bool:
        return self.stop_after is not None and reader.n_seen() >= self.stop_after

    def _record(
        self, command: tuple[str, ...], ended: Ended, output: Output, reader: StepReader
    ) -> CommandRecord:
        times = reader.times()
        if not times:
            raise ExecutionError(f"{reader.nothing()}. {_shown(output.head)}")
        kept = {rank: steady(all_s, self.n_warmup) for rank, all_s in times.items()}
        slowest = max(kept, key=lambda rank: median(kept[rank] or (0.0,)))
        if not kept[slowest]:
            raise ExecutionError(
                f"More than {self.n_warmup} steps (`n_warmup`) must be seen, "
                f"but there were {len(times[slowest])}."
            )
        return CommandRecord(
            command=command,
            source=self.steps.source,
            step_s=kept[slowest],
            by_rank=kept,
            n_dropped=len(times[slowest]) - len(kept[slowest]),
            exit_code=ended.exit_code,
            log_tail=output.tail,
            seconds=ended.seconds,
            n_ended=ended.n_ended,
        )


def _shown(head: Sequence[str]) -> str:
    if not head:
        return "It printed nothing."
    return f"Its output begins: {' | '.join(head)}"


def _raise_if_failed(
    ended: Ended, output: Output, reader: StepReader, limits: CommandLimits
) -> None:
    if ended.error:
        raise ExecutionError(f"The command must be startable, but: {ended.error}.")
    if ended.stop == "deadline":
        raise RunTimeoutError(_timeout_reason(output, reader, limits))
    if ended.stop == "output":
        raise ExecutionError(
            f"The command may print at most {limits.output_bytes} bytes, but printed more."
        )
    if ended.stop == "memory":
        raise DeviceMemoryError(
            f"The command may use at most {limits.memory_bytes} bytes of memory, but used more."
        )
    if ended.stop is None and ended.exit_code != 0:
        raise _exit_error(ended, output.tail)


def _timeout_reason(output: Output, reader: StepReader, limits: CommandLimits) -> str:
    n_seen = reader.n_seen()
    reason = f"The command must end within {limits.timeout_s:g} s, but was still running"
    if n_seen:
        return f"{reason}, {n_seen} steps seen. `stop_after` stops it when there are enough."
    return f"{reason} without a step. {reader.nothing()} so far. {_shown(output.head)}"


def _exit_error(ended: Ended, tail: str) -> ExecutionError:
    exit_code = ended.exit_code
    if exit_code is None:
        return ExecutionError("The command must end by itself, but was ended from outside.")
    end = f"exited with code {exit_code}"
    if exit_code < 0:
        end = f"was killed by {signal.Signals(-exit_code).name}"
    last = next((line.strip() for line in reversed(tail.splitlines()) if line.strip()), "")
    reason = f"The command must end well, but {end}. Its last line: {last[:200] or 'none'}"
    if ended.out_of_memory or any(word in tail for word in _MEMORY_WORDS):
        return DeviceMemoryError(reason)
    return ExecutionError(reason)
