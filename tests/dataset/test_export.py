"""CSV and Parquet files of ours, and the one door to all files."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paceline.dataset import (
    Dataset,
    TimeBasis,
    load_dataset,
    read_csv,
    save_store,
    write_text,
)
from paceline.errors import (
    InvalidInputError,
    MissingDependencyError,
    SchemaError,
    UnknownNameError,
)


@pytest.fixture
def rich(frame: pd.DataFrame) -> Dataset:
    """Have every kind of column, and raw times."""
    frame["torch"] = [112, 113, 112, 113, 112, 210]
    frame["host"] = ["h1", "h2", None, "h1", "h2", "h1"]
    dataset = Dataset.from_frame(
        frame,
        intrinsic=["model", "filters", "torch"],
        extrinsic=["n_devices"],
        categorical=["torch"],
        time_per="step",
        batch="device_batch",
    )
    return replace(
        dataset,
        times_s=tuple((t - 0.5, t, t + 0.25) for t in dataset.y),
        provenance={"host": "h", "seed": 3},
    )


def assert_same(one: Dataset, other: Dataset) -> None:
    pd.testing.assert_frame_equal(one.X, other.X, check_exact=True)
    pd.testing.assert_series_equal(one.y, other.y, check_exact=True)
    pd.testing.assert_frame_equal(one.other, other.other, check_exact=True)
    for field in ("roles", "kinds", "basis", "times_s", "provenance"):
        assert getattr(one, field) == getattr(other, field)


def test_parquet_keeps_everything(tmp_path: Path, rich: Dataset) -> None:
    pytest.importorskip("pyarrow")
    rich.to_parquet(tmp_path / "runs.parquet")
    assert_same(load_dataset(tmp_path / "runs.parquet"), rich)
    assert [item.name for item in tmp_path.iterdir()] == ["runs.parquet"]


def test_parquet_without_other_columns_or_raw_times_is_kept_too(
    tmp_path: Path, dataset: Dataset
) -> None:
    pytest.importorskip("pyarrow")
    dataset.to_parquet(tmp_path / "runs.parquet")
    assert_same(load_dataset(tmp_path / "runs.parquet"), dataset)


def test_parquet_of_others_is_read_as_a_table(tmp_path: Path, frame: pd.DataFrame) -> None:
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "table.parquet")
    dataset = load_dataset(tmp_path / "table.parquet", group="model")
    assert list(dataset.X.columns) == ["filters", "n_devices"]
    assert dataset.provenance == {"file": "table.parquet"}


def test_parquet_of_a_newer_kind_is_refused(
    tmp_path: Path, rich: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("paceline.dataset._export.SCHEMA", "paceline/dataset/9")
    rich.to_parquet(tmp_path / "runs.parquet")
    with pytest.raises(SchemaError, match="made by a newer Paceline"):
        load_dataset(tmp_path / "runs.parquet")


def test_parquet_that_is_none_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "runs.parquet"
    path.write_text("x,time_s\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="must be readable") as caught:
        load_dataset(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="must be readable"):
        load_dataset(tmp_path / "absent.parquet")


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, rich: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"paceline\[parquet\]"):
        rich.to_parquet(tmp_path / "runs.parquet")
    assert list(tmp_path.iterdir()) == []


def test_csv_is_read_back_with_the_same_roles(tmp_path: Path, rich: Dataset) -> None:
    path = tmp_path / "runs.csv"
    rich.to_csv(path)
    assert path.read_text(encoding="utf-8").startswith(
        "model,filters,n_devices,torch,host,time_s\na,4.0,1.0,112,h1,1.0\n"
    )
    back = read_csv(
        path, intrinsic=rich.intrinsic, extrinsic=rich.extrinsic, categorical=rich.categorical
    )
    pd.testing.assert_frame_equal(back.X, rich.X, check_exact=True)
    pd.testing.assert_series_equal(back.y, rich.y, check_exact=True)
    pd.testing.assert_frame_equal(back.other, rich.other, check_exact=True)


@pytest.mark.parametrize("write", ["to_csv", "to_parquet"])
def test_a_file_in_a_folder_that_is_not_there_is_refused(
    tmp_path: Path, rich: Dataset, write: str
) -> None:
    with pytest.raises(InvalidInputError, match="folder of a new file must exist"):
        getattr(rich, write)(tmp_path / "absent" / "runs")


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, rich: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("old", encoding="utf-8")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(InvalidInputError, match="No space left on device"):
        rich.to_csv(path)
    assert path.read_text(encoding="utf-8") == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["runs.csv"]


def test_a_text_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "é\n")
    assert (tmp_path / "a.txt").read_bytes() == "é\n".encode()
    with pytest.raises(InvalidInputError, match="A file must be named"):
        write_text(tmp_path, "a folder stands here")
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_writing_keeps_links_and_modes(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through")
    assert os.read(reader, 100) == b"through" and pipe.is_fifo()
    os.close(reader)


@pytest.fixture
def store(tmp_path: Path, rich: Dataset) -> Path:
    path = tmp_path / "runs.db"
    save_store(rich, path)
    return path


def test_a_store_knows_its_roles(store: Path, rich: Dataset) -> None:
    assert_same(load_dataset(store), rich)


def test_a_table_of_any_text_suffix_is_read(tmp_path: Path, dataset: Dataset) -> None:
    for name in ("runs.CSV", "runs.tsv", "runs.txt"):
        dataset.to_csv(tmp_path / name)
        assert len(load_dataset(tmp_path / name)) == 6


def test_options_override_what_a_store_says(store: Path, rich: Dataset) -> None:
    dataset = load_dataset(store, group="model", batch="global_batch")
    assert dataset.intrinsic == ["filters", "torch"]
    assert dataset.kinds["torch"] == "categorical"
    assert dataset.basis == TimeBasis(time_per="step", batch="global_batch")
    assert dataset.times_s == rich.times_s
    assert dataset.provenance == rich.provenance
    assert "Given options take the place of what the file says: batch, group." in dataset.notes


def test_a_role_option_moves_columns(store: Path) -> None:
    dataset = load_dataset(store, extrinsic=["filters"])
    assert dataset.extrinsic == ["filters"]
    assert dataset.intrinsic == ["model", "torch"]
    assert "`n_devices` is not named in a role and was ignored." in dataset.notes


def test_numbers_of_a_store_can_be_made_labels(store: Path) -> None:
    dataset = load_dataset(store, categorical=["filters"])
    assert dataset.categorical == ["model", "filters", "torch"]
    assert list(dataset.X["filters"])[:3] == ["4", "8", "16"]


def test_a_misspelt_option_for_a_store_gets_the_nearest_name(store: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'n_devices'"):
        load_dataset(store, extrinsic=["n_device"])


def test_default_options_do_not_count_as_given(store: Path) -> None:
    dataset = load_dataset(store, time="time_s", intrinsic=None, categorical=(), time_unit="s")
    assert not any("Given options" in note for note in dataset.notes)


def test_parameters_that_never_vary_are_set_aside_on_loading(
    tmp_path: Path, rich: Dataset
) -> None:
    path = tmp_path / "part.db"
    save_store(rich.take([0, 3]), path)
    dataset = load_dataset(path)
    assert "filters" not in dataset.X.columns
    assert "`filters` is constant (4) and was dropped." in dataset.notes
    assert list(dataset.other["filters"]) == [4.0, 4.0]


def test_a_table_of_a_campaign_does_not_tell_the_answer(tmp_path: Path, dataset: Dataset) -> None:
    noted = {
        "trial": 1,
        "minimum_s": 0.1,
        "disagreement": 0.0,
        "peak_memory_bytes": 9,
        "owner": "a",
    }
    other = pd.DataFrame({**noted, "n_samples": 60000}, index=dataset.X.index)
    replace(dataset, other=other).to_csv(tmp_path / "runs.csv")
    columns = list(pd.read_csv(tmp_path / "runs.csv").columns)
    assert columns == [*dataset.X.columns, "owner", "time_s"]
