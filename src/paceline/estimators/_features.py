"""Columns that follow from the parameters and join them: where they come from, and how.

Posynomials and their corrections see them; the generic form has the parameters alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from paceline.clusters import Cluster, cluster_from_dict, cluster_to_dict
from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle import (
    ORACLE_FEATURES,
    further_columns,
    oracle_features,
    replaced_columns,
    strategy_columns,
)
from paceline.workloads import (
    BATCH_NAMES,
    LAYER_FEATURES,
    layer_features,
    load_workload,
    shaping_parameters,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where derived columns come from.

    Parameters
    ----------
    words
        Every column, and what it is with its unit.
    derive
        From a table of trials, the name of their workload (empty: in a column, or none) and the
        cluster to the columns.
    replaces
        From a table of trials and that name to the parameters that act through these columns,
        which a formula on the columns can do without.
    further
        From parameters, other columns and that name to those other columns that are read too.
    labels
        From a table of trials and that name to the columns that are read even where a formula
        has them.
    of_batch
        Columns that are proportional to the batch of a worker.
    needs_cluster
        Whether the columns are those of a cluster.
    is_many
        Whether there are many columns that say nearly the same, so that the times choose.
    """

    words: Mapping[str, str]
    derive: Callable[[pd.DataFrame, str, Cluster | None], pd.DataFrame]
    replaces: Callable[[pd.DataFrame, str], tuple[str, ...]]
    further: Callable[[pd.DataFrame, pd.DataFrame, str], tuple[str, ...]]
    labels: Callable[[pd.DataFrame, str], tuple[str, ...]] = lambda rows, workload: ()
    of_batch: tuple[str, ...] = ()
    needs_cluster: bool = False
    is_many: bool = False


def _layers(rows: pd.DataFrame, workload: str, _: Cluster | None) -> pd.DataFrame:
    return layer_features(rows, workload)


def _oracle(rows: pd.DataFrame, workload: str, cluster: Cluster | None) -> pd.DataFrame:
    if cluster is None:
        raise InvalidInputError(
            "Columns of the oracle need a cluster, but none was given. Name one with --cluster "
            "(`paceline list clusters`, or a file of `paceline calibrate`)."
        )
    return oracle_features(rows, workload, cluster=cluster)


def _of_layers(X: pd.DataFrame, other: pd.DataFrame, workload: str) -> tuple[str, ...]:
    """Return the columns besides the parameters that shape layers or say the batch."""
    workloads = [workload] if workload else sorted(set(map(str, X["workload"])))
    names = {*BATCH_NAMES, *(n for w in workloads for n in load_workload(w).defaults)}
    has_batch = "device_batch" in X or "device_batch" in other
    return tuple(str(n) for n in other if n in names and not (n == "global_batch" and has_batch))


def _oracle_labels(rows: pd.DataFrame, workload: str) -> tuple[str, ...]:
    """Return the columns that divide a step or shape its network."""
    return (*strategy_columns(rows, workload), *replaced_columns(rows, workload))


SOURCES: Mapping[str, Source] = {
    "layers": Source(
        words=LAYER_FEATURES,
        derive=_layers,
        replaces=shaping_parameters,
        further=_of_layers,
        of_batch=("forward_flop", "activation_bytes"),
    ),
    "oracle": Source(
        words=ORACLE_FEATURES,
        derive=_oracle,
        replaces=replaced_columns,
        further=further_columns,
        labels=_oracle_labels,
        of_batch=("device_flop",),
        needs_cluster=True,
        is_many=True,
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
        Name of the workload; empty: the parameter ``workload`` names it, or (of the oracle) rows
        are Transformers by their shape.
    cluster
        What the oracle's columns are of.
    fixed
        Values that hold in all rows and are no parameters.
    columns
        Smallest and largest measured value of every derived column.
    replaces
        Parameters that only corrections see, since the columns stand for them in the formula.
    """

    source: str = ""
    workload: str = ""
    cluster: Cluster | None = None
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
        if SOURCES[self.source].needs_cluster and self.cluster is None:
            raise InvalidInputError(f"`cluster` must be given for the {self.source}'s columns.")
        for name in self.columns:
            if name not in SOURCES[self.source].words:
                raise UnknownNameError("feature", name, SOURCES[self.source].words)

    def __str__(self) -> str:
        if self.cluster is None:
            return f"the {self.source} of {self.workload or 'each workload'}"
        return f"the {self.source} of {self.workload or 'each row'} on {self.cluster.name}"

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
        return self.derive_all(rows)[list(self.columns)]

    def derive_all(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return all columns of the source, also those that say nothing new."""
        source, trials = SOURCES[self.source], rows.assign(**self.fixed)
        # a label that shapes nothing may have any level, also one that was never measured
        kept = {*self.replaces, *self.fixed, "workload", *source.labels(trials, self.workload)}
        labels = [
            name
            for name in trials.columns
            if name not in kept and not pd.api.types.is_numeric_dtype(trials[name])
        ]
        return source.derive(trials.drop(columns=labels), self.workload, self.cluster)

    def to_dict(self) -> dict[str, Any]:
        """Return the features as plain data."""
        return {
            "source": self.source,
            "workload": self.workload,
            **({} if self.cluster is None else {"cluster": cluster_to_dict(self.cluster)}),
            "fixed": dict(self.fixed),
            "columns": {name: list(pair) for name, pair in self.columns.items()},
            "replaces": list(self.replaces),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Features:
        """Return the features that `to_dict` wrote."""
        columns, cluster = data["columns"].items(), data.get("cluster")
        return cls(
            source=str(data["source"]),
            workload=str(data["workload"]),
            cluster=None if cluster is None else cluster_from_dict(cluster),
            fixed={
                str(n): v if isinstance(v, str) else float(v) for n, v in data["fixed"].items()
            },
            columns={str(n): (float(low), float(high)) for n, (low, high) in columns},
            replaces=tuple(map(str, data["replaces"])),
        )


def features_of(dataset: Dataset) -> Features | None:
    """Return the features of a dataset; None when it has none."""
    found = dataset.features
    return found if isinstance(found, Features) and found.names else None
