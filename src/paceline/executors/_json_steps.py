"""Step times in a file of JSON lines that a command writes."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import ExecutionError, UnknownNameError
from paceline.executors._placeholders import fill
from paceline.executors._steps import MAX_STEPS, UNITS_S, Source, StepReader

_LINE_BYTES = 1 << 20
_OVERLAP_BYTES = 4096


@dataclass(frozen=True, slots=True)
class JsonLinesSteps:
    """Step times in a file of JSON lines that the command writes.

    Parameters
    ----------
    path
        The file, from the command's working folder; may hold placeholders. What it held before
        the run is not read.
    key
        Key of the step's time; lines without it are passed over.
    unit
        Of the time: ``s``, ``ms``, ``us`` or ``min``.
    """

    path: str
    key: str = "step_s"
    unit: str = "s"

    def __post_init__(self) -> None:
        if self.unit not in UNITS_S:
            raise UnknownNameError("unit", self.unit, UNITS_S)

    @property
    def source(self) -> Source:
        """Name of the source."""
        return "jsonl"

    def open(self, values: Mapping[str, Any], folder: Path) -> StepReader:
        """Return a reader for one run."""
        return _JsonLinesReader(self, folder / fill(self.path, values))


class _JsonLinesReader:
    """Reads the file at the end, from where it ended at the start."""

    def __init__(self, steps: JsonLinesSteps, path: Path) -> None:
        self._steps = steps
        self._path = path
        self._old = _end_of(path)

    def environment(self, base: Mapping[str, str]) -> Mapping[str, str]:
        return base

    def take(self, lines: Sequence[str]) -> None:
        pass

    def n_seen(self) -> int:
        return len(self.times().get(0, ()))

    def times(self) -> Mapping[int, Sequence[float]]:
        factor = UNITS_S[self._steps.unit]
        times = array("d")
        for number, line in enumerate(self._lines(), start=1):
            record = self._parsed(line, number)
            if self._steps.key in record and len(times) < MAX_STEPS:
                times.append(self._value(record, number) * factor)
        return {0: times} if times else {}

    def _lines(self) -> Iterator[bytes]:
        """Yield whole lines written by this run."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            _seek_new(file.fileno(), *self._old)
            while line := file.readline(_LINE_BYTES):
                if line.endswith(b"\n") and line.strip():
                    yield line

    def _parsed(self, line: bytes, number: int) -> Mapping[str, Any]:
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ExecutionError(
                f"{self._path} must hold one JSON object per line, "
                f"but its new line {number} is {line[:100]!r}."
            ) from error
        return record if isinstance(record, dict) else {}

    def _value(self, record: Mapping[str, Any], number: int) -> float:
        value = record[self._steps.key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e18:
            raise ExecutionError(
                f"`{self._steps.key}` must be a positive number, "
                f"but got {value!r} in new line {number} of {self._path}."
            )
        return float(value)

    def nothing(self) -> str:
        if not self._path.is_file():
            return f"The command must write {self._path}, but there is no such file"
        return f"{self._path} must hold new lines with the key {self._steps.key!r}, but has none"

    def close(self) -> None:
        pass


def _end_of(path: Path) -> tuple[int, bytes]:
    """Return the size of a file and its last bytes, which tell appending from writing anew."""
    if not path.is_file():
        return 0, b""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _OVERLAP_BYTES))
        return size, file.read()


def _seek_new(descriptor: int, size: int, end: bytes) -> None:
    appended = os.pread(descriptor, len(end), size - len(end)) == end
    os.lseek(descriptor, size if appended else 0, os.SEEK_SET)
