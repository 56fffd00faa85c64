"""What a campaign keeps in its file beside the dataset: the plan, and every run made so far."""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from paceline.dataset import (
    Observation,
    TimeBasis,
    create_tables,
    insert_observations,
    open_store,
    read_meta,
    transaction,
    write_meta,
    write_parameters,
)
from paceline.errors import InvalidInputError, SchemaError
from paceline.measurement._lock import FileLock
from paceline.measurement._plan import PlannedTrial
from paceline.measurement._study import Study

Key = tuple[int, int, int]

_TABLES = (
    """CREATE TABLE campaign_trials (
        number INTEGER PRIMARY KEY, workload TEXT NOT NULL, executor TEXT NOT NULL,
        n_workers INTEGER NOT NULL, "values" TEXT NOT NULL, chunk INTEGER NOT NULL,
        repeat_of INTEGER, again INTEGER, state TEXT NOT NULL DEFAULT 'open')""",
    """CREATE TABLE campaign_runs (
        trial INTEGER NOT NULL, attempt INTEGER NOT NULL, life INTEGER NOT NULL,
        session TEXT NOT NULL, seconds REAL NOT NULL, reason TEXT NOT NULL,
        record TEXT, created TEXT NOT NULL, PRIMARY KEY (trial, attempt, life))""",
)
# columns of an observation that are no parameters
OTHER = (
    *("trial", "workload", "executor", "n_samples", "global_batch"),
    *("minimum_s", "disagreement", "peak_memory_bytes"),
)


