"""Rows of a table as scenarios: strategies, batches, precisions and networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.clusters import Cluster
from paceline.errors import InfeasibleError, InvalidInputError
from paceline.oracle._feature_names import (
    BATCHES,
    SHAPE_NAMES,
    STRATEGY_NAMES,
    names_in_words,
    read_fsdp,
    read_optimizer,
    read_precision,
    read_recompute,
    read_shard,
    read_size,
    read_whole,
)
from paceline.oracle._feature_roles import Roles, tells_shape
from paceline.oracle._feature_shapes import build_graph, transformer_of
from paceline.scenario import DEGREES, SCHEDULES, StrategyTable
from paceline.workloads import LayerGraph, load_workload

Integers = NDArray[np.int64]

_INSIDE = tuple(name for name in DEGREES if name not in ("data", "expert"))


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Scenarios of rows.

    Parameters
    ----------
    values
        The rows, with the columns of the roles.
    numbers
        Of each row in the table that it comes from, counted from 1, for errors.
    roles, cluster
        Which column says what, and what it runs on.
    """

    values: pd.DataFrame
    numbers: Integers
    roles: Roles
    cluster: Cluster

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: list[int]) -> Rows:
        """Return some rows."""
        return replace(self, values=self.values.iloc[rows], numbers=self.numbers[rows])

    def scenarios(self) -> tuple[list[LayerGraph], StrategyTable, Integers]:
        """Return networks, strategies and global batches."""
        self._check_told()
        whole = {name: self._whole(name) for name in (*_INSIDE, "expert", "virtual_stages")}
        graphs = self._graphs(whole["tensor"], whole["pipeline"] * whole["virtual_stages"])
        mixed = np.array([any(x.n_experts > 1 for x in g.layers) for g in graphs])
        whole["expert"] = np.where(mixed, whole["expert"], self._own_experts(whole["expert"]))
        data = self._replicas(whole)
        batch, pieces = self._batches(data, whole)
        virtual = np.where(whole["pipeline"] > 1, whole["virtual_stages"], 1)
        table = StrategyTable.from_columns(
            **{name: whole[name] for name in (*_INSIDE, "expert")},
            data=data,
            micro_batches=pieces,
            virtual_stages=virtual,
            schedule=np.where(virtual > 1, SCHEDULES.index("interleaved"), self._schedules()),
            shard=self._shards(whole["pipeline"]),
            recompute=self.read("recompute", read_recompute, 0),
        )
        return graphs, table, batch

    def read(self, role: str, reader: Callable[[Any], Any], default: Any) -> NDArray[Any]:
        """Return what a reader makes of a column, or the default where there is none."""
        column = self.roles.strategy.get(role)
        if column is None:
            return np.full(len(self), default)
        return np.array([self._try(column, reader, i) for i in range(len(self))])

    def precisions(self) -> NDArray[Any]:
        """Return the precision of every row, one that the device has."""
        has = self.cluster.device.peak_flops
        return self.read("precision", lambda v: read_precision(v, has), "float32")

    def optimizers(self) -> NDArray[Any]:
        """Return the optimizer of every row."""
        return self.read("optimizer", read_optimizer, "adam")

    def refuse(self, row: int, reason: str) -> InvalidInputError:
        """Return what to raise of a row."""
        return InvalidInputError(
            f"Every row must be something that the oracle can work out, but row "
            f"{self.numbers[row]} is not: {reason} Leave the row out, or fit with "
            f"--features none."
        )

    def _try(self, column: str, reader: Callable[[Any], Any], row: int) -> Any:
        value = self.values[column].iloc[row]
        try:
            return reader(value)
        except (ValueError, TypeError, OverflowError) as error:
            rule = "a number" if "convert" in str(error) else str(error)
            raise self.refuse(row, f"`{column}` must be {rule}, but is {value}.") from None

    def _whole(self, role: str) -> Integers:
        return np.asarray(self.read(role, read_whole, 1), dtype=np.int64)

    def _own_experts(self, expert: Integers) -> Integers:
        """Return experts' degrees of networks without any: shares of samples, as replicas are."""
        named = bool(self.roles.workload or self.roles.by_column)
        return expert if named else np.ones_like(expert)

    def _replicas(self, whole: Mapping[str, Integers]) -> Integers:
        """Return the degree of data parallelism, from the number of devices if it is known."""
        inside = np.prod([whole[name] for name in (*_INSIDE, "expert")], axis=0)
        given = self._whole("data")
        if "n_devices" not in self.roles.strategy:
            is_inside = self.roles.strategy.get("expert", "expert") != "expert"
            return np.maximum(given // whole["expert"], 1) if is_inside else given
        devices = self._whole("n_devices")
        self._check_devices(devices)
        bad = devices % inside != 0
        if "data" in self.roles.strategy:
            # experts' groups lie inside of replicas, or beside them
            with_data = inside * given
            bad |= (with_data != devices) & (with_data != devices * whole["expert"])
        if bad.any():
            row = int(bad.argmax())
            names = [n for n in (*_INSIDE, "expert") if whole[n][row] > 1]
            names += ["data"] if "data" in self.roles.strategy else []
            parts = {**whole, "data": given}
            product = " x ".join(f"{name} {parts[name][row]}" for name in names)
            raise self.refuse(
                row, f"degrees must multiply to {devices[row]} devices, but are {product}."
            )
        return np.asarray(devices // inside, dtype=np.int64)

    def _check_told(self) -> None:
        """Refuse tables of which nothing tells the network or the batch."""
        roles = self.roles
        if not (roles.workload or roles.by_column or tells_shape(roles.network.values())):
            names = names_in_words(SHAPE_NAMES, "width", "layers", "size", "gflop_per_token")
            raise InvalidInputError(
                "Columns of the oracle need to know the network: name it with --workload, or have "
                f"columns for width and layers, or for the size, of Transformers: {names}."
            )
        if not any(name in roles.strategy for name in BATCHES):
            names = names_in_words(STRATEGY_NAMES, *BATCHES)
            raise InvalidInputError(
                f"Columns of the oracle need the samples of a step: a column for {names}. Rename "
                "one, or take --features none."
            )

    def _check_devices(self, devices: Integers) -> None:
        most = self.cluster.capacity
        if most and (devices > most).any():
            row = int((devices > most).argmax())
            raise self.refuse(
                row, f"it needs {devices[row]} devices, but {self.cluster.name} has {most}."
            )

    def _batches(self, data: Integers, whole: Mapping[str, Integers]) -> tuple[Integers, Integers]:
        """Return global batches and numbers of micro-batches; the fullest replica counts."""
        known = self.roles.strategy
        replicas = data * whole["expert"]
        pieces = self._whole("micro_batches")
        if "global_batch" in known or "device_batch" in known:
            total = self._totals(np.prod([whole[n] for n in _INSIDE], axis=0) * replicas)
            if "micro_batch" in known and "micro_batches" not in known:
                pieces = np.maximum(total // (replicas * self._whole("micro_batch")), 1)
        else:
            total = self._whole("micro_batch") * pieces * replicas
        few = total < replicas
        if few.any():
            row = int(few.argmax())
            raise self.refuse(row, f"{replicas[row]} replicas share {total[row]} samples.")
        share = -(-total // (replicas * pieces))
        return share * pieces * replicas, pieces

    def _totals(self, devices: Integers) -> Integers:
        if "global_batch" in self.roles.strategy:
            return self._whole("global_batch")
        return self._whole("device_batch") * devices

    def _schedules(self) -> Integers:
        def reader(value: Any) -> int:
            if str(value) not in SCHEDULES:
                raise ValueError(f"one of {', '.join(SCHEDULES)}")
            return SCHEDULES.index(str(value))

        return self.read("schedule", reader, SCHEDULES.index("1f1b"))

    def _shards(self, pipeline: Integers) -> Integers:
        column = self.roles.strategy.get("shard", "")
        reader = read_fsdp if column.lower() == "fsdp" else read_shard
        shard = self.read("shard", reader, 0)
        return np.where(pipeline > 1, np.minimum(shard, 1), shard)

    def _graphs(self, tensor: Integers, pieces: Integers) -> list[LayerGraph]:
        found = []
        for i, record in enumerate(self.values.to_dict("records")):
            try:
                found.append(build_graph(*self._network(record, int(tensor[i]), int(pieces[i]))))
            except (InfeasibleError, ValueError) as error:
                raise self.refuse(i, str(error)) from error
        return found

    def _network(
        self, record: Mapping[Any, Any], tensor: int, pieces: int
    ) -> tuple[str, tuple[Any, ...]]:
        """Return the workload of a row and its values."""
        roles = self.roles
        if not roles.workload and not roles.by_column:
            shape = {
                role: read_size(record[column]) if role == "size" else float(record[column])
                for role, column in roles.network.items()
            }
            return transformer_of(shape, tensor, pieces)
        name = roles.workload or str(record["workload"])
        known = load_workload(name).defaults
        return name, tuple((p, record[c]) for p, c in roles.network.items() if p in known)
