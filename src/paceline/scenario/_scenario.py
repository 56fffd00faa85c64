"""What is asked of the oracle, the estimators and the planners: one step of one job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from paceline.clusters import Cluster
from paceline.errors import InvalidInputError
from paceline.scenario._strategy import Strategy
from paceline.workloads import LayerGraph


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A network on a cluster under a strategy with a batch.

    Parameters
    ----------
    graph
        What is trained.
    cluster
        On what.
    strategy
        How it is divided.
    global_batch
        Samples of one step, over all devices.
    optimizer
        ``sgd``, ``momentum``, ``adam`` or ``adamw``: how much state a weight has.
    precision
        Of compute, one of `paceline.clusters.PRECISIONS`.
    """

    graph: LayerGraph
    cluster: Cluster
    strategy: Strategy
    global_batch: int
    optimizer: str = "adam"
    precision: str = "float32"

    def __post_init__(self) -> None:
        if self.global_batch < 1:
            raise InvalidInputError(
                f"`global_batch` must be positive, but got {self.global_batch!r}."
            )

    @property
    def n_devices(self) -> int:
        """Number of devices."""
        return self.strategy.n_devices

    @property
    def replica_batch(self) -> float:
        """Samples of one step that one replica works on."""
        return self.global_batch / self.strategy.data

    @property
    def micro_batch(self) -> float:
        """Samples that go through the layers at once."""
        return self.replica_batch / self.strategy.micro_batches

    def to_row(self) -> dict[str, Any]:
        """Return the scenario as a row of a dataset."""
        return {
            "workload": self.graph.name,
            **dict(self.graph.values),
            "cluster": self.cluster.name,
            "n_devices": self.n_devices,
            "global_batch": self.global_batch,
            "optimizer": self.optimizer,
            "precision": self.precision,
            **self.strategy.to_dict(),
        }
