"""How a table is to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from paceline.dataset._basis import Batch, TimePer
from paceline.errors import InvalidInputError, UnknownNameError

# Columns that our own files add beside the parameters.
TIME = "time_s"
TIMES = "times_s"
RESERVED = (TIME, TIMES)

# What a campaign notes of a trial beside its values: outcomes, which would tell an estimator the
# answer, and what follows from the parameters.
OUTCOMES = ("trial", "minimum_s", "disagreement", "peak_memory_bytes", "n_samples")
DERIVED = ("workload", "executor", "global_batch")


class ReadKeywords(TypedDict, total=False):
    """The keywords of every reader; see `Dataset.from_frame`."""

    time: str
    intrinsic: Sequence[str] | None
    extrinsic: Sequence[str] | None
    categorical: Sequence[str]
    time_unit: str | None
    throughput: str | None
    time_per: TimePer | None
    batch: Batch | None
    group: str | None
    keep_constant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The keywords of a reader with their defaults."""

    time: str = TIME
    intrinsic: Sequence[str] | None = None
    extrinsic: Sequence[str] | None = None
    categorical: Sequence[str] = ()
    time_unit: str | None = None
    throughput: str | None = None
    time_per: TimePer | None = None
    batch: Batch | None = None
    group: str | None = None
    keep_constant: bool = False

    def __post_init__(self) -> None:
        for field in ("intrinsic", "extrinsic", "categorical"):
            names = getattr(self, field)
            if isinstance(names, str):
                raise InvalidInputError(f"`{field}` must be a list of names, but got {names!r}.")
            object.__setattr__(self, field, tuple(names or ()))

    @property
    def named(self) -> tuple[str, ...]:
        """Columns that were given a role."""
        return (*(self.intrinsic or ()), *(self.extrinsic or ()))

    def check_columns(self, columns: Iterable[str]) -> None:
        """Refuse names that are no columns and columns that would play two parts."""
        known = tuple(columns)
        self._check_time(known)
        for name in (*self.named, *self.categorical, self.throughput, self.group):
            if name is not None and name not in known:
                raise UnknownNameError("column", name, known)
        repeated = [name for i, name in enumerate(self.named) if name in self.named[:i]]
        if repeated:
            raise InvalidInputError(
                f"A column must have one role, but `{repeated[0]}` is named more than once."
            )
        for name in (*self.named, *self.categorical):
            if name in (self.time, self.throughput, *RESERVED):
                raise InvalidInputError(f"The time must not be a parameter, but got `{name}`.")

    def _check_time(self, known: tuple[str, ...]) -> None:
        if self.throughput is None and self.time not in known:
            error = UnknownNameError("column", self.time, known)
            error.args = (f"{error} Name the time column with `--time`.",)
            raise error
        if self.throughput is not None and self.time_per not in (None, "step"):
            raise InvalidInputError(
                f"`throughput` gives the time of a step, but got time_per={self.time_per!r}."
            )