class Ledger:
    """The file of a campaign, owned until `close`.

    Parameters
    ----------
    study
        What the file is for; a file of another study is refused.
    path
        Where it is, or is to be.
    """

    def __init__(self, study: Study, path: Path) -> None:
        self.path = path
        self._stack = ExitStack()
        if not path.parent.is_dir():
            raise InvalidInputError(
                f"The folder of a new file must exist, but {str(path.parent)!r} does not."
            )
        try:
            self._stack.callback(FileLock(path).release)
            self._connection = self._stack.enter_context(self._opened())
            with self._writing():
                self._adopt(study)
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> None:
        """Let go of the file; once is enough."""
        self._stack.close()

    def plan(self, trials: Iterable[PlannedTrial], **notes: Any) -> None:
        """Add trials to the plan, with entries that concern the whole campaign."""
        rows = [
            (
                *(t.number, t.workload, t.executor, t.n_workers),
                *(json.dumps(dict(t.values)), t.chunk, t.repeat_of, t.again),
            )
            for t in trials
        ]
        with self._writing():
            self._connection.executemany(
                'INSERT INTO campaign_trials (number, workload, executor, n_workers, "values", '
                "chunk, repeat_of, again) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            write_meta(self._connection, {"campaign": self.notes() | notes})

    def notes(self) -> dict[str, Any]:
        """Return the entries that concern the whole campaign."""
        notes: dict[str, Any] = read_meta(self._connection, self.path).get("campaign", {})
        return notes

    def trials(self) -> dict[int, tuple[PlannedTrial, str]]:
        """Return every planned trial with its state, by number."""
        query = (
            'SELECT number, workload, executor, n_workers, "values", chunk, repeat_of, again, '
            "state FROM campaign_trials ORDER BY number"
        )
        return {row[0]: (_trial(row), row[-1]) for row in self._connection.execute(query)}

    def runs(self) -> dict[Key, float]:
        """Return the seconds of every run made so far."""
        query = "SELECT trial, attempt, life, seconds FROM campaign_runs"
        return {row[:3]: row[3] for row in self._connection.execute(query)}

    def records(self, trial: int, attempt: int) -> list[dict[str, Any]]:
        """Return what the lives of an attempt recorded, in order."""
        query = (
            "SELECT record FROM campaign_runs WHERE trial = ? AND attempt = ? "
            "AND record IS NOT NULL ORDER BY life"
        )
        rows = self._connection.execute(query, (trial, attempt))
        return [json.loads(record) for (record,) in rows]

    def results(self) -> dict[int, float]:
        """Return the median time of every trial that has any, be it of one life only."""
        query = "SELECT trial, record FROM campaign_runs WHERE record IS NOT NULL"
        times_s = {
            number: statistics.median(json.loads(record)["step_s"])
            for number, record in self._connection.execute(query)
        }
        query = "SELECT provenance, times_s FROM observations WHERE reason = ''"
        for provenance, text in self._connection.execute(query):
            times_s[json.loads(provenance)["trial"]] = statistics.median(json.loads(text))
        return times_s

    @contextmanager
    def entry(self) -> Iterator[Entry]:
        """Commit what is entered inside as a whole, or nothing of it."""
        with self._writing():
            yield Entry(self._connection)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with transaction(self._connection):
                yield
        except sqlite3.IntegrityError as error:
            raise InvalidInputError(
                f"Every run must be told once, but got one again: {error}."
            ) from error
        except sqlite3.Error as error:
            raise InvalidInputError(
                f"A campaign must be able to write to {str(self.path)!r}, but got: {error}. "
                "All finished trials are kept; the same command goes on when this is mended."
            ) from error

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        # a campaign killed in its first moment leaves an empty file
        is_new = not self.path.exists() or not self.path.stat().st_size
        with open_store(self.path, create=is_new) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a power cut loses nothing told
            yield connection

    def _adopt(self, study: Study) -> None:
        """Make the tables of a new file, or check that an old one is of the same study."""
        tables = {row[0] for row in self._connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return _create(self._connection, study)
        meta = read_meta(self._connection, self.path)
        if "campaign_trials" not in tables or "study" not in meta:
            raise SchemaError(
                self.path, "must be a new file or that of a campaign, but it holds other data."
            )
        changed = _changes(meta["study"], _plain(study))
        if changed:
            raise InvalidInputError(
                f"{str(self.path)!r} must be of the same study, but {changed}; "
                "go back to the old study, or choose another file."
            )
        return None


class Entry:
    """What can be entered inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add_run(
        self, key: Key, session: str, seconds: float, reason: str, record: Mapping[str, Any] | None
    ) -> None:
        """Enter a run; a second one of the same life is refused."""
        created = datetime.now(UTC).isoformat(timespec="seconds")
        text = None if record is None else json.dumps(record)
        self._connection.execute(
            "INSERT INTO campaign_runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*key, session, seconds, reason, text, created),
        )

    def finish(self, trial: int, observation: Observation, other: Mapping[str, Any]) -> None:
        """Enter the observation of a trial; the records of its runs are in there."""
        insert_observations(self._connection, [(observation, other)])
        self.set_state(trial, "failed" if observation.failed else "done")
        self._connection.execute(
            "UPDATE campaign_runs SET record = NULL WHERE trial = ?", (trial,)
        )

    def set_state(self, trial: int, state: str) -> None:
        """Change the state of a trial."""
        self._connection.execute(
            "UPDATE campaign_trials SET state = ? WHERE number = ?", (state, trial)
        )

    def plan_again(self, trial: int, chunk: int) -> None:
        """Plan a second attempt at a trial."""
        self._connection.execute(
            "UPDATE campaign_trials SET again = ? WHERE number = ?", (chunk, trial)
        )


def _create(connection: sqlite3.Connection, study: Study) -> None:
    from paceline.measurement._machine import describe_machine

    create_tables(connection)
    for statement in _TABLES:
        connection.execute(statement)
    basis = TimeBasis.from_dict({"time_per": "step", "batch": study.batch})
    varying = [p for p in study.full_space.parameters if len(p.values) > 1]
    constant = [p.name for p in study.full_space.parameters if len(p.values) == 1]
    names = dict.fromkeys([*OTHER, *constant])
    entries = {
        "basis": basis.to_dict(),
        "raw_times": True,
        "other": [name for name in names if name not in {p.name for p in varying}],
        "provenance": {"study": study.name, "machine": describe_machine()},
        "study": _plain(study),
    }
    write_meta(connection, entries)
    write_parameters(connection, [parameter.to_dict() for parameter in varying])


def _plain(study: Study) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(study.to_dict()))
    plain.pop("source")
    plain.pop("reduced")  # does not change what is measured here
    return plain


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> str:
    """Return the first field that differs, in words; empty when none does."""
    for name in dict.fromkeys([*old, *new]):
        before, now = old.get(name), new.get(name)
        if before != now:
            if isinstance(before, dict) and isinstance(now, dict):
                return _changes(before, now, f"{prefix}{name}.")
            if prefix + name == "space.parameters":
                return "`space` was another one"
            return f"`{prefix}{name}` was {before!r} and is {now!r}"
    return ""


def _trial(row: Sequence[Any]) -> PlannedTrial:
    number, workload, executor, n_workers, values, chunk, repeat_of, again, _ = row
    return PlannedTrial(
        number=number,
        workload=workload,
        executor=executor,
        n_workers=n_workers,
        values=json.loads(values),
        chunk=chunk,
        repeat_of=repeat_of,
        again=again,
    )
