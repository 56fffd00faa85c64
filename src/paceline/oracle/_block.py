"""Scenarios with as many pieces of the network as each other, and sums over those pieces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import Cluster
from paceline.oracle._columns import Columns
from paceline.oracle._keys import Keys, distinct
from paceline.oracle._layer_costs import LayerCosts
from paceline.oracle._precision import Numbers
from paceline.oracle.strategies import strides
from paceline.scenario import DEGREES, StrategyTable

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Block:
    """Rows of a sweep that share the number of pieces.

    Parameters
    ----------
    columns, cluster, numbers
        The network, the machine, and bytes by number.
    costs
        Of the distinct layers, by distinct scenario.
    key
        By row, its distinct scenario.
    table
        Strategies of the rows.
    n_parts
        Pieces: stages times virtual stages.
    inside
        Whether the stages of a pipeline are neighbours, instead of its replicas.
    overlap
        How gradients go out beside the backward pass, as `sweep` takes it.
    """

    columns: Columns
    cluster: Cluster
    numbers: Numbers
    costs: LayerCosts
    key: Integers
    table: StrategyTable
    n_parts: int
    inside: bool = False
    overlap: str = "ddp"

    def __len__(self) -> int:
        return len(self.key)

    def placed_inside(self) -> tuple[Integers, Block] | None:
        """Return the rows whose stages may as well be neighbours, and the block that they make."""
        table = self.table
        alone = (table["spatial"] == 1) & (table["context"] == 1) & (table["expert"] == 1)
        rows = np.flatnonzero(alone & (table["pipeline"] > 1) & (table["data"] > 1))
        if not len(rows):
            return None
        return rows, replace(self, key=self.key[rows], table=table.take(rows), inside=True)

    @cached_property
    def keys(self) -> Keys:
        """Distinct scenarios among the rows."""
        return distinct([self.key])

    @cached_property
    def stage_counts(self) -> Array:
        """Distinct layers by piece."""
        return self.columns.stage_counts(self.n_parts)

    def sums(self, figures: Array, counts: Array | None = None) -> Array:
        """Return sums over the layers of each piece, or as `counts` says, by row.

        Parameters
        ----------
        figures
            By distinct scenario, or one row for all, and distinct layer.
        counts
            How many of each distinct layer (rows) lie in each column.
        """
        wanted = self.stage_counts if counts is None else counts
        if len(figures) == 1:
            return np.broadcast_to(figures @ wanted, (len(self), wanted.shape[1]))
        found: Array = (figures[self.key[self.keys.first]] @ wanted)[self.keys.which]
        return found

    def devices(self, pieces: Array) -> Array:
        """Return sums over the pieces of each device: piece i is on device i mod S."""
        virtual = self.virtual_stages
        if virtual == 1:
            return pieces
        found: Array = pieces.reshape(len(pieces), virtual, -1).sum(axis=1)
        return found

    @property
    def virtual_stages(self) -> int:
        """Pieces per device, the same for all rows of a block."""
        return int(self.table["virtual_stages"][0])

    @property
    def n_stages(self) -> int:
        """Devices in a row."""
        return self.n_parts // self.virtual_stages

    @property
    def micro_batches(self) -> Integers:
        """By row."""
        return self.table["micro_batches"]

    @cached_property
    def samples(self) -> Array:
        """Samples of a micro-batch by row."""
        return self.costs.samples[self.key]

    @cached_property
    def crowding(self) -> Array:
        """How many times longer a worker computes beside the others, by row, as a column."""
        return self.cluster.crowding(self.table.n_devices)[:, None]

    @cached_property
    def strides(self) -> dict[str, Integers]:
        """Distance of the members of each degree's groups, by row."""
        return strides({name: self.table[name] for name in DEGREES}, inside=self.inside)

    @cached_property
    def replicas(self) -> Integers:
        """How many devices hold the same weights but for other samples, by row."""
        table = self.table
        return table["data"] * table["spatial"] * table["context"] * table["expert"]

    @cached_property
    def parameter_bytes(self) -> Array:
        """Weights of the distinct layers that one device holds, by distinct scenario."""
        return self.columns["n_parameters"] * self.costs.shares.weight * self.numbers.weight
