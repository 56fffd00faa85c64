"""Published figures of parallel training: predictions and measured runs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import Any

from paceline.errors import SchemaError, UnknownNameError

SCHEMA = "paceline/oracle-facts/1"
SOURCES = ("paradl", "hkbu", "jansen", "parameters")

# the rule of paradl.toml, which is older than the code that predicts
DISAGREEMENT = 0.20


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Seconds per step on some devices, one median per run."""

    n_devices: int
    runs: tuple[float, ...]

    @property
    def time_s(self) -> float:
        """Median of the runs."""
        return median(self.runs)

    @property
    def spread(self) -> float:
        """How far the slowest run is above the fastest."""
        return max(self.runs) / min(self.runs) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Runs of one network under one strategy with the same work per device, by devices.

    Parameters
    ----------
    network, strategy, device_batch
        What was run.
    cases
        By number of devices.
    own_accuracy
        What the authors say of their own prediction; None where they do not.
    """

    network: str
    strategy: str
    device_batch: int
    cases: tuple[Case, ...]
    own_accuracy: float | None = None

    def __str__(self) -> str:
        return f"{self.strategy} {self.network}, {self.device_batch} samples a device"

    def outliers(self) -> dict[int, str]:
        """Return which cases are left out, by devices, and by what part of the rule."""
        found = {}
        for case, larger in zip(self.cases, (*self.cases[1:], None), strict=True):
            if case.spread > DISAGREEMENT:
                found[case.n_devices] = f"runs differ by {case.spread:.0%}"
            elif larger and case.time_s > (1 + DISAGREEMENT) * larger.time_s:
                more = case.time_s / larger.time_s - 1
                found[case.n_devices] = f"{more:.0%} above {larger.n_devices} devices"
        return found

    def kept(self) -> tuple[Case, ...]:
        """Return the cases that are not left out; the first calibrates, the others test."""
        out = self.outliers()
        return tuple(case for case in self.cases if case.n_devices not in out)


def load_oracle_facts(name: str) -> dict[str, Any]:
    """Return the plain data of a file of published figures.

    Parameters
    ----------
    name
        ``paradl``, ``hkbu``, ``jansen`` or ``parameters``.
    """
    if name not in SOURCES:
        raise UnknownNameError("file of published figures", name, SOURCES)
    path = files("paceline.validation") / "published" / f"{name}.toml"
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != SCHEMA:
        raise SchemaError(
            path.name, f'`schema` must be "{SCHEMA}", but got {data.get("schema")!r}.'
        )
    return data


def read_series(entry: Mapping[str, Any]) -> Series:
    """Return one measured series from its plain data."""
    cases = tuple(
        Case(n_devices=case["n_devices"], runs=tuple(case["runs"])) for case in entry["cases"]
    )
    return Series(
        network=entry["network"],
        strategy=entry["strategy"],
        device_batch=entry["device_batch"],
        cases=cases,
        own_accuracy=entry.get("own_accuracy"),
    )
