"""One door for every kind of file that holds a dataset."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Unpack

from paceline.dataset._csv import read_csv
from paceline.dataset._dataset import Dataset
from paceline.dataset._epochs import convert_time
from paceline.dataset._export import join_table, read_parquet, rebuild_fields
from paceline.dataset._extra_p import is_extra_p, read_extra_p
from paceline.dataset._frame import note_repeats, read_frame
from paceline.dataset._options import TIME, ReadKeywords, ReadOptions
from paceline.dataset._roles import Roles
from paceline.dataset._store import read_store
from paceline.errors import InvalidInputError

_TEXT_SUFFIXES = (".csv", ".tsv", ".txt")


def load_dataset(path: str | Path, **keywords: Unpack[ReadKeywords]) -> Dataset:
    """Return the dataset in a file.

    Parameters
    ----------
    path
        A store (``.db``), a table (``.csv``), a Parquet file (``.parquet``) or a file of
        Extra-P (``.extrap``, ``.jsonl``, or a ``.txt`` that begins with PARAMETER).
    **keywords
        As in `Dataset.from_frame`. A store, and a Parquet file of ours, know their roles;
        options override them, with a note; `time_per` converts the time of a step to that
        of an epoch, ceil(n_samples / global_batch) steps, or of a sample.

    Raises
    ------
    InvalidInputError
        When the file is none of these or holds something else.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if is_extra_p(path):
        return read_extra_p(path, **keywords)
    if suffix in _TEXT_SUFFIXES:
        return read_csv(path, **keywords)
    if suffix not in (".db", ".parquet"):
        raise InvalidInputError(
            "A data file must end in .csv, .db, .parquet, .extrap or .jsonl, but got "
            f"{str(path)!r}."
        )
    options = ReadOptions(**keywords)
    return _load_store(path, options) if suffix == ".db" else _load_parquet(path, options)


def _load_store(path: Path, options: ReadOptions) -> Dataset:
    dataset = read_store(path)
    if not len(dataset):
        raise InvalidInputError(
            f"A store must hold at least one time, but {str(path)!r} holds none."
        )
    return _override(dataset if options.keep_constant else _drop_constant(dataset), options)


def _load_parquet(path: Path, options: ReadOptions) -> Dataset:
    frame, about = read_parquet(path)
    if about is None:
        return Dataset(**read_frame(frame, options), provenance={"file": path.name})
    return _override(_drop_constant(Dataset(**rebuild_fields(frame, about))), options)


def _drop_constant(dataset: Dataset) -> Dataset:
    """Set constant parameters aside: a campaign stores all of its space, varied or not."""
    found = Roles()
    for name in dataset.X.columns:
        found.add(name, dataset.roles[name], dataset.X[name].to_numpy())
    if not found.constant:
        return dataset
    return replace(
        dataset,
        X=dataset.X[list(found.columns)],
        roles=found.roles,
        kinds=found.kinds,
        other=dataset.X[found.constant].join(dataset.other),
        notes=(*dataset.notes, *found.notes),
    )


def _override(dataset: Dataset, options: ReadOptions) -> Dataset:
    """Read the rows again with the options given, the others as the file has them."""
    given = _given(options)
    time_per = options.time_per
    if time_per is not None and not {"time", "throughput"} & set(given):
        if dataset.basis.time_per == time_per:
            del given["time_per"]
        elif dataset.basis.time_per is not None:
            dataset = convert_time(dataset, time_per)
            del given["time_per"]
    if not given:
        return replace(dataset, notes=(*dataset.notes, *note_repeats(dataset.X)))
    merged = ReadOptions(**_merged_keywords(dataset, options, given))
    parts = read_frame(join_table(dataset), merged)
    note = f"Given options take the place of what the file says: {', '.join(given)}."
    notes = (note, *dataset.notes, *parts.pop("notes"))
    same_time = not {"time", "throughput", "time_unit"} & set(given)
    times_s = dataset.times_s if same_time else None
    return Dataset(**parts, notes=notes, times_s=times_s, provenance=dataset.provenance)


def _given(options: ReadOptions) -> dict[str, Any]:
    defaults = ReadOptions()
    if options.throughput is None and (options.time, options.time_unit) == (TIME, "s"):
        options = replace(options, time_unit=None)  # the unit of our own files
    pairs = {field.name: getattr(options, field.name) for field in fields(options)}
    return {
        name: value
        for name, value in pairs.items()
        if value != getattr(defaults, name) and name != "keep_constant"
    }


def _merged_keywords(
    dataset: Dataset, options: ReadOptions, given: dict[str, Any]
) -> dict[str, Any]:
    moved = {*options.named, options.group}
    # Levels that look like numbers must stay levels, unless a role was given anew.
    labels = [name for name in dataset.categorical if name not in moved]
    return {
        "intrinsic": [name for name in dataset.intrinsic if name not in moved],
        "extrinsic": [name for name in dataset.extrinsic if name not in moved],
        **dataset.basis.to_dict(),
        **given,
        "keep_constant": options.keep_constant,
        "categorical": list(dict.fromkeys([*labels, *options.categorical])),
    }
