"""Datasets as CSV and Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from paceline.dataset._basis import TimeBasis
from paceline.dataset._files import written_whole
from paceline.dataset._frame import build_parameters, build_times
from paceline.dataset._observations import collect_other
from paceline.dataset._options import DERIVED, OUTCOMES, TIME, TIMES
from paceline.dataset._schema import SCHEMA, check_schema
from paceline.errors import InvalidInputError, MissingDependencyError, SchemaError

if TYPE_CHECKING:
    from paceline.dataset._dataset import Dataset

_METADATA_KEY = b"paceline"


def join_table(dataset: Dataset) -> pd.DataFrame:
    """Return parameters, other columns and the time side by side."""
    return pd.concat([dataset.X, dataset.other, dataset.y], axis=1)


def write_csv(dataset: Dataset, path: Path) -> None:
    """Write a CSV file that `read_csv` reads; floats keep every digit."""
    noted = [name for name in (*OUTCOMES, *DERIVED) if name in dataset.other.columns]
    is_campaign = set(OUTCOMES) <= set(noted)
    table = join_table(dataset).drop(columns=noted if is_campaign else [])
    with written_whole(path) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")


def write_parquet(dataset: Dataset, path: Path) -> None:
    """Write a Parquet file with roles, kinds and basis in its metadata."""
    pyarrow, parquet = _import_pyarrow()
    frame = join_table(dataset)
    if dataset.times_s is not None:
        frame[TIMES] = [list(times_s) for times_s in dataset.times_s]
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    metadata = {**(table.schema.metadata or {}), _METADATA_KEY: json.dumps(_describe(dataset))}
    with written_whole(path) as temporary:
        parquet.write_table(table.replace_schema_metadata(metadata), temporary)


def read_parquet(path: Path) -> tuple[pd.DataFrame, dict[str, Any] | None]:
    """Return the table in a Parquet file, and our description when it is one of ours."""
    pyarrow, parquet = _import_pyarrow()
    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InvalidInputError(
            f"A Parquet file must be readable, but {str(path)!r} is not: {reason}."
        ) from error
    about = (table.schema.metadata or {}).get(_METADATA_KEY)
    return table.to_pandas(), None if about is None else _parse_description(about, path)


def rebuild_fields(frame: pd.DataFrame, about: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the dataset that `write_parquet` wrote."""
    columns = {
        name: frame[name].to_numpy(dtype=object if kind == "categorical" else np.float64)
        for name, kind in about["kinds"].items()
    }
    other = {name: frame[name].tolist() for name in about["other"]}
    rows = [dict(zip(other, cells, strict=True)) for cells in zip(*other.values(), strict=True)]
    times_s = tuple(map(tuple, (row.tolist() for row in frame[TIMES]))) if TIMES in frame else None
    return {
        "X": build_parameters(columns, len(frame)),
        "y": build_times(frame[TIME].to_numpy()),
        "roles": about["roles"],
        "kinds": about["kinds"],
        "basis": TimeBasis.from_dict(about["basis"]),
        "times_s": times_s,
        "other": collect_other(list(other), rows or [{}] * len(frame)),
        "provenance": about["provenance"],
    }


def _describe(dataset: Dataset) -> dict[str, Any]:
    names = list(dataset.X.columns)
    return {
        "schema": SCHEMA,
        "roles": {name: dataset.roles[name] for name in names},
        "kinds": {name: dataset.kinds[name] for name in names},
        "basis": dataset.basis.to_dict(),
        "other": list(dataset.other.columns),
        "provenance": dataset.provenance,
    }


def _parse_description(about: bytes, path: Path) -> dict[str, Any]:
    try:
        description: dict[str, Any] = json.loads(about)
    except ValueError as error:
        raise SchemaError(path, "its description must be JSON, but it is not.") from error
    check_schema(description.get("schema"), path)
    return description


def _import_pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError("Parquet export", "pyarrow", "parquet") from error
    return pyarrow, pyarrow.parquet
