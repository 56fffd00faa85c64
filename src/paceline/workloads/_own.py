"""Workloads whose network Paceline does not know: the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.errors import InfeasibleError, UnknownNameError
from paceline.space import Parameter
from paceline.workloads._base import TRAINING, TRAINING_DEFAULTS, Values, Workload
from paceline.workloads._network import Network
from paceline.workloads._values import RUN_NAMES


class OwnWorkload(Workload):
    """Something of the user's that is trained; its parameters are those of the space.

    Parameters
    ----------
    name, summary
        How it is called, and one line for people.
    parameters
        Parameters of the space; those of the run and of the training are known anyway.
    """

    def __init__(self, name: str, summary: str, parameters: Sequence[Parameter]) -> None:
        known = {*RUN_NAMES, *(parameter.name for parameter in TRAINING)}
        own = tuple(p for p in parameters if p.name not in known)
        super().__init__(name, summary, own, {})
        self.defaults = {**{p.name: p.values[0] for p in own}, **TRAINING_DEFAULTS}
        self.own_names = tuple(p.name for p in own)

    def complete(self, values: Values | None = None) -> dict[str, Any]:
        """Return a value for every parameter; given ones are taken as they are."""
        known = {parameter.name for parameter in self.parameters}
        for name in values or {}:
            if name not in known and name not in RUN_NAMES:
                raise UnknownNameError("parameter", str(name), sorted(known))
        return self.defaults | {n: v for n, v in (values or {}).items() if n in known}

    def infeasible(self, values: Values | None = None) -> str:
        """Return nothing: only a run can tell whether these values can be built."""
        return ""

    def _network(self, values: dict[str, Any]) -> Network:
        raise InfeasibleError(f"{self.name} is your own: its layers are not known.")


class ScriptWorkload(OwnWorkload):
    """What a script of the user's trains."""

    def __init__(self, name: str, parameters: Sequence[Parameter] = ()) -> None:
        super().__init__(name, "your own script", parameters)

    def job_keywords(self, values: Values | None = None) -> dict[str, Any]:
        """Return what a job must have; the script knows the rest."""
        self.complete(values)
        return {"sample": {}, "optimizer": {}}
