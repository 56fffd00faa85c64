"""What a time is the time of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from paceline.errors import InvalidInputError

TimePer = Literal["step", "epoch", "sample"]
Batch = Literal["global_batch", "device_batch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBasis:
    """What the time of a dataset is of, and which batch it holds.

    Parameters
    ----------
    time_per
        ``step``, ``epoch`` or ``sample``; None when unknown.
    batch
        ``global_batch`` or ``device_batch``; None when unknown.

    Examples
    --------
    >>> basis = TimeBasis(time_per="step", batch="device_batch")
    >>> print(basis)
    time per step at fixed device batch
    >>> basis.ideal_device_power
    0.0
    """

    time_per: TimePer | None = None
    batch: Batch | None = None

    def __post_init__(self) -> None:
        for field, choices in (("time_per", get_args(TimePer)), ("batch", get_args(Batch))):
            value = getattr(self, field)
            if value is not None and value not in choices:
                raise InvalidInputError(
                    f"`{field}` must be one of {', '.join(choices)}, but got {value!r}."
                )

    def __str__(self) -> str:
        if self.time_per is None and self.batch is None:
            return "time of unknown basis"
        time = f"time per {self.time_per}" if self.time_per else "time of unknown basis"
        batch = f" at fixed {self.batch.replace('_', ' ')}" if self.batch else ", batch unknown"
        return time + batch

    @property
    def ideal_device_power(self) -> float | None:
        """Power of the number of devices if scaling were perfect; None when the basis is unknown.

        A fixed global batch, an epoch or a sample is shared out over the devices (-1); at a
        fixed device batch a step of each device stays the same work (0).
        """
        if self.time_per in ("epoch", "sample"):
            return -1.0
        if self.time_per == "step" and self.batch is not None:
            return -1.0 if self.batch == "global_batch" else 0.0
        return None

    def to_dict(self) -> dict[str, str | None]:
        """Return the basis as plain data."""
        return {"time_per": self.time_per, "batch": self.batch}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TimeBasis:
        """Return the basis that `to_dict` described."""
        return cls(time_per=data.get("time_per"), batch=data.get("batch"))
