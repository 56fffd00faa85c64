"""How a trial is measured and what it may cost: the protocol and the limits of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from paceline.errors import InvalidInputError, UnknownNameError


class _Table:
    """What the tables of a study share: plain data in, plain data out, each field checked."""

    _TABLE = ""

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Return the rules that a table of a study states; the others keep their defaults."""
        if not isinstance(data, Mapping):
            raise InvalidInputError(f"`{cls._TABLE}` must be a table, but got {data!r}.")
        known = tuple(f.name for f in fields(cls))  # type: ignore[arg-type]
        for name in data:
            if name not in known:
                raise UnknownNameError(f"field of `{cls._TABLE}`", str(name), known)
        return cls(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain data."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


@dataclass(frozen=True, kw_only=True)
class Protocol(_Table):
    """How a trial is measured.

    Parameters
    ----------
    n_warmup, n_steps, n_phase_steps
        Steps of each life that are dropped, timed as a user would see them, and timed phase
        by phase without overlap.
    per_layer
        Whether forward and backward are timed per layer as well.
    epochs
        Instead of counted steps, whole epochs over `n_samples` of the data: the first one is
        dropped (thesis, chapter 3); 0 counts steps.
    lives
        Process lives that measure each trial: a process has its own speed for life.
    recycle_every
        Runs after which the workers are replaced by fresh ones.
    repeat_share
        Share of the trials that is measured again later, for the noise floor.
    disagreement
        Lives whose medians differ by more than this share were disturbed.
    load_jump
        So were lives between which the load of the machine changed by more than this.
    remeasure_share
        Largest share of the trials that is measured again, once, because of a disturbance.
    """

    _TABLE = "protocol"

    n_warmup: int = 3
    n_steps: int = 10
    n_phase_steps: int = 0
    per_layer: bool = False
    epochs: int = 0
    lives: int = 2
    recycle_every: int = 100
    repeat_share: float = 0.1
    disagreement: float = 0.5
    load_jump: float = 4.0
    remeasure_share: float = 0.1

    def __post_init__(self) -> None:
        for name, low in (("n_warmup", 0), ("n_steps", 1), ("n_phase_steps", 0)):
            check_whole(f"protocol.{name}", getattr(self, name), low)
        check_whole("protocol.lives", self.lives, 2)
        check_whole("protocol.recycle_every", self.recycle_every, self.lives)
        check_whole("protocol.epochs", self.epochs, 0)
        if self.epochs == 1:
            raise InvalidInputError("`protocol.epochs` must be 0 or at least 2, but got 1.")
        if not isinstance(self.per_layer, bool):
            raise InvalidInputError(
                f"`protocol.per_layer` must be true or false, but got {self.per_layer!r}."
            )
        for name in ("repeat_share", "remeasure_share"):
            check_number(f"protocol.{name}", getattr(self, name), 0.0, 1.0)
        for name in ("disagreement", "load_jump"):
            check_number(f"protocol.{name}", getattr(self, name), 0.0)


@dataclass(frozen=True, kw_only=True)
class Limits(_Table):
    """What one run of a trial may cost.

    Parameters
    ----------
    trial_seconds
        After this long the run is ended and the trial has failed.
    memory_gb
        Memory of all its workers together, in units of 1e9 bytes; 0 means no limit.
    """

    _TABLE = "limits"

    trial_seconds: float = 60.0
    memory_gb: float = 0.0

    def __post_init__(self) -> None:
        check_number("limits.trial_seconds", self.trial_seconds, 0.001)
        check_number("limits.memory_gb", self.memory_gb, 0.0)

    @property
    def memory_bytes(self) -> int | None:
        """The limit in bytes; None when there is none."""
        return round(self.memory_gb * 1e9) or None


def check_whole(field: str, value: object, low: int) -> None:
    """Refuse what is no whole number from `low`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise InvalidInputError(
            f"`{field}` must be a whole number of at least {low}, but got {value!r}."
        )


def check_number(field: str, value: object, low: float, high: float = math.inf) -> None:
    """Refuse what is no number from `low` to `high`."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not low <= value <= high:  # type: ignore[arg-type, operator]
        upper = f" to {high:g}" if math.isfinite(high) else " up"
        raise InvalidInputError(
            f"`{field}` must be a number from {low:g}{upper}, but got {value!r}."
        )
