"""Which derived columns a dataset gets, and what is said of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from paceline.clusters import Cluster, load_cluster
from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators._feature_selection import distinct_columns, select_columns
from paceline.estimators._features import FEATURES, SOURCES, Features, features_of
from paceline.oracle import roles_of, tells_shape
from paceline.workloads import list_workloads, load_workload

TRAINING_NAMES = ("optimizer", "learning_rate")  # of every workload, and of no layer
_SHAPE = ("width", "layers", "heads")  # of a Transformer, guessed where nothing tells them


def add_features(
    dataset: Dataset,
    features: str = "auto",
    workload: str | None = None,
    cluster: Cluster | str | Path | None = None,
) -> Dataset:
    """Return the dataset with what is to be derived from its parameters.

    Parameters
    ----------
    dataset
        What was measured.
    features
        ``"layers"``: FLOP and bytes of the workload's layers; ``"oracle"``: what the oracle says
        of every row on a cluster; ``"none"``; ``"auto"``: what the dataset has already, else
        what a workload or a cluster asks for, else the layers in campaigns of our own on
        workloads of our own, when they stand for at least as many parameters as there are
        derived columns.
    workload
        Name of the workload; None: what the dataset says.
    cluster
        Of the oracle's columns: a cluster, its name or its file.

    Raises
    ------
    UnknownNameError
        When there are no such features, no such workload or no such cluster.
    InvalidInputError
        When the features were asked for and cannot be derived; says why and what to do.
    """
    if features not in FEATURES:
        raise UnknownNameError("kind of features", features, FEATURES)
    if workload is not None:
        load_workload(workload)  # refuses a name that is not known
    if features == "none":
        return replace(dataset, features=Features())
    place = cluster if cluster is None or isinstance(cluster, Cluster) else load_cluster(cluster)
    if features == "auto" and place is None and workload is None:
        return dataset if dataset.features is not None else _add_by_default(dataset)
    source = features if features != "auto" else "layers" if place is None else "oracle"
    return _derive(dataset, source, workload or _named_workload(dataset, source), place)


def _add_by_default(dataset: Dataset) -> Dataset:
    none = replace(dataset, features=Features())
    if not _is_campaign(dataset):
        return none
    try:
        found = _derive(dataset, "layers", _named_workload(dataset, "layers"), None)
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


def _named_workload(dataset: Dataset, source: str) -> str:
    """Return the workload of all rows; empty when the rows say it."""
    names = _workload_column(dataset)
    distinct = [] if names is None else sorted(set(map(str, names)))
    unknown = [name for name in distinct if name not in list_workloads()]
    if source == "oracle" and (unknown or not distinct):
        _check_shapes(dataset, unknown)
        return ""
    if not distinct:
        raise InvalidInputError(
            "Columns of the layers need to know the workload, but no column `workload` says it. "
            "Name it with --workload (`paceline list workloads`), or take --features none."
        )
    if unknown:
        raise InvalidInputError(
            f"Layers are known of our own workloads, but {unknown[0]!r} is not one of them. Take "
            f"--features none, or name one with the same layers and parameters with "
            f"--workload (`paceline list workloads`)."
        )
    if len(distinct) > 1 and "workload" not in dataset.X:
        raise InvalidInputError(
            f"Rows of several workloads ({', '.join(distinct)}) need the column `workload` as a "
            f"parameter. Add it to --intrinsic, or take --features none."
        )
    return distinct[0] if len(distinct) == 1 else ""


def _check_shapes(dataset: Dataset, unknown: list[str]) -> None:
    """Refuse rows of which nothing tells the network, neither a name of ours nor a shape."""
    is_told = tells_shape([*dataset.X, *dataset.other])
    if unknown and not is_told:
        raise UnknownNameError("workload", unknown[0], list_workloads())


def _derive(dataset: Dataset, source: str, workload: str, cluster: Cluster | None) -> Dataset:
    is_placed = SOURCES[source].needs_cluster
    if is_placed and cluster is None:
        raise InvalidInputError(
            f"Columns of the {source} need a cluster, but none was given. Name one with --cluster "
            f"(`paceline list clusters`, or a file of `paceline calibrate`)."
        )
    fixed = _fixed(dataset, source, workload)
    replaces = SOURCES[source].replaces(dataset.X.assign(**fixed), workload)
    replaces = tuple(name for name in replaces if name in dataset.X)
    features = Features(
        source=source,
        workload=workload,
        cluster=cluster if is_placed else None,
        fixed=fixed,
        replaces=replaces,
    )
    derived = features.derive_all(dataset.X)
    if SOURCES[source].is_many:
        columns, replaces = select_columns(dataset, derived, replaces)
    else:
        columns = distinct_columns(dataset, derived, replaces)
    features = replace(
        features,
        columns={n: (float(derived[n].min()), float(derived[n].max())) for n in columns},
        replaces=replaces if columns else (),
    )
    return replace(dataset, features=features, notes=(*dataset.notes, *_notes(features, dataset)))


def _fixed(dataset: Dataset, source: str, workload: str) -> dict[str, float | str]:
    """Return the values that trials need and that are no parameters."""
    fixed: dict[str, float | str] = {}
    for name in SOURCES[source].further(dataset.X, dataset.other, workload):
        values = dataset.other[name]
        if values.nunique(dropna=False) > 1:
            raise InvalidInputError(
                f"Columns of the {source} need `{name}`, which varies, as a parameter. Add it to "
                f"--intrinsic or --extrinsic, or take --features none."
            )
        value = values.iloc[0]
        if not pd.isna(value):
            fixed[name] = value if isinstance(value, str) else float(value)
    return fixed


def _notes(features: Features, dataset: Dataset) -> list[str]:
    if not features.columns:
        return [f"Columns from {features} add nothing: no parameter that varies changes them."]
    named = features.workload
    quoted = str(features).replace(f"of {named}", f"of `{named}`") if named else str(features)
    notes = [
        f"{', '.join(features.columns)} from {quoted} join the parameters; in the formula they "
        f"stand for {', '.join(features.replaces) or 'none'}. --features none leaves them out."
    ]
    given = dataset.X.assign(**features.fixed)
    roles = roles_of(given, features.workload)
    if features.workload:
        notes += _defaults(features.workload, roles.network)
    elif features.source == "oracle" and not roles.by_column:
        notes += [*_guesses(roles.network), *_defaults("gpt2", [*roles.network, *_SHAPE])]
    return notes


def _defaults(workload: str, found: Iterable[str]) -> list[str]:
    """Return which parameters of a workload nothing tells."""
    defaults, known = load_workload(workload).defaults, {*found, *TRAINING_NAMES}
    unseen = ", ".join(f"{name}={defaults[name]}" for name in defaults if name not in known)
    return [f"Not in the data, so as by default: {unseen}."] if unseen else []


def _guesses(found: Mapping[str, str]) -> list[str]:
    """Return what is not known of Transformers that rows describe by their shape."""
    if "width" in found and "layers" in found:
        return []
    size = found.get("size", found.get("gflop_per_token"))
    return [f"Layers and widths are guessed from {size}: no columns tell the networks' shapes."]
