"""Measure a training script from outside, unedited: by when torch's optimizers step."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ExecutionError
from paceline.executors._command import CommandExecutor, CommandRecord
from paceline.executors._steps import MAX_STEPS, Source, StepReader
from paceline.executors._watched import CommandLimits

HOOKS = Path(__file__).with_name("hooks")
_WINDOW = 4096  # steps from which a repeating order is read
_REPEATS = 0.9  # share that must repeat: a step may be left out now and then


@dataclass(frozen=True, slots=True)
class HookSteps:
    """Step times from torch's optimizer-step hooks, put in through the environment.

    A step ends when its optimizer has stepped, so gradient accumulation counts as one step, and
    what happens between steps (reading data, logging) belongs to it. Where several optimizers
    step in turn, a step is one round of them. The script is not edited. On devices that work
    asynchronously, single times are those of the host, and their median is the device's pace.
    """

    @property
    def source(self) -> Source:
        """Name of the source."""
        return "hooks"

    def open(self, values: Mapping[str, Any], folder: Path) -> StepReader:
        """Return a reader for one run."""
        return _HookReader()


def trace(
    command: Sequence[str],
    *,
    timeout_s: float | None = None,
    n_warmup: int = 5,
    stop_after: int | None = None,
    working_folder: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
    echo: BinaryIO | None = None,
) -> CommandRecord:
    """Run a user's training command, unedited, and return its step times.

    Parameters
    ----------
    command
        Its words; braces in them mean nothing.
    timeout_s, max_bytes
        Limits of time and output, by default none.
    n_warmup
        Steps to drop in any case.
    stop_after
        Stop the command when this many steps have been seen.
    working_folder, environment
        Where it runs, and variables to set besides the inherited ones.
    echo
        Where its output is copied to as it comes.

    Raises
    ------
    ExecutionError
        The command failed, or no torch optimizer stepped in it.
    """
    executor = CommandExecutor(
        [word.replace("{", "{{").replace("}", "}}") for word in command],
        steps=HookSteps(),
        working_folder=working_folder,
        environment=environment,
        limits=CommandLimits(timeout_s=timeout_s, output_bytes=max_bytes),
        n_warmup=n_warmup,
        stop_after=stop_after,
    )
    return executor.run({}, echo=echo)


class _HookReader:
    """Makes a folder for the hooks' files and reads them."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="paceline-steps-"))

    def environment(self, base: Mapping[str, str]) -> Mapping[str, str]:
        paths = [str(HOOKS), base.get("PYTHONPATH", "")]
        return {
            **base,
            "PACELINE_STEPS": str(self._folder),
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        }

    def take(self, lines: Sequence[str]) -> None:
        pass

    def n_seen(self) -> int:
        try:
            return max((len(seconds) for seconds in self.times().values()), default=0)
        except ExecutionError:
            return 0  # no order yet: there may be one later

    def times(self) -> Mapping[int, Sequence[float]]:
        by_rank: dict[int, Sequence[float]] = {}
        for path in sorted(self._folder.glob("steps-*.jsonl")):
            rank = int(path.stem.split("-")[1])
            seconds = step_times(*_read_events(path))
            # processes without ranks that train side by side: the longest speaks for them
            if len(seconds) > len(by_rank.get(rank, ())):
                by_rank[rank] = seconds
        return by_rank

    def nothing(self) -> str:
        return (
            "Two steps of a torch optimizer must be seen, but fewer were (is it Python with "
            "torch 2.0 or later, and run without -I, -E or -S?)"
        )

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _read_events(path: Path) -> tuple[list[int], list[int]]:
    """Return clock readings and optimizers; a last line that a kill cut short is passed over."""
    times_ns: list[int] = []
    optimizers: list[int] = []
    with path.open() as file:
        for line in file:
            if not line.endswith("\n") or len(times_ns) >= MAX_STEPS:
                break
            event = json.loads(line)
            times_ns.append(event["t_ns"])
            optimizers.append(event["optimizer"])
    return times_ns, optimizers


def step_times(times_ns: Sequence[int], optimizers: Sequence[int]) -> tuple[float, ...]:
    """Return the seconds of training steps, of which one may hold steps of several optimizers.

    Parameters
    ----------
    times_ns
        Clock readings, one after every step of any optimizer.
    optimizers
        Which optimizer it was.

    Raises
    ------
    ExecutionError
        The optimizers step in no repeating order.
    """
    period = cycle_length(optimizers)
    if period is None:
        raise ExecutionError(
            f"{len(set(optimizers))} optimizers must step in a repeating order, but do not: "
            "what a step is cannot be said from outside. Print or write step times instead."
        )
    ends = np.asarray(times_ns, dtype=np.int64)[period - 1 :: period]
    return tuple((np.diff(ends) * 1e-9).tolist())


def cycle_length(optimizers: Sequence[int]) -> int | None:
    """Return after how many steps the order of optimizers repeats, or None.

    The smallest p for which, in the later half of the steps (4096 at most), nine in ten steps of
    every optimizer come p steps after another of its own; the order must be seen twice.
    """
    n = len(optimizers)
    if len(set(optimizers)) <= 1:
        return 1
    later = np.asarray(optimizers[-min(_WINDOW, max(n // 2, n - _WINDOW)) :])
    _, kinds, counts = np.unique(later, return_inverse=True, return_counts=True)
    for period in range(1, len(later) // 2 + 1):
        if _repeats(kinds, period, counts > 1):
            return period
    return None


def _repeats(kinds: NDArray[np.intp], period: int, counted: NDArray[np.bool_]) -> bool:
    """Tell for every optimizer on its own: one that steps rarely must not drown in the others."""
    now, same = kinds[period:], kinds[period:] == kinds[:-period]
    n_now = np.bincount(now, minlength=len(counted))
    n_same = np.bincount(now[same], minlength=len(counted))
    return bool(np.all(n_same[counted] >= _REPEATS * np.maximum(n_now[counted], 1)))
