"""Columns that follow from the parameters and join them: where they come from, and how.

Posynomials and their corrections see them; the generic form has the parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.workloads import (
    BATCH_NAMES,
    LAYER_FEATURES,
    layer_features,
    list_workloads,
    load_workload,
    shaping_parameters,
)

_SAME = 1e-6  # of a logarithm that other columns give too
TRAINING_NAMES = ("optimizer", "learning_rate")  # of every workload, and of no layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where derived columns come from.

    Parameters
    ----------
    words
        Every column, and what it is with its unit.
    derive
        From a table of trials and the name of their workload (empty: in a column) to the columns.
    replaces
        From the same to the parameters that act through these columns, which a formula on the
        columns can do without.
    of_batch
        Columns that are proportional to the batch of a worker.
    """

    words: Mapping[str, str]
    derive: Callable[[pd.DataFrame, str], pd.DataFrame]
    replaces: Callable[[pd.DataFrame, str], tuple[str, ...]]
    of_batch: tuple[str, ...] = ()


SOURCES: Mapping[str, Source] = {
    "layers": Source(
        words=LAYER_FEATURES,
        derive=layer_features,
        replaces=shaping_parameters,
        of_batch=("forward_flop", "activation_bytes"),
    ),
}
FEATURES = ("auto", "none", *SOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Which columns join the parameters, and all that is needed to derive them again.

    Parameters
    ----------
    source
        One of `SOURCES`; empty when nothing joins.
    workload
        Name of the workload; empty: the parameter ``workload`` names it.
    fixed
        Values that hold in all rows and are no parameters.
    columns
        Smallest and largest measured value of every derived column.
    replaces
        Parameters that only corrections see, since the columns stand for them in the formula.
    """

    source: str = ""
    workload: str = ""
    fixed: Mapping[str, float | str] = field(default_factory=dict)
    columns: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    replaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.source:
            return
        if self.source not in SOURCES:
            raise UnknownNameError("source of features", self.source, SOURCES)
        if self.workload:
            load_workload(self.workload)
        for name in self.columns:
            if name not in SOURCES[self.source].words:
                raise UnknownNameError("feature", name, SOURCES[self.source].words)

    def __str__(self) -> str:
        return f"the {self.source} of {self.workload or 'each workload'}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the derived columns."""
        return tuple(self.columns)

    @property
    def of_batch(self) -> tuple[str, ...]:
        """Derived columns that are proportional to the batch of a worker."""
        return tuple(n for n in SOURCES[self.source].of_batch if n in self.columns)

    def describe(self, name: str) -> str:
        """Return what a derived column is, with its unit."""
        return SOURCES[self.source].words[name]

    def derive(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the derived columns of rows that have the parameters."""
        # a label that shapes no layer may have any level, also one that was never measured
        labels = [
            name
            for name in rows.columns
            if name not in (*self.replaces, "workload")
            and not pd.api.types.is_numeric_dtype(rows[name])
        ]
        trials = rows.drop(columns=labels).assign(**self.fixed)
        derived = SOURCES[self.source].derive(trials, self.workload)
        return derived[list(self.columns)]

    def to_dict(self) -> dict[str, Any]:
        """Return the features as plain data."""
        return {
            "source": self.source,
            "workload": self.workload,
            "fixed": dict(self.fixed),
            "columns": {name: list(pair) for name, pair in self.columns.items()},
            "replaces": list(self.replaces),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Features:
        """Return the features that `to_dict` wrote."""
        columns = data["columns"].items()
        return cls(
            source=str(data["source"]),
            workload=str(data["workload"]),
            fixed={
                str(n): v if isinstance(v, str) else float(v) for n, v in data["fixed"].items()
            },
            columns={str(n): (float(low), float(high)) for n, (low, high) in columns},
            replaces=tuple(map(str, data["replaces"])),
        )


def add_features(dataset: Dataset, features: str = "auto", workload: str | None = None) -> Dataset:
    """Return the dataset with what is to be derived from its parameters.

    Parameters
    ----------
    dataset
        What was measured.
    features
        ``"layers"``: FLOP and bytes of the workload's layers; ``"none"``; ``"auto"``: what the
        dataset has already, else the layers in campaigns of our own on workloads of our own,
        when they stand for at least as many parameters as there are derived columns.
    workload
        Name of the workload; None: what the dataset says.

    Raises
    ------
    UnknownNameError
        When there are no such features, or no such workload.
    InvalidInputError
        When the features were asked for and cannot be derived; says why and what to do.
    """
    if features not in FEATURES:
        raise UnknownNameError("kind of features", features, FEATURES)
    if workload is not None:
        load_workload(workload)  # refuses a name that is not known
    if features == "none":
        return replace(dataset, features=Features())
    if features != "auto":
        return _derive(dataset, features, workload or _named_workload(dataset))
    if dataset.features is not None:
        return dataset
    if workload is not None:
        return _derive(dataset, "layers", workload)
    return _add_by_default(dataset)


def features_of(dataset: Dataset) -> Features | None:
    """Return the features of a dataset; None when it has none."""
    found = dataset.features
    return found if isinstance(found, Features) and found.names else None


def _add_by_default(dataset: Dataset) -> Dataset:
    none = replace(dataset, features=Features())
    if not _is_campaign(dataset):
        return none
    try:
        found = _derive(dataset, "layers", _named_workload(dataset))
    except InvalidInputError as error:
        return replace(none, notes=(*none.notes, f"No columns of layers: {error}"))
    features = features_of(found)
    shortens = features is not None and len(features.replaces) >= len(features.columns)
    return found if shortens else none


def _is_campaign(dataset: Dataset) -> bool:
    """Return whether all rows were measured by us, on workloads whose layers are known."""
    names = _workload_column(dataset)
    if "study" not in dataset.provenance or names is None:
        return False
    executors = dataset.X.get("executor", dataset.other.get("executor"))
    is_own = executors is not None and (executors == "command").any()
    return not is_own and set(map(str, names)) <= set(list_workloads())


def _workload_column(dataset: Dataset) -> pd.Series[Any] | None:
    return dataset.X.get("workload", dataset.other.get("workload"))


def _named_workload(dataset: Dataset) -> str:
    """Return the workload of all rows; empty when the parameter `workload` says it."""
    names = _workload_column(dataset)
    if names is None:
        raise InvalidInputError(
            "Columns of the layers need to know the workload, but no column `workload` says it. "
            "Name it with --workload (`paceline list workloads`), or take --features none."
        )
    distinct = sorted(set(map(str, names)))
    for name in distinct:
        if name not in list_workloads():
            raise InvalidInputError(
                f"Layers are known of our own workloads, but {name!r} is not one of them. Take "
                f"--features none, or name one with the same layers and parameters with "
                f"--workload (`paceline list workloads`)."
            )
    if len(distinct) > 1 and "workload" not in dataset.X:
        raise InvalidInputError(
            f"Rows of several workloads ({', '.join(distinct)}) need the column `workload` as a "
            f"parameter. Add it to --intrinsic, or take --features none."
        )
    return distinct[0] if len(distinct) == 1 else ""


def _derive(dataset: Dataset, source: str, workload: str) -> Dataset:
    fixed = _fixed(dataset, workload)
    trials = dataset.X.assign(**fixed)
    derived = SOURCES[source].derive(trials, workload)
    replaces = SOURCES[source].replaces(dataset.X.assign(**fixed), workload)
    replaces = tuple(name for name in replaces if name in dataset.X)
    columns = _useful(dataset, derived, replaces)
    features = Features(
        source=source,
        workload=workload,
        fixed=fixed,
        columns={n: (float(derived[n].min()), float(derived[n].max())) for n in columns},
        replaces=replaces if columns else (),
    )
    return replace(dataset, features=features, notes=(*dataset.notes, *_notes(features, dataset)))


def _fixed(dataset: Dataset, workload: str) -> dict[str, float | str]:
    """Return the values that trials need and that are no parameters."""
    names = {*BATCH_NAMES, *_parameters(dataset, workload)}
    if not workload and "workload" not in dataset.X:
        names.add("workload")
    fixed: dict[str, float | str] = {}
    for name in dataset.other.columns:
        if name not in names or (name == "global_batch" and _has(dataset, "device_batch")):
            continue
        values = dataset.other[name]
        if values.nunique(dropna=False) > 1:
            raise InvalidInputError(
                f"Columns of the layers need `{name}`, which varies, as a parameter. Add it to "
                f"--intrinsic or --extrinsic, or take --features none."
            )
        value = values.iloc[0]
        fixed[str(name)] = value if isinstance(value, str) else float(value)
    return fixed


def _has(dataset: Dataset, name: str) -> bool:
    return name in dataset.X or name in dataset.other


def _parameters(dataset: Dataset, workload: str) -> set[str]:
    names = [workload] if workload else sorted(set(map(str, dataset.X["workload"])))
    return {name for one in names for name in load_workload(one).defaults}


def _useful(dataset: Dataset, derived: pd.DataFrame, replaces: tuple[str, ...]) -> list[str]:
    """Return the derived columns that no other columns of the formula give in logarithms."""
    kept = [name for name in dataset.numeric if name not in replaces]
    logs = [np.log(dataset.X[n].to_numpy()) for n in kept if (dataset.X[n] > 0).all()]
    useful = []
    for name in derived.columns:
        values = derived[name].to_numpy(dtype=float)
        if name in dataset.X or not (values > 0).all():
            continue
        log = np.log(values)
        known = np.column_stack([np.ones(len(log)), *logs])
        left = log - known @ np.linalg.lstsq(known, log, rcond=None)[0]
        if np.abs(left).max() > _SAME:
            useful.append(str(name))
            logs.append(log)
    return useful


def _notes(features: Features, dataset: Dataset) -> list[str]:
    if not features.columns:
        return [f"Columns from {features} add nothing: no parameter that varies changes them."]
    of = f"`{features.workload}`" if features.workload else "each workload"
    notes = [
        f"{', '.join(features.columns)} from the {features.source} of {of} join the "
        f"parameters; in the formula they stand for {', '.join(features.replaces) or 'none'}. "
        f"--features none leaves them out."
    ]
    if features.workload:
        defaults = load_workload(features.workload).defaults
        unseen = [n for n in defaults if n not in TRAINING_NAMES and not _has(dataset, n)]
        missing = [f"{name}={defaults[name]}" for name in unseen]
        if missing:
            notes.append(f"Not in the data, so as by default: {', '.join(missing)}.")
    return notes
