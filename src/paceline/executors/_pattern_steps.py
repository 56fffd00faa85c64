"""Step times that a command prints."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Any, Literal

from paceline.errors import ExecutionError, InvalidInputError, UnknownNameError
from paceline.executors._steps import MAX_STEPS, UNITS_S, Source, StepReader


@dataclass(frozen=True, slots=True)
class PatternSteps:
    r"""Step times that the command prints.

    Parameters
    ----------
    pattern
        Regular expression looked for in every line of output (standard output and error in
        order), with the named group ``time``, or ``throughput`` with ``kind="throughput"``.
    unit
        Of the time: ``s``, ``ms``, ``us`` or ``min``.
    kind
        ``time``: the group is the step's time. ``throughput``: samples per second, a step's
        time is `batch` / throughput. ``timestamps``: the group is a clock (a number in `unit`,
        ``12:30:01.5`` or an ISO date and time), a step's time is the difference of two lines,
        divided by the difference of the group ``step``, if there is one.
    batch
        Samples of a step, with ``throughput``: a number or the name of a parameter.

    Examples
    --------
    >>> PatternSteps(r"time (?P<time>[\d.]+) ms", unit="ms").kind
    'time'
    """

    pattern: str
    unit: str = "s"
    kind: Literal["time", "throughput", "timestamps"] = "time"
    batch: float | str | None = None

    def __post_init__(self) -> None:
        if self.unit not in UNITS_S:
            raise UnknownNameError("unit", self.unit, UNITS_S)
        if self.kind not in ("time", "throughput", "timestamps"):
            raise UnknownNameError("kind", self.kind, ("time", "throughput", "timestamps"))
        if self.group not in _compiled(self.pattern).groupindex:
            raise InvalidInputError(
                f"The pattern must hold the named group `(?P<{self.group}>...)`, "
                f"but got {self.pattern!r}."
            )
        if (self.kind == "throughput") != (self.batch is not None):
            raise InvalidInputError(
                "`batch` must be given with `kind='throughput'` and only then, "
                f"but got kind={self.kind!r}, batch={self.batch!r}."
            )

    @property
    def group(self) -> str:
        """Name of the group that holds the number."""
        return "throughput" if self.kind == "throughput" else "time"

    @property
    def source(self) -> Source:
        """Name of the source."""
        return "pattern"

    def open(self, values: Mapping[str, Any], folder: Path) -> StepReader:
        """Return a reader for one run."""
        return _PatternReader(self, self._batch(values))

    def _batch(self, values: Mapping[str, Any]) -> float:
        if not isinstance(self.batch, str):
            return self.batch or 1.0
        if self.batch not in values:
            raise UnknownNameError("parameter", self.batch, values)
        return float(values[self.batch])


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInputError(
            f"`pattern` must be a regular expression, but {pattern!r} is not: {error}."
        ) from error


class _PatternReader:
    """Matches every line as it comes and keeps nothing but numbers."""

    def __init__(self, steps: PatternSteps, batch: float) -> None:
        self._steps = steps
        self._pattern = _compiled(steps.pattern)
        self._batch = batch
        self._times = array("d")
        self._last: tuple[float, float] | None = None

    def environment(self, base: Mapping[str, str]) -> Mapping[str, str]:
        return base

    def take(self, lines: Sequence[str]) -> None:
        for line in lines:
            if len(self._times) >= MAX_STEPS:
                return
            if match := self._pattern.search(line):
                self._add(match, line)

    def _add(self, match: re.Match[str], line: str) -> None:
        try:
            seconds = self._seconds(match)
        except (ValueError, ZeroDivisionError, TypeError) as error:
            raise ExecutionError(
                f"The group `{self._steps.group}` must hold a number, but got "
                f"{match[self._steps.group]!r} in the line {line[:200]!r}."
            ) from error
        if seconds is not None and math.isfinite(seconds) and seconds > 0:
            self._times.append(seconds)

    def _seconds(self, match: re.Match[str]) -> float | None:
        text = match[self._steps.group]
        if self._steps.kind == "throughput":
            return self._batch / float(text)
        if self._steps.kind == "time":
            return float(text) * UNITS_S[self._steps.unit]
        return self._difference(_clock_s(text, UNITS_S[self._steps.unit]), match)

    def _difference(self, now_s: float, match: re.Match[str]) -> float | None:
        step = float(match["step"]) if "step" in self._pattern.groupindex else math.nan
        last, self._last = self._last, (now_s, step)
        if last is None:
            return None
        n_steps = 1.0 if math.isnan(step) else step - last[1]
        seconds = now_s - last[0]
        if seconds < 0 and ":" in match["time"]:
            seconds += 86400.0  # past midnight
        return seconds / n_steps if n_steps > 0 else None

    def n_seen(self) -> int:
        return len(self._times)

    def times(self) -> Mapping[int, Sequence[float]]:
        return {0: self._times} if self._times else {}

    def nothing(self) -> str:
        return f"The output must match the pattern `{self._steps.pattern}`, but no line does"

    def close(self) -> None:
        pass


def _clock_s(text: str, unit_s: float) -> float:
    try:
        return float(text) * unit_s
    except ValueError:
        plain = text.strip().replace(",", ".")
    if "-" in plain:
        return datetime.fromisoformat(plain).timestamp()
    clock = time.fromisoformat(plain)
    return clock.hour * 3600 + clock.minute * 60 + clock.second + clock.microsecond * 1e-6
