"""Between observations and the rows of a dataset."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset._basis import TimeBasis
from paceline.dataset._cells import Levels, Numbers, level_name, plain_column
from paceline.dataset._frame import build_parameters, build_times, note_repeats
from paceline.dataset._observation import Observation
from paceline.dataset._roles import Roles
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import Parameter, Space


def collect_observations(
    space: Space, observations: Sequence[Observation], basis: TimeBasis
) -> dict[str, Any]:
    """Return the fields of the dataset of those observations that did not fail."""
    done = [observation for observation in observations if not observation.failed]
    if not done:
        raise InvalidInputError(
            f"At least one observation must have a time, but all {len(observations)} failed."
        )
    found = Roles()
    columns = {p.name: _column(p, space, done) for p in space.parameters}
    for parameter in space.parameters:
        found.add(parameter.name, parameter.role, columns[parameter.name])
    X = build_parameters(found.columns, len(done))
    notes = [*note_failed(len(observations) - len(done)), *found.notes, *note_repeats(X)]
    return {
        "X": X,
        "y": build_times(np.array([observation.time_s for observation in done])),
        "roles": found.roles,
        "kinds": found.kinds,
        "basis": basis,
        "times_s": tuple(observation.times_s for observation in done),
        "other": build_parameters({n: columns[n] for n in found.constant}, len(done)),
        "notes": tuple(notes),
        "provenance": _shared([observation.provenance for observation in done]),
    }


def list_observations(
    X: pd.DataFrame, y: pd.Series[float], times_s: Sequence[tuple[float, ...]] | None
) -> Iterator[Observation]:
    """Yield the rows of a dataset as observations."""
    names = list(X.columns)
    columns = [X[name].tolist() for name in names]
    repeats = times_s if times_s is not None else [(time_s,) for time_s in y.tolist()]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(y))
    for values, row_times_s in zip(rows, repeats, strict=True):
        yield Observation(values=dict(zip(names, values, strict=True)), times_s=row_times_s)


def list_other(other: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the cells of columns that are no parameters, None where one is missing."""
    names = list(other.columns)
    columns = [[None if _is_nan(cell) else cell for cell in other[n].tolist()] for n in names]
    for cells in zip(*columns, strict=True) if columns else iter([()] * len(other)):
        yield dict(zip(names, cells, strict=True))


def collect_other(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return the table that `list_other` took apart."""
    columns = {n: plain_column(pd.Series([row.get(n) for row in rows])) for n in names}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(rows)))


def note_failed(n_failed: int) -> list[str]:
    """Return a note when observations failed."""
    if not n_failed:
        return []
    words = "1 observation" if n_failed == 1 else f"{n_failed} observations"
    return [f"{words} failed and gave no row."]


def _column(
    parameter: Parameter, space: Space, observations: Sequence[Observation]
) -> Numbers | Levels:
    values = [_value(parameter, space, observation) for observation in observations]
    return np.array(values, dtype=object if parameter.kind == "categorical" else np.float64)


def _value(parameter: Parameter, space: Space, observation: Observation) -> float | str:
    for name in observation.values:
        if name not in space.names:
            raise UnknownNameError("parameter", name, space.names)
    if parameter.name not in observation.values:
        raise InvalidInputError(
            f"An observation must have a value of `{parameter.name}`, "
            f"but got {dict(observation.values)}."
        )
    value: object = observation.values[parameter.name]
    if parameter.kind == "categorical":
        return level_name(value)
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InvalidInputError(f"`{parameter.name}` must be a number, but got {value!r}.")
    return float(value)


def _shared(provenances: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the entries that all observations agree on."""
    first, *rest = provenances
    return {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in rest)
    }


def _is_nan(cell: object) -> bool:
    return isinstance(cell, float) and math.isnan(cell)
