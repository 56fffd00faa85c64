"""Datasets as files of Extra-P."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd

from paceline.dataset._dataset import Dataset
from paceline.dataset._extra_p_lines import (
    Measurement,
    parse_json_lines,
    parse_text,
    starts_as_text,
)
from paceline.dataset._files import write_text
from paceline.dataset._frame import read_frame
from paceline.dataset._options import RESERVED, TIME, ReadKeywords, ReadOptions
from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.units import seconds_per

ExtraPFormat = Literal["text", "jsonl"]

_METRIC, _REGION = "time", "run"
_TIME_METRICS = (TIME, _METRIC)  # the one meant when a file has several and none is named
_MAX_TEXT_PARAMETERS = 4  # Extra-P reads no more from a text file
_POINTS_PER_LINE = 8
_PAIRS, _EQUALS = ", ", "="  # how a region names levels: optimizer=adam, padding=same


def is_extra_p(path: Path) -> bool:
    """Return whether a file is one of Extra-P, by its ending or its first line."""
    suffix = path.suffix.lower()
    return suffix in (".extrap", ".jsonl") or (suffix == ".txt" and starts_as_text(path))


def read_extra_p(path: str | Path, **keywords: Unpack[ReadKeywords]) -> Dataset:
    """Return the dataset in a text or JSON-lines file of Extra-P.

    One point is one row; repeated values are its repeats, and their median is its time.
    Regions that `write_extra_p` named after levels become categorical parameters.

    Parameters
    ----------
    path
        A ``.jsonl`` file, or a text file of PARAMETER, POINTS, REGION, METRIC and DATA lines.
    **keywords
        As in `Dataset.from_frame`; `time` names the metric, the region, or ``region:metric``
        when the file has several.

    Raises
    ------
    InvalidInputError
        For a file that is no such file, and when it is not clear which time is meant.
    """
    path, options = Path(path), ReadOptions(**keywords)
    if options.throughput is not None:
        raise InvalidInputError(
            f"A file of Extra-P must be read by its time, but got throughput="
            f"{options.throughput!r}. Name the metric with `--time`."
        )
    parse = parse_json_lines if path.suffix.lower() == ".jsonl" else parse_text
    found = [_with_levels(m) for m in parse(path)]
    if not found:
        raise SchemaError(path, "must have measured values, but it has none.")
    points = _merge(_choose(path, found, options.time))
    return _build(path, points, replace(options, time=TIME))


def write_extra_p(
    dataset: Dataset, path: str | Path, *, format: ExtraPFormat | None = None
) -> None:
    """Write the times in seconds, all repeats of a configuration together, for Extra-P.

    Parameters
    ----------
    dataset
        Its parameters are written; other columns, roles and the time basis are not.
    path
        The file.
    format
        ``"text"`` or ``"jsonl"``; None: by the ending of `path`. Extra-P has no categorical
        parameters: in ``jsonl`` every combination of levels is a region of its own.

    Raises
    ------
    InvalidInputError
        When the format cannot hold the parameters.
    """
    kind = format or ("jsonl" if Path(path).suffix.lower() == ".jsonl" else "text")
    if kind not in ("text", "jsonl"):
        raise InvalidInputError(f"`format` must be 'text' or 'jsonl', but got {kind!r}.")
    if not dataset.numeric:
        raise InvalidInputError("Extra-P needs a numeric parameter, but the data have none.")
    lines = _json_lines(dataset) if kind == "jsonl" else _text_lines(dataset)
    write_text(path, "\n".join(lines) + "\n")


def _choose(path: Path, found: Sequence[Measurement], time: str) -> list[Measurement]:
    """Return the measurements of the one time that is meant."""
    series = list(dict.fromkeys((m.region, m.metric) for m in found))
    matching = [s for s in series if time in (*s, ":".join(s))]
    if not matching and time == TIME:
        matching = [s for s in series if s[1] in _TIME_METRICS] if len(series) > 1 else series
    if len(matching) != 1:
        names = [":".join(s) for s in series]
        if time != TIME and not matching:
            raise UnknownNameError("time", time, names)
        raise SchemaError(
            path,
            f"one time must be chosen of {len(names)}: {', '.join(names[:5])}"
            f"{' …' if len(names) > 5 else ''}. Name it: --time {names[0]!r}",
        )
    return [m for m in found if (m.region, m.metric) == matching[0]]


def _with_levels(measurement: Measurement) -> Measurement:
    """Return the measurement with the levels in its region's name as parameters."""
    pairs = [part.split(_EQUALS) for part in measurement.region.split(_PAIRS)]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        return measurement
    levels = {name: level for name, level in pairs if name not in measurement.point}
    if len(levels) < len(pairs):
        return measurement
    region = _PAIRS.join(levels)
    return replace(measurement, region=region, point={**measurement.point, **levels})


