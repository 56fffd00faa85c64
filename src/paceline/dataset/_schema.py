"""The tables of a store, and how rows get into them and out again.

A campaign may use the same functions: make the tables once, then insert and commit one
observation at a time.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from paceline.dataset._observation import Observation
from paceline.errors import InvalidInputError, SchemaError

SCHEMA = "paceline/dataset/1"

_SCHEMA_PATTERN = re.compile(r"paceline/dataset/(\d+)")
_MAGIC = b"SQLite format 3\0"
_BUSY_TIMEOUT_S = 30.0

_TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    """CREATE TABLE parameters (
        name TEXT PRIMARY KEY, role TEXT NOT NULL, kind TEXT NOT NULL, unit TEXT NOT NULL,
        "values" TEXT NOT NULL, position INTEGER NOT NULL)""",
    """CREATE TABLE observations (
        id INTEGER PRIMARY KEY, "values" TEXT NOT NULL, times_s TEXT NOT NULL,
        reason TEXT NOT NULL, other TEXT NOT NULL, provenance TEXT NOT NULL,
        created TEXT NOT NULL)""",
)


@contextmanager
def open_store(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a store and close it again; errors of SQLite become ours."""
    try:
        connection = _connect(path, "rwc" if create else "rw")
        try:
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise SchemaError(path, f"must be a sound store, but got: {error}.") from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything inside, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the empty tables of a store; call inside a transaction."""
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('schema', ?)", (SCHEMA,))


def write_meta(connection: sqlite3.Connection, entries: Mapping[str, Any]) -> None:
    """Set entries that concern the whole store."""
    rows = [(key, json.dumps(value)) for key, value in entries.items()]
    connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def write_parameters(
    connection: sqlite3.Connection, parameters: Iterable[Mapping[str, Any]]
) -> None:
    """Set the parameters, each with the fields of `Parameter.to_dict`, in order."""
    rows = [
        (p["name"], p["role"], p["kind"], p["unit"], json.dumps(p["values"]), position)
        for position, p in enumerate(parameters)
    ]
    connection.executemany("INSERT OR REPLACE INTO parameters VALUES (?, ?, ?, ?, ?, ?)", rows)


def insert_observations(
    connection: sqlite3.Connection, rows: Iterable[tuple[Observation, Mapping[str, Any]]]
) -> None:
    """Add observations, each with its values of columns that are no parameters."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    connection.executemany(
        'INSERT INTO observations ("values", times_s, reason, other, provenance, created) '
        "VALUES (?, ?, ?, ?, ?, ?)",
        (_observation_row(observation, other, created) for observation, other in rows),
    )


def read_meta(connection: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """Return the entries of a store, after a check that it is one we can read."""
    try:
        entries = dict(connection.execute("SELECT key, value FROM meta"))
    except sqlite3.Error as error:
        raise _not_ours(path) from error
    check_schema(entries.pop("schema", None), path)
    return {key: json.loads(value) for key, value in entries.items()}


def read_parameters(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the parameters in order."""
    query = 'SELECT name, role, kind, unit, "values" FROM parameters ORDER BY position'
    return [
        {"name": name, "role": role, "kind": kind, "unit": unit, "values": json.loads(values)}
        for name, role, kind, unit, values in connection.execute(query)
    ]


def read_rows(
    connection: sqlite3.Connection,
) -> Iterator[tuple[Observation, dict[str, Any]]]:
    """Yield every observation, failed ones too, with its other columns, in order."""
    query = 'SELECT "values", times_s, reason, other, provenance FROM observations ORDER BY id'
    for values, times_s, reason, other, provenance in connection.execute(query):
        observation = Observation(
            values=json.loads(values),
            times_s=tuple(json.loads(times_s)),
            reason=reason,
            provenance=json.loads(provenance),
        )
        yield observation, json.loads(other)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    if mode != "rwc":
        _check_magic(path)
    address = path.resolve().as_uri()
    try:
        # Even for reading: a read-only connection leaves its -wal and -shm files behind.
        return _configured(f"{address}?mode={mode}")
    except sqlite3.OperationalError:
        if mode == "rwc" or path.with_name(path.name + "-wal").exists():
            raise
        return _configured(f"{address}?immutable=1")  # a folder where nothing may be written


def _configured(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_TIMEOUT_S)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_magic(path: Path) -> None:
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise _not_ours(path)
    except OSError as error:
        raise InvalidInputError(
            f"A store must be readable, but {str(path)!r} is not: {error.strerror}."
        ) from error


def check_schema(schema: str | None, path: Path) -> None:
    """Refuse what is no dataset of ours, or one made by a newer Paceline."""
    match = _SCHEMA_PATTERN.fullmatch(schema or "")
    if match is None:
        raise _not_ours(path)
    if int(match[1]) > 1:
        raise SchemaError(
            path,
            f"made by a newer Paceline: this one reads up to {SCHEMA!r}, but got {schema!r}.",
        )


def _not_ours(path: Path) -> SchemaError:
    return SchemaError(path, f"must be a store of Paceline ({SCHEMA!r}), but it is not.")


def _observation_row(
    observation: Observation, other: Mapping[str, Any], created: str
) -> Sequence[str]:
    parts = (observation.values, list(observation.times_s))
    values, times_s = (json.dumps(part) for part in parts)
    provenance = json.dumps(observation.provenance)
    return values, times_s, observation.reason, json.dumps(other), provenance, created
