"""A dataset as one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from paceline.dataset._basis import TimeBasis
from paceline.dataset._dataset import Dataset
from paceline.dataset._files import written_whole
from paceline.dataset._frame import build_parameters, build_times
from paceline.dataset._observation import Observation
from paceline.dataset._observations import (
    collect_other,
    list_observations,
    list_other,
    note_failed,
)
from paceline.dataset._schema import (
    create_tables,
    insert_observations,
    open_store,
    read_meta,
    read_parameters,
    read_rows,
    transaction,
    write_meta,
    write_parameters,
)
from paceline.errors import InvalidInputError, SchemaError

# Beyond this the list of a parameter's values is of no use to anybody.
_MOST_VALUES = 1000

_Read = TypeVar("_Read")


def save_store(dataset: Dataset, path: str | Path, *, append: bool = False) -> None:
    """Save a dataset as an SQLite store.

    Parameters
    ----------
    dataset
        What to save; its notes are not stored.
    path
        The file, made whole or not at all.
    append
        Add the rows to a store that exists already and has the same parameters and basis.

    Raises
    ------
    InvalidInputError
        When the file exists and `append` is false, or the parameters do not agree.
    SchemaError
        When the file is no store of ours.
    """
    path = Path(path)
    if not path.exists():
        with written_whole(path) as temporary, open_store(temporary, create=True) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            with transaction(connection):
                _fill(connection, dataset)
        return
    with open_store(path) as connection:
        read_meta(connection, path)  # refuses what is not ours, whatever was asked
        if not append:
            raise InvalidInputError(
                f"A new store must have a new name, but {str(path)!r} exists already; "
                "append to it, or choose another name."
            )
        with transaction(connection):
            _append(connection, dataset, path)


def read_store(path: str | Path) -> Dataset:
    """Return the dataset in an SQLite store; failed observations give no row.

    Raises
    ------
    SchemaError
        When the file is no store of ours, is damaged, or was made by a newer Paceline.
    """
    return _read_soundly(Path(path), lambda store: _read_dataset(store, Path(path)))


def read_observations(path: str | Path) -> list[Observation]:
    """Return every observation in an SQLite store, the failed ones too.

    Raises
    ------
    SchemaError
        As `read_store`.
    """
    return _read_soundly(Path(path), lambda store: [seen for seen, _ in read_rows(store)])


def _read_soundly(path: Path, read: Callable[[sqlite3.Connection], _Read]) -> _Read:
    with open_store(path) as connection:
        read_meta(connection, path)
        try:
            return read(connection)
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(path, f"must be a sound store, but got: {error}.") from error


def _read_dataset(connection: sqlite3.Connection, path: Path) -> Dataset:
    meta, parameters = read_meta(connection, path), read_parameters(connection)
    rows = list(read_rows(connection))
    done = [(seen, other) for seen, other in rows if not seen.failed]
    observations = [seen for seen, _ in done]
    times_s = tuple(seen.times_s for seen in observations)
    return Dataset(
        X=_collect_parameters(parameters, observations),
        y=build_times(np.array([seen.time_s for seen in observations], dtype=np.float64)),
        roles={p["name"]: p["role"] for p in parameters},
        kinds={p["name"]: p["kind"] for p in parameters},
        basis=TimeBasis.from_dict(meta["basis"]),
        times_s=times_s if meta["raw_times"] else None,
        other=collect_other(meta["other"], [other for _, other in done]),
        notes=tuple(note_failed(len(rows) - len(done))),
        provenance=meta["provenance"],
    )


def _collect_parameters(
    parameters: Sequence[dict[str, Any]], observations: Sequence[Observation]
) -> pd.DataFrame:
    columns = {
        p["name"]: np.array(
            [seen.values[p["name"]] for seen in observations],
            dtype=object if p["kind"] == "categorical" else np.float64,
        )
        for p in parameters
    }
    return build_parameters(columns, len(observations))


def _fill(connection: sqlite3.Connection, dataset: Dataset) -> None:
    create_tables(connection)
    entries = {
        "basis": dataset.basis.to_dict(),
        "raw_times": dataset.times_s is not None,
        "other": list(dataset.other.columns),
        "provenance": dataset.provenance,
    }
    write_meta(connection, entries)
    write_parameters(connection, _describe_parameters(dataset))
    _insert(connection, dataset)


def _append(connection: sqlite3.Connection, dataset: Dataset, path: Path) -> None:
    meta, stored = read_meta(connection, path), read_parameters(connection)
    given = _describe_parameters(dataset)
    _check_agreement(meta, stored, given, dataset)
    entries = {
        "raw_times": meta["raw_times"] or dataset.times_s is not None,
        "other": list(dict.fromkeys([*meta["other"], *dataset.other.columns])),
    }
    write_meta(connection, entries)
    new_values = {p["name"]: p["values"] for p in given}
    write_parameters(
        connection,
        [{**p, "values": _merge(p["values"], new_values[p["name"]])} for p in stored],
    )
    _insert(connection, dataset)


def _check_agreement(
    meta: dict[str, Any],
    stored: Sequence[dict[str, Any]],
    given: Sequence[dict[str, Any]],
    dataset: Dataset,
) -> None:
    differences = _differences(stored, given)
    if differences:
        raise InvalidInputError(
            "Rows to append must have the parameters of the store, but "
            f"{'; '.join(differences)}. Name the roles as the store has them, or write a new file."
        )
    if dataset.basis.to_dict() != meta["basis"]:
        raise InvalidInputError(
            "Rows to append must have the time basis of the store, "
            f"{TimeBasis.from_dict(meta['basis'])}, but got {dataset.basis}."
        )


def _differences(stored: Sequence[dict[str, Any]], given: Sequence[dict[str, Any]]) -> list[str]:
    """Return in words how the parameters of rows differ from those of a store."""
    theirs, mine = (
        {p["name"]: f"{p['role']} {p['kind']}" for p in side} for side in (stored, given)
    )
    found = [f"`{name}` ({what}) is missing" for name, what in theirs.items() if name not in mine]
    for name, what in mine.items():
        if name not in theirs:
            found.append(f"`{name}` ({what}) is not in the store")
        elif theirs[name] != what:
            found.append(f"`{name}` is {what}, in the store {theirs[name]}")
    return found


def _insert(connection: sqlite3.Connection, dataset: Dataset) -> None:
    observations = list_observations(dataset.X, dataset.y, dataset.times_s)
    insert_observations(connection, zip(observations, list_other(dataset.other), strict=True))


def _describe_parameters(dataset: Dataset) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "role": dataset.roles[name],
            "kind": dataset.kinds[name],
            "unit": "",
            "values": _merge(dataset.X[name].unique().tolist(), []),
        }
        for name in dataset.X.columns
    ]


def _merge(values: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """Return the values of both lists in order; none at all when they are too many."""
    distinct = sorted({*values, *more})
    return distinct if len(distinct) <= _MOST_VALUES else []
