"""What is planned, and what a plan may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import Cluster
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle import CutStep, cut_step
from paceline.scenario import Scenario, Strategy
from paceline.workloads import LayerGraph

OBJECTIVES = ("fastest", "cheapest", "fewest")


class Predictor(Protocol):
    """Whatever says how long a step of a scenario takes."""

    def predict(self, scenarios: Sequence[Scenario]) -> NDArray[np.float64]:
        """Return the seconds of a step of every scenario."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A network to be trained on devices, and what is wanted of the plan.

    Parameters
    ----------
    graph, cluster
        What is trained, and on what.
    n_devices
        How many devices there are at most.
    global_batch, optimizer, precision
        As `sweep` takes them.
    objective
        ``fastest`` step, ``cheapest`` step, or ``fewest`` devices within the deadline.
    deadline_s, n_samples
        Seconds that an epoch of so many samples may take; None: no limit.
    predictor
        Says step times instead of the oracle; limits and memory stay the oracle's.
    runnable_only
        Whether only what an executor can run is looked at.
    """

    graph: LayerGraph
    cluster: Cluster
    n_devices: int
    global_batch: int
    optimizer: str = "adam"
    precision: str = "float32"
    objective: str = "fastest"
    deadline_s: float | None = None
    n_samples: int | None = None
    predictor: Predictor | None = None
    runnable_only: bool = True
    workload: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise UnknownNameError("objective", self.objective, OBJECTIVES)
        for name in ("n_devices", "global_batch"):
            if getattr(self, name) < 1:
                raise InvalidInputError(
                    f"`{name}` must be positive, but got {getattr(self, name)!r}."
                )
        here = self.cluster.capacity
        if here and self.n_devices > here:
            raise InvalidInputError(
                f"A plan must not use more devices than {self.cluster.name} has ({here}), but "
                f"got {self.n_devices}. Try: --devices {here}"
            )
        self._check_deadline()

    def _check_deadline(self) -> None:
        if self.deadline_s is None:
            if self.objective == "fewest":
                raise InvalidInputError("The objective 'fewest' needs a deadline.")
            return
        if not self.deadline_s > 0:
            raise InvalidInputError(f"A deadline must be positive, but got {self.deadline_s!r}.")
        if self.n_samples is None:
            raise InvalidInputError(
                "A deadline is of an epoch, and needs to know its samples. Try: --samples 50000"
            )

    @property
    def steps_per_epoch(self) -> int | None:
        """Number of steps of an epoch, where its samples are known."""
        return None if self.n_samples is None else -(-self.n_samples // self.global_batch)

    def cost(self, strategy: Strategy, ends: Sequence[int] | None, global_batch: int) -> CutStep:
        """Return what a step costs when the network is cut behind these units; found once."""
        key = (strategy, None if ends is None else tuple(ends), global_batch)
        if key not in self._known:
            self._known[key] = cut_step(
                self.graph,
                self.cluster,
                strategy,
                ends,
                global_batch=global_batch,
                optimizer=self.optimizer,
                precision=self.precision,
            )
        return self._known[key]

    @cached_property
    def _known(self) -> dict[Any, CutStep]:
        return {}

    def scenario(self, strategy: Strategy) -> Scenario:
        """Return the scenario of a strategy."""
        return Scenario(
            graph=self.graph,
            cluster=self.cluster,
            strategy=strategy,
            global_batch=self.global_batch,
            optimizer=self.optimizer,
            precision=self.precision,
        )
