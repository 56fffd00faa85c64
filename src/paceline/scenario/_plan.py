"""A plan: a scenario with its partition, its placement and what is predicted of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.dataset import html_card
from paceline.errors import InvalidInputError, SchemaError
from paceline.scenario._strategy import Strategy
from paceline.units import format_seconds

PLAN_SCHEMA = "paceline/plan/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Layers that one device of a pipeline holds.

    Parameters
    ----------
    first, end
        Places of its first layer and of the one behind its last in the graph.
    names
        Of its first and its last layer, for people.
    """

    first: int
    end: int
    names: tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a network is to be trained, and what that should cost.

    Parameters
    ----------
    workload
        ``{"name", "values"}``, or ``{"module": {"file", "name", "arguments"}, "sample", "loss"}``.
    fingerprint
        Of the layer graph: a plan runs no other network.
    cluster
        Name of the cluster, or of its file.
    strategy
        Degrees, micro-batches and schedule.
    global_batch, optimizer, precision
        As in the scenario.
    stages
        One per stage of the pipeline, in order; all layers in one without a pipeline.
    placement
        For every replica the devices of its stages: ``placement[replica][stage]``.
    replica_batches
        Samples of every replica in a step.
    predicted
        ``step_s`` and its parts in seconds, ``memory_bytes`` of the fullest device,
        ``traffic_bytes``, the payload of a device's exchanges in a step.
    reasons
        Why this plan was chosen, one sentence each.
    runners_up
        Other strategies with how far ``behind`` each is, as a share of the step or, for the
        ``cheapest``, of its device time: ``{"strategy", "step_s", "behind"}``.
    objective
        What was asked for.
    """

    workload: Mapping[str, Any]
    fingerprint: str
    cluster: str
    strategy: Strategy
    global_batch: int
    optimizer: str = "adam"
    precision: str = "float32"
    stages: tuple[Stage, ...]
    placement: tuple[tuple[int, ...], ...]
    replica_batches: tuple[int, ...]
    predicted: Mapping[str, float]
    reasons: tuple[str, ...] = ()
    runners_up: tuple[Mapping[str, Any], ...] = field(default=())
    objective: str = "fastest"

    def __post_init__(self) -> None:
        _check_stages(self.stages, self.strategy)
        _check_placement(self.placement, self.strategy)
        if len(self.replica_batches) != self.strategy.data:
            raise InvalidInputError(
                f"`replica_batches` must hold one batch for each of {self.strategy.data} "
                f"replicas, but got {list(self.replica_batches)}."
            )
        if sum(self.replica_batches) != self.global_batch:
            raise InvalidInputError(
                f"`replica_batches` must sum to the global batch of {self.global_batch}, but sum "
                f"to {sum(self.replica_batches)}."
            )

    def _repr_html_(self) -> str:
        facts = {
            "strategy": str(self.strategy),
            "cluster": f"{self.strategy.n_devices} devices of {self.cluster}",
            "global batch": str(self.global_batch),
        }
        if "step_s" in self.predicted:
            facts["predicted step"] = format_seconds(self.predicted["step_s"])
        return html_card("Plan", facts, text="\n".join(self.reasons))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {
            "schema": PLAN_SCHEMA,
            "workload": dict(self.workload),
            "fingerprint": self.fingerprint,
            "cluster": self.cluster,
            "strategy": self.strategy.to_dict(),
            "global_batch": self.global_batch,
            "optimizer": self.optimizer,
            "precision": self.precision,
            "stages": [
                {"first": s.first, "end": s.end, "names": list(s.names)} for s in self.stages
            ],
            "placement": [list(devices) for devices in self.placement],
            "replica_batches": list(self.replica_batches),
            "predicted": dict(self.predicted),
            "reasons": list(self.reasons),
            "runners_up": [dict(other) for other in self.runners_up],
            "objective": self.objective,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan that `to_dict` wrote."""
        plain = ("workload", "fingerprint", "cluster", "optimizer", "precision", "objective")
        return cls(
            **{name: data[name] for name in plain},
            strategy=Strategy.from_dict(data["strategy"]),
            global_batch=int(data["global_batch"]),
            stages=tuple(
                Stage(
                    first=int(s["first"]), end=int(s["end"]), names=(s["names"][0], s["names"][1])
                )
                for s in data["stages"]
            ),
            placement=tuple(tuple(int(d) for d in devices) for devices in data["placement"]),
            replica_batches=tuple(int(b) for b in data["replica_batches"]),
            predicted={name: float(value) for name, value in data["predicted"].items()},
            reasons=tuple(data["reasons"]),
            runners_up=tuple(data["runners_up"]),
        )


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan as JSON."""
    text = json.dumps(plan.to_dict(), indent=2) + "\n"
    Path(path).write_text(text, encoding="utf-8")


def load_plan(path: str | Path) -> Plan:
    """Read a plan.

    Raises
    ------
    SchemaError
        When the file is not a plan, or was changed into one that cannot be.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SchemaError(path, f"a plan must be JSON, but: {error}.") from None
    if not isinstance(data, dict) or data.get("schema") != PLAN_SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise SchemaError(path, f"a plan must have the schema {PLAN_SCHEMA!r}, but got {found!r}.")
    try:
        return Plan.from_dict(data)
    except KeyError as error:
        raise SchemaError(path, f"a plan must have {error}; make it again.") from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise SchemaError(path, f"not a plan that can be run: {error}") from None


def _check_stages(stages: tuple[Stage, ...], strategy: Strategy) -> None:
    wanted = strategy.pipeline * strategy.virtual_stages
    if len(stages) != wanted:
        raise InvalidInputError(
            f"`stages` must be {wanted}, one for each of the pipeline, but got {len(stages)}."
        )
    ends = [0, *(stage.end for stage in stages)]
    for stage, begin in zip(stages, ends, strict=False):
        if stage.first != begin or stage.end <= stage.first:
            raise InvalidInputError(
                f"Stages must follow each other without gaps, but one goes from layer "
                f"{stage.first} to {stage.end} where {begin} should begin."
            )


def _check_placement(placement: tuple[tuple[int, ...], ...], strategy: Strategy) -> None:
    inner = strategy.n_devices // strategy.data
    if len(placement) != strategy.data or any(len(devices) != inner for devices in placement):
        raise InvalidInputError(
            f"`placement` must name {inner} devices for each of {strategy.data} replicas, but got "
            f"{[list(devices) for devices in placement]}."
        )
    used = [device for devices in placement for device in devices]
    if min(used) < 0 or len(set(used)) != len(used):
        raise InvalidInputError(
            f"`placement` must name every device once, counted from 0, but got {used}."
        )