def _merge(found: Iterable[Measurement]) -> list[Measurement]:
    """Return every point once, with all of its values."""
    points: dict[tuple[Any, ...], Measurement] = {}
    for m in found:
        key = tuple(sorted(m.point.items(), key=lambda item: item[0]))
        before = points.get(key)
        points[key] = m if before is None else replace(before, values=before.values + m.values)
    return list(points.values())


def _build(path: Path, points: Sequence[Measurement], options: ReadOptions) -> Dataset:
    taken = [name for name in points[0].point if name in RESERVED]
    if taken:
        raise SchemaError(path, f"a parameter must not be called {taken[0]!r}; rename it.")
    for m in points:
        bad = [value for value in m.values if value <= 0]
        if bad:
            raise SchemaError(path, f"times must be positive, but line {m.line} has {bad[0]:g}.")
    names = list(points[0].point)
    frame = pd.DataFrame({name: [m.point[name] for m in points] for name in names})
    frame[TIME] = [float(np.median(m.values)) for m in points]
    fields = read_frame(frame, options, lambda i: f"the point of line {points[i].line}")
    seconds = seconds_per(options.time_unit or "s")
    times_s = tuple(tuple(value * seconds for value in m.values) for m in points)
    return Dataset(**fields, times_s=times_s, provenance={"file": path.name})


def _repeats(dataset: Dataset) -> dict[tuple[Any, ...], list[float]]:
    """Return all times of every configuration."""
    raw = dataset.times_s or tuple((time,) for time in dataset.y.tolist())
    found: dict[tuple[Any, ...], list[float]] = {}
    for row, times_s in zip(dataset.X.itertuples(index=False, name=None), raw, strict=True):
        found.setdefault(row, []).extend(times_s)
    return found


def _text_lines(dataset: Dataset) -> list[str]:
    names = list(dataset.X.columns)
    odd = [name for name in names if len(name.split()) != 1 or name != name.strip()]
    if dataset.categorical or odd or len(names) > _MAX_TEXT_PARAMETERS:
        raise InvalidInputError(
            "A text file of Extra-P must have at most 4 numeric parameters without blanks in "
            f"their names, but got {', '.join(names)}. Write a .jsonl file."
        )
    repeats = _repeats(dataset)
    points = [f"({' '.join(map(repr, map(float, point)))})" for point in repeats]
    starts = range(0, len(points), _POINTS_PER_LINE)
    return [
        f"PARAMETER {' '.join(names)}",
        *(f"POINTS {' '.join(points[i : i + _POINTS_PER_LINE])}" for i in starts),
        f"REGION {_REGION}",
        f"METRIC {_METRIC}",
        *(f"DATA {' '.join(map(repr, map(float, times)))}" for times in repeats.values()),
    ]


def _json_lines(dataset: Dataset) -> list[str]:
    numeric, levels = dataset.numeric, dataset.categorical
    lines = []
    for point, times_s in _repeats(dataset).items():
        cells = dict(zip(dataset.X.columns, point, strict=True))
        line: dict[str, Any] = {"params": {name: float(cells[name]) for name in numeric}}
        if levels:
            line["callpath"] = _name_levels({name: str(cells[name]) for name in levels})
        line |= {"metric": _METRIC, "value": [float(time) for time in times_s]}
        lines.append(json.dumps(line, ensure_ascii=False))
    return lines


def _name_levels(levels: dict[str, str]) -> str:
    for text in (*levels, *levels.values()):
        if not text or any(mark in text for mark in (_PAIRS, _EQUALS, "->")):
            raise InvalidInputError(
                f"A level must have a name without '=', ', ' and '->' for Extra-P, but got "
                f"{text!r}. Rename it."
            )
    return _PAIRS.join(f"{name}{_EQUALS}{level}" for name, level in levels.items())
