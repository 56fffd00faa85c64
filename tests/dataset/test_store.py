"""A dataset in SQLite comes back as it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.dataset import (
    Dataset,
    Observation,
    TimeBasis,
    load_dataset,
    read_observations,
    read_store,
    save_store,
)
from paceline.dataset import _schema as schema
from paceline.errors import InvalidInputError, SchemaError

finite = st.floats(allow_nan=False, allow_infinity=False)
times = st.floats(5e-324, 1e300)
texts = st.text(max_size=5)
rows = st.tuples(finite, texts, st.lists(times, min_size=1, max_size=3), st.integers(), texts)


def assert_same(one: Dataset, other: Dataset) -> None:
    pd.testing.assert_frame_equal(one.X, other.X, check_exact=True)
    pd.testing.assert_series_equal(one.y, other.y, check_exact=True)
    pd.testing.assert_frame_equal(one.other, other.other, check_exact=True)
    for field in ("roles", "kinds", "basis", "times_s", "provenance"):
        assert getattr(one, field) == getattr(other, field)
    assert list(one.X.columns) == list(other.X.columns)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    drawn = draw(st.lists(rows, min_size=1, max_size=8))
    numbers, levels, repeats, ids, labels = zip(*drawn, strict=True)
    raw = tuple(tuple(sorted(some)) for some in repeats)
    medians = [Observation(values={}, times_s=some).time_s for some in raw]
    return Dataset(
        X=pd.DataFrame(
            {
                "x": np.array(numbers, dtype=np.float64),
                "m": pd.Series(levels, dtype=object),
                "n_devices": np.arange(1.0, len(drawn) + 1),
            }
        ),
        y=pd.Series(medians if draw(st.booleans()) else [s[0] for s in raw], name="time_s"),
        roles={"x": "intrinsic", "m": "intrinsic", "n_devices": "extrinsic"},
        kinds={"x": "numeric", "m": "categorical", "n_devices": "numeric"},
        basis=draw(
            st.sampled_from([TimeBasis(), TimeBasis(time_per="step", batch="device_batch")])
        ),
        other=pd.DataFrame(
            {
                "id": [i % 2**31 for i in ids],
                "label": pd.Series(labels, dtype=object),
                "share": [float(i % 7) / 3 for i in ids],
                "flag": [i % 2 == 0 for i in ids],
            }
        ),
        provenance=draw(st.dictionaries(texts, st.one_of(texts, finite, st.none()), max_size=3)),
    )


@settings(max_examples=60)
@given(datasets())
def test_a_store_keeps_everything_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, dataset: Dataset
) -> None:
    path = tmp_path_factory.mktemp("store") / "runs.db"
    save_store(dataset, path)
    assert_same(read_store(path), dataset)


@settings(max_examples=40)
@given(datasets(), st.lists(st.lists(times, min_size=1, max_size=4), min_size=8, max_size=8))
def test_a_store_keeps_raw_times(
    tmp_path_factory: pytest.TempPathFactory, dataset: Dataset, repeats: list[list[float]]
) -> None:
    raw = tuple(tuple(some) for some in repeats[: len(dataset)])
    medians = [Observation(values={}, times_s=some).time_s for some in raw]
    dataset = replace(dataset, times_s=raw, y=pd.Series(medians, name="time_s"))
    path = tmp_path_factory.mktemp("store") / "runs.db"
    save_store(dataset, path)
    assert_same(read_store(path), dataset)


def test_missing_cells_of_other_columns_stay_missing(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame["note"] = ["a", None, "", "b", None, "c"]
    frame["size"] = [1.5, None, 2.0, 3.0, None, 4.0]
    frame["blank"] = [None] * 6
    dataset = Dataset.from_frame(frame, intrinsic=["filters"], extrinsic=["n_devices"])
    save_store(dataset, tmp_path / "runs.db")
    assert_same(read_store(tmp_path / "runs.db"), dataset)


def test_a_store_is_one_file_in_wal_mode(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    read_store(path)
    assert [item.name for item in tmp_path.iterdir()] == ["runs.db"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        assert {name for (name,) in tables} == {"meta", "parameters", "observations"}
        meta = dict(connection.execute("SELECT key, value FROM meta"))
        assert meta["schema"] == "paceline/dataset/1"


def test_an_existing_store_is_not_overwritten(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    with pytest.raises(InvalidInputError, match="exists already"):
        save_store(dataset.take([0]), path)
    assert len(read_store(path)) == 6


def test_rows_are_appended(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset.take([0, 1]), path)
    save_store(dataset.take([2, 3, 4, 5]), path, append=True)
    assert_same(read_store(path), dataset)
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT \"values\" FROM parameters WHERE name = 'n_devices'")
        assert row.fetchone() == ("[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]",)


def test_append_makes_a_store_that_is_not_there(tmp_path: Path, dataset: Dataset) -> None:
    save_store(dataset, tmp_path / "runs.db", append=True)
    assert len(read_store(tmp_path / "runs.db")) == 6


def test_appended_rows_may_bring_other_columns(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    more = replace(dataset, other=pd.DataFrame({"host": ["h"] * 6}))
    save_store(more, path, append=True)
    assert read_store(path).other["host"].tolist() == [None] * 6 + ["h"] * 6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"roles": {"model": "intrinsic", "filters": "extrinsic", "n_devices": "extrinsic"}},
            "parameters",
        ),
        ({"basis": TimeBasis(time_per="epoch")}, "time per epoch"),
    ],
)
def test_appended_rows_must_agree_with_the_store(
    tmp_path: Path, dataset: Dataset, change: dict[str, Any], words: str
) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    with pytest.raises(InvalidInputError, match=words):
        save_store(replace(dataset, **change), path, append=True)
    assert len(read_store(path)) == 6


def make_store(path: Path, dataset: Dataset, *failed: Observation) -> None:
    save_store(dataset, path)
    with schema.open_store(path) as connection, schema.transaction(connection):
        schema.insert_observations(connection, [(seen, {}) for seen in failed])


def test_failed_observations_stay_in_the_store_but_give_no_row(
    tmp_path: Path, dataset: Dataset
) -> None:
    path = tmp_path / "runs.db"
    failed = Observation(
        values={"model": "a", "filters": 4, "n_devices": 1},
        reason="out of memory",
        provenance={"host": "h"},
    )
    make_store(path, dataset, failed)
    back = read_store(path)
    assert len(back) == 6
    assert back.notes == ("1 observation failed and gave no row.",)
    assert read_observations(path)[-1] == failed
    assert len(read_observations(path)) == 7


def test_a_store_with_no_time_at_all_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM observations")
    with pytest.raises(InvalidInputError, match="must hold at least one time"):
        load_dataset(path)


def test_a_newer_store_is_said_to_be_newer(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = 'paceline/dataset/2' WHERE key = 'schema'")
    for use in (read_store, read_observations, lambda p: save_store(dataset, p, append=True)):
        with pytest.raises(SchemaError, match="made by a newer Paceline"):
            use(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE observations SET times_s = '[1'",
        "UPDATE observations SET times_s = '[-1.0]'",
        "UPDATE observations SET \"values\" = '{}'",
        "DELETE FROM meta WHERE key = 'basis'",
        "DROP TABLE observations",
    ],
)
def test_a_damaged_store_is_refused(tmp_path: Path, dataset: Dataset, statement: str) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)
    with pytest.raises(SchemaError, match="must be a sound store"):
        read_store(path)


@pytest.mark.parametrize("content", [b"", b"x,time_s\n1,2\n", b"SQLite format 3\0" + b"\1" * 4096])
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    tmp_path: Path, dataset: Dataset, content: bytes
) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(content)
    for use in (
        read_store,
        lambda p: save_store(dataset, p),
        lambda p: save_store(dataset, p, append=True),
    ):
        with pytest.raises(SchemaError):
            use(path)
    assert path.read_bytes() == content


def test_a_database_of_others_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE meta (key, value)")
    with pytest.raises(SchemaError, match="must be a store of Paceline"):
        read_store(path)
    with pytest.raises(SchemaError, match="must be a store of Paceline"):
        save_store(dataset, path, append=True)


def test_a_database_without_our_tables_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE runs (time)")
    with pytest.raises(SchemaError, match="must be a store of Paceline"):
        read_store(path)


def test_a_store_is_read_where_nothing_may_be_written(
    tmp_path: Path, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    connect = sqlite3.connect

    def refuse_writing(address: str, **keywords: Any) -> sqlite3.Connection:
        if "mode=rw" in address:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(address, **keywords)

    monkeypatch.setattr(sqlite3, "connect", refuse_writing)
    assert_same(read_store(path), dataset)
    (tmp_path / "runs.db-wal").write_bytes(b"rows that only this file has")
    with pytest.raises(SchemaError, match="unable to open"):
        read_store(path)


def test_a_store_that_cannot_be_reached_is_refused(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(InvalidInputError, match="must be readable"):
        read_store(tmp_path / "absent.db")
    with pytest.raises(InvalidInputError, match="folder of a new file must exist"):
        save_store(dataset, tmp_path / "absent" / "runs.db")


def test_a_failed_save_leaves_nothing_behind(tmp_path: Path, dataset: Dataset) -> None:
    broken = replace(dataset, provenance={"what": object()})
    with pytest.raises(TypeError):
        save_store(broken, tmp_path / "runs.db")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_append_changes_nothing(tmp_path: Path, dataset: Dataset) -> None:
    path = tmp_path / "runs.db"
    save_store(dataset, path)
    bad = replace(dataset, y=pd.Series([1.0, 1.0, -1.0, 1.0, 1.0, 1.0], name="time_s"))
    with pytest.raises(InvalidInputError, match="must be positive"):
        save_store(bad, path, append=True)
    assert_same(read_store(path), dataset)
