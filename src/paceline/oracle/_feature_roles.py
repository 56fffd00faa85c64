"""Which columns of a table say what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from paceline.oracle._feature_names import SHAPE_NAMES, STRATEGY_NAMES, find_columns
from paceline.workloads import list_workloads, load_workload, shaping_parameters

_OF_TRAINING = ("optimizer", "learning_rate")  # of a workload, and of no layer
# labels that say more of a time than the oracle knows, so that a formula keeps them
_STAY = ("precision", "optimizer", "schedule", "recompute", "shard")
# what need not be told where something else is
_REDUNDANT = (
    ({"width"}, {"size", "gflop_per_token"}),
    ({"size"}, {"gflop_per_token"}),
    ({"n_devices"}, {"data"}),
    ({"micro_batch", "device_batch", "global_batch"}, {"global_batch", "device_batch"}),
    ({"micro_batches"}, {"micro_batch"}),
)


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Which column says what.

    Parameters
    ----------
    strategy
        By the roles of `STRATEGY_NAMES`.
    network
        By the workload's parameters, or by the roles of `SHAPE_NAMES` without a workload.
    workload
        Name of the workload; empty: a column says it, or rows are Transformers by their shape.
    by_column
        Whether a column ``workload`` names it.
    """

    strategy: Mapping[str, str]
    network: Mapping[str, str]
    workload: str = ""
    by_column: bool = False

    @property
    def columns(self) -> list[str]:
        """All columns that say anything."""
        names = ["workload"] if self.by_column else []
        return list(dict.fromkeys([*names, *self.network.values(), *self.strategy.values()]))


def roles_of(values: pd.DataFrame, workload: str = "") -> Roles:
    """Return which columns of a table the oracle reads, and what they say."""
    named = (workload,) if workload else _named(values)
    strategy = find_columns(values.columns, STRATEGY_NAMES)
    if not named:
        return Roles(strategy=strategy, network=find_columns(values.columns, SHAPE_NAMES))
    network: dict[str, str] = {}
    for name in named:
        network |= _parameters(name, values.columns)
    strategy = {role: name for role, name in strategy.items() if name not in network.values()}
    return Roles(strategy=strategy, network=network, workload=workload, by_column=not workload)


def _named(values: pd.DataFrame) -> tuple[str, ...]:
    """Return the workloads that a column names; none where they are somebody else's."""
    if "workload" not in values:
        return ()
    named = tuple(sorted(set(map(str, values["workload"]))))
    return named if set(named) <= set(list_workloads()) else ()


def _parameters(workload: str, columns: Any) -> dict[str, str]:
    """Return the columns of a workload's parameters; of Transformers by other names too."""
    known = [n for n in load_workload(workload).defaults if n not in _OF_TRAINING]
    found = {name: name for name in known if name in set(columns)}
    if {"width", "heads", "length"} <= set(known):
        others = find_columns(columns, {n: SHAPE_NAMES[n] for n in known if n in SHAPE_NAMES})
        return others | found
    return found


def tells_shape(columns: Iterable[Any]) -> bool:
    """Return whether columns of these names tell the shape or the size of a Transformer."""
    found = set(find_columns(columns, SHAPE_NAMES))
    return {"width", "layers"} <= found or bool(found & {"size", "gflop_per_token"})


def further_columns(
    known: pd.DataFrame, others: pd.DataFrame, workload: str = ""
) -> tuple[str, ...]:
    """Return those of some other columns that say what the known ones do not."""
    mine, theirs = roles_of(known, workload), roles_of(others, workload)
    if "workload" in known and not workload:
        theirs = roles_of(others.assign(workload=known["workload"].iloc[0]), workload)
    wanted = {**theirs.network, **theirs.strategy}
    has = {*mine.network, *mine.strategy}
    constant = {role for role, name in wanted.items() if others[name].nunique(dropna=False) <= 1}
    told = has | constant
    redundant = set().union(*(less for need, less in _REDUNDANT if need & told))
    return tuple(
        name
        for role, name in wanted.items()
        if role not in has and not (role in redundant and role not in constant)
    )


def replaced_columns(values: pd.DataFrame, workload: str = "") -> tuple[str, ...]:
    """Return the columns that act through what the oracle says of a row."""
    roles = roles_of(values, workload)
    network = list(roles.network.values())
    if workload or roles.by_column:
        shaping = shaping_parameters(values.rename(columns=_inverse(roles)), workload)
        network = [roles.network[name] for name in shaping]
    kept = [roles.strategy[name] for name in _STAY if name in roles.strategy]
    return tuple(c for c in (*network, *roles.strategy.values()) if c not in kept)


def strategy_columns(values: pd.DataFrame, workload: str = "") -> tuple[str, ...]:
    """Return the columns that say how a step is divided and trained."""
    return tuple(roles_of(values, workload).strategy.values())


def _inverse(roles: Roles) -> dict[str, str]:
    return {column: name for name, column in roles.network.items()}
