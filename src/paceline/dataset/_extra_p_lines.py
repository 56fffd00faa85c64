"""The lines of Extra-P's text and JSON-lines files.

Formats after Extra-P 4, ``docs/file-formats.md``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.errors import SchemaError
from paceline.files import read_text

# Extra-P's own names for what a file leaves out.
NO_REGION, NO_METRIC = "<root>", "<default>"
_FIELDS = ("PARAMETER", "POINTS", "REGION", "METRIC", "DATA")
_POINT = re.compile(r"\(([^()]*)\)")

Cell = float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The values at one point, and the line where they stand."""

    region: str
    metric: str
    point: dict[str, Cell]
    values: tuple[float, ...]
    line: int


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file in UTF-8."""
    return read_text(path, "A data file").removeprefix("\ufeff").split("\n")


def starts_as_text(path: Path) -> bool:
    """Return whether a file begins like an Extra-P text file."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            kept = (line.split() for line in file if line.strip() and line[0] != "#")
            return next(kept, [""])[0] == "PARAMETER"
    except (OSError, UnicodeDecodeError):
        return False


def parse_text(path: Path) -> list[Measurement]:
    """Return what the PARAMETER, POINTS, REGION, METRIC and DATA lines say."""
    reader = _TextReader(path)
    for number, line in enumerate(read_lines(path), 1):
        if line.strip() and not line.startswith("#"):
            reader.take(number, *line.strip().partition(" ")[::2])
    reader.finish_section("the end")
    return reader.found


def parse_json_lines(path: Path) -> list[Measurement]:
    """Return what every line of ``{"params": {...}, "value": ...}`` says."""
    found: list[Measurement] = []
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            measurement = _parse_object(path, number, line)
            names = list(found[0].point) if found else list(measurement.point)
            if set(names) != set(measurement.point):
                raise SchemaError(
                    path,
                    f"every line must have the parameters {names}, but line {number} has "
                    f"{list(measurement.point)}.",
                )
            found.append(measurement)
    return found


@dataclass(slots=True)
class _TextReader:
    path: Path
    parameters: list[str] = field(default_factory=list)
    points: list[tuple[float, ...]] = field(default_factory=list)
    region: str = NO_REGION
    metric: str = NO_METRIC
    n_data: int = 0
    found: list[Measurement] = field(default_factory=list)

    def take(self, number: int, keyword: str, rest: str) -> None:
        where = f"line {number}"
        if keyword not in _FIELDS:
            raise SchemaError(
                self.path, f"a line must begin with one of {_FIELDS}, but {where} does not."
            )
        words = rest.split()
        if not words:
            raise SchemaError(self.path, f"{keyword} must be followed by a value in {where}.")
        if keyword == "PARAMETER":
            self._take_parameters(words, where)
        elif keyword == "POINTS":
            self.points += self._parse_points(rest.strip(), where)
        elif keyword == "DATA":
            self._take_data(words, number)
        else:
            self.finish_section(where)
            setattr(self, keyword.lower(), " ".join(words))

    def finish_section(self, where: str) -> None:
        """Refuse a section that has begun and lacks points."""
        if 0 < self.n_data < len(self.points):
            raise SchemaError(
                self.path,
                f"a region must have one DATA line for each of the {len(self.points)} points, but "
                f"the one before {where} has {self.n_data}.",
            )
        self.n_data = 0

    def _take_parameters(self, words: list[str], where: str) -> None:
        if self.points:
            raise SchemaError(self.path, f"PARAMETER must stand before POINTS, not in {where}.")
        self.parameters += words
        if len(set(self.parameters)) < len(self.parameters):
            raise SchemaError(
                self.path, f"names of parameters must differ, but {where} repeats one."
            )

    def _parse_points(self, text: str, where: str) -> Iterator[tuple[float, ...]]:
        # the braces may also stand around every coordinate: ((1) (2)) ((1) (4))
        bare = re.sub(r"\(\s*([^()\s]+)\s*\)", r" \1 ", text) if "((" in text else text
        parts = _POINT.findall(bare) if "(" in bare else bare.split()
        if _POINT.sub("", bare).strip() and "(" in bare:
            raise SchemaError(self.path, f"points must be like (1 2) (1 4), but {where} is not.")
        for part in parts:
            point = tuple(_number(self.path, word, where) for word in part.split())
            if not point or len(point) != len(self.parameters):
                raise SchemaError(
                    self.path,
                    f"a point must have a value for each of the {len(self.parameters)} "
                    f"parameters, but {where} has ({part.strip()}).",
                )
            yield point

    def _take_data(self, words: list[str], number: int) -> None:
        if self.n_data >= len(self.points):
            raise SchemaError(
                self.path,
                f"a region must have one DATA line for each of the {len(self.points)} points, but "
                f"line {number} is one more.",
            )
        point = dict(zip(self.parameters, self.points[self.n_data], strict=True))
        values = tuple(_number(self.path, word, f"line {number}") for word in words)
        self.n_data += 1
        self.found.append(
            Measurement(
                region=self.region,
                metric=self.metric,
                point=dict(point),
                values=values,
                line=number,
            )
        )


def _parse_object(path: Path, number: int, line: str) -> Measurement:
    where = f"line {number}"
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SchemaError(
            path, f"every line must be a JSON object, but {where} is not."
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("params"), dict):
        raise SchemaError(path, f'every line must have "params": {{…}}, but {where} has none.')
    if not data["params"]:
        raise SchemaError(path, f'"params" must name a parameter, but {where} has none.')
    value = data.get("value")
    values = value if isinstance(value, list) else [value]
    if not values or value is None:
        raise SchemaError(path, f'every line must have a "value", but {where} has none.')
    return Measurement(
        region=_text(path, data.get("callpath", NO_REGION), "callpath", where),
        metric=_text(path, data.get("metric", NO_METRIC), "metric", where),
        point={name: _cell(path, cell, where) for name, cell in data["params"].items()},
        values=tuple(_number(path, item, where) for item in values),
        line=number,
    )


def _text(path: Path, value: Any, key: str, where: str) -> str:
    if not isinstance(value, str):
        raise SchemaError(path, f'"{key}" must be a text, but {where} has {str(value)[:40]!r}.')
    return value


def _cell(path: Path, value: Any, where: str) -> Cell:
    return value if isinstance(value, str) else _number(path, value, where)


def _number(path: Path, value: Any, where: str) -> float:
    """Return a word of a text file or a number of a JSON file."""
    try:
        is_plain = isinstance(value, str | int | float) and not isinstance(value, bool)
        number = float(value) if is_plain and "_" not in str(value)[:400] else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise SchemaError(
            path, f"values must be finite numbers, but {where} has {str(value)[:40]!r}."
        )
    return number
