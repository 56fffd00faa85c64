"""A command line as an executor of campaigns: each run is one start of the user's script."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.executors._base import BaseExecutor, Pool
from paceline.executors._command import CommandExecutor, CommandRecord
from paceline.executors._job import Job, RunRecord, WorkerRecord
from paceline.executors._json_steps import JsonLinesSteps
from paceline.executors._pattern_steps import PatternSteps
from paceline.executors._placeholders import fill, split_command
from paceline.executors._steps import Steps
from paceline.executors._trace import HookSteps

# where step times come from, and what may be said of it
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "pattern": ("unit", "kind", "batch"),
    "jsonl": ("key", "unit"),
    "hooks": (),
}
_KNOWN = ("command", *_SOURCES, "unit", "kind", "batch", "key", "folder", "environment", "stop")


class ScriptExecutor(BaseExecutor):
    """Measure a command line of the user's, once per run of a campaign.

    Parameters
    ----------
    options
        ``command``: the line, with ``{name}`` where a trial's value goes (`n_devices`,
        `device_batch` and `global_batch` are known too). One of ``pattern`` (with ``unit``,
        ``kind``, ``batch``), ``jsonl`` (with ``key``, ``unit``) or ``hooks = true``: where step
        times come from. ``folder``: where it runs. ``environment``: variables to set.
        ``stop = true``: end it once there are enough steps.

    Raises
    ------
    InvalidInputError
        When an option is missing, unknown or wrong; names it.

    Examples
    --------
    >>> options = {"command": "echo step 0.25", "pattern": r"step (?P<time>[0-9.]+)"}
    >>> job = Job(sample={}, optimizer={}, device_batches=[8], n_warmup=0)
    >>> with ScriptExecutor(options).open(1) as pool:
    ...     pool.run(job, 10.0).step_s
    (0.25,)
    """

    name = "command"

    def __init__(self, options: Mapping[str, Any]) -> None:
        for name in options:
            if name not in _KNOWN:
                raise UnknownNameError("option of `command`", str(name), _KNOWN)
        if not isinstance(options.get("command"), str | list):
            raise InvalidInputError(
                "`options.command.command` must be a command line, "
                f"but got {options.get('command')!r}."
            )
        self._stop = options.get("stop", False)
        if not isinstance(self._stop, bool):
            raise InvalidInputError(
                f"`options.command.stop` must be true or false, but got {self._stop!r}."
            )
        self._command = CommandExecutor(
            options["command"],
            steps=_steps(options),
            working_folder=options.get("folder"),
            environment=_environment(options.get("environment", {})),
            n_warmup=0,
        )

    @property
    def capabilities(self) -> frozenset[str]:
        """No phases: a script is seen from outside."""
        return frozenset()

    def readiness(self) -> str:
        """Return nothing when the program and its folder are there, else what is missing."""
        folder = self._command.working_folder
        if folder is not None and not Path(folder).is_dir():
            return f"`options.command.folder` must be a folder, but {str(folder)!r} is none."
        program = split_command(self._command.template)[0]
        if "{" in program or shutil.which(program, path=self._path()) or Path(program).exists():
            return ""
        return f"Its program must be installed, but {program!r} is not."

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse a command whose placeholders these values do not fill."""
        self._command.command(values)
        if isinstance(self._command.steps, JsonLinesSteps):
            fill(self._command.steps.path, values)

    def open(self, n_workers: int, *, memory_bytes: int | None = None) -> ScriptPool:
        """Return something to run jobs on; the script is started by every run."""
        limits = replace(self._command.limits, memory_bytes=memory_bytes)
        return ScriptPool(replace(self._command, limits=limits), n_workers, stop=self._stop)

    def _path(self) -> str | None:
        return (self._command.environment or {}).get("PATH")


class ScriptPool(Pool):
    """Starts the script for every job; nothing runs in between."""

    def __init__(self, command: CommandExecutor, n_workers: int, *, stop: bool) -> None:
        self.n_workers, self._command, self._stop, self._open = n_workers, command, stop, True

    @property
    def is_alive(self) -> bool:
        """Whether it was not closed."""
        return self._open

    def run(self, job: Job, timeout_s: float) -> RunRecord:
        """Run the script with the trial of a job; its steps are those of its slowest process."""
        enough = job.n_warmup + job.n_steps if self._stop else None
        command = replace(self._command, n_warmup=job.n_warmup, stop_after=enough)
        started = time.time()
        record = command.run(job.values, timeout_s=timeout_s)
        return RunRecord(workers=_workers(record, self.n_workers, started))

    def close(self) -> None:
        """Close it."""
        self._open = False


def _workers(record: CommandRecord, n_workers: int, started: float) -> tuple[WorkerRecord, ...]:
    """Return one worker per rank where all were seen, else the command as one."""
    ranks = sorted(record.by_rank)
    seen = [record.by_rank[r] for r in ranks] if len(ranks) == n_workers else [record.step_s]
    n_steps = min(map(len, seen))
    return tuple(
        WorkerRecord(rank=i, step_s=tuple(times[-n_steps:]), process=f"command-{started:.3f}-{i}")
        for i, times in enumerate(seen)
    )


def _steps(options: Mapping[str, Any]) -> Steps:
    named = [source for source in _SOURCES if options.get(source)]
    if len(named) != 1:
        raise InvalidInputError(
            "`options.command` must have one of `pattern`, `jsonl` and `hooks = true`, "
            f"but got {' and '.join(named) or 'none'}."
        )
    source = named[0]
    details = {"unit", "kind", "batch", "key"} & set(options)
    wrong = sorted(details - set(_SOURCES[source]))
    if wrong:
        raise InvalidInputError(f"`options.command.{wrong[0]}` must not be given with `{source}`.")
    if source == "hooks":
        return HookSteps()
    if not isinstance(options[source], str):
        raise InvalidInputError(
            f"`options.command.{source}` must be a text, but got {options[source]!r}."
        )
    made = PatternSteps if source == "pattern" else JsonLinesSteps
    return made(options[source], **{name: options[name] for name in details})


def _environment(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidInputError(
            f"`options.command.environment` must be a table, but got {given!r}."
        )
    return {str(name): str(value) for name, value in given.items()}
