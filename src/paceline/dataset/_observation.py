"""A trial with what came of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.errors import InvalidInputError
from paceline.space import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A trial with its raw times, or the reason why it failed.

    Parameters
    ----------
    values
        One value per parameter.
    times_s
        Every repeat, in seconds; empty when the trial failed.
    reason
        Why the trial failed; empty when it did not.
    provenance
        Where, when and how it was measured.

    Examples
    --------
    >>> Observation(values={"n_devices": 2}, times_s=(0.3, 0.1, 0.2)).time_s
    0.2
    """

    values: Trial
    times_s: tuple[float, ...] = ()
    reason: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        times_s = tuple(float(time_s) for time_s in self.times_s)
        for time_s in times_s:
            if not (math.isfinite(time_s) and time_s > 0):
                raise InvalidInputError(f"`times_s` must be positive, but got {time_s}.")
        if bool(times_s) == bool(self.reason):
            raise InvalidInputError(
                "An observation must have either `times_s` or the `reason` why it failed, "
                f"but got times_s={times_s} and reason={self.reason!r}."
            )
        object.__setattr__(self, "times_s", times_s)

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{values}: {f'failed, {self.reason}' if self.reason else f'{self.time_s:.4g} s'}"

    @property
    def failed(self) -> bool:
        """Whether the trial gave no time."""
        return not self.times_s

    @property
    def time_s(self) -> float:
        """Median of the repeats, in seconds; NaN when the trial failed."""
        return median_s(self.times_s) if self.times_s else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the observation as plain data."""
        return {
            "values": dict(self.values),
            "times_s": list(self.times_s),
            "reason": self.reason,
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Observation:
        """Return the observation that `to_dict` described."""
        return cls(
            values=dict(data["values"]),
            times_s=tuple(data["times_s"]),
            reason=data.get("reason", ""),
            provenance=dict(data.get("provenance", {})),
        )


def median_s(times_s: tuple[float, ...]) -> float:
    """Return the median of some times, the one time that stands for all repeats."""
    return float(statistics.median(times_s))
