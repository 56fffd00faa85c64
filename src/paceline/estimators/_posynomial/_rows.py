"""From columns of parameters to the logarithms that a posynomial is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import counts_what
from paceline.estimators._columns import Array, columns_of
from paceline.estimators._expression import not_negative, positive
from paceline.estimators._marks import level_marks
from paceline.estimators._posynomial._composed import Composed, with_composed
from paceline.estimators._posynomial._expression import log_collective

_FEW_DEVICES = 4
_FLOOR = -40.0  # of log(1 - 1/n) while fitting: small enough to vanish, large enough to compute


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of parameters as numbers.

    Parameters
    ----------
    logs
        Logarithms of the numeric parameters less their mean; 0 where a parameter is 0.
    marks
        0 or 1 for every zero of a numeric parameter and for every level.
    collectives
        A column of zeros, then ``log(1 - 1/n)`` of every number of devices.
    features
        A row of ones, then logarithms and marks, one row each.
    """

    logs: Array
    marks: Array
    collectives: Array
    features: Array = field(init=False)

    def __post_init__(self) -> None:
        ones = np.ones((1, len(self.logs)))
        object.__setattr__(self, "features", np.vstack([ones, self.logs.T, self.marks.T]))

    def __len__(self) -> int:
        return len(self.logs)

    def take(self, rows: Any) -> Rows:
        """Return the given rows."""
        return Rows(
            logs=self.logs[rows], marks=self.marks[rows], collectives=self.collectives[rows]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which column becomes what.

    Parameters
    ----------
    stand_ins
        Geometric mean of every numeric parameter: the centre of its logarithms.
    zeros
        Numeric parameters that were measured at 0.
    levels
        Known levels of every categorical parameter, composed ones included.
    devices
        Numeric parameters that count devices.
    composed
        Categorical parameters that follow from others.
    told
        Levels of categorical parameters that are left out, since others tell them.
    """

    stand_ins: Mapping[str, float]
    zeros: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    devices: tuple[str, ...]
    composed: tuple[Composed, ...] = ()
    told: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[tuple[str, slice], ...]:
        """The columns of `Rows.marks` that belong to every categorical parameter."""
        found, start = [], len(self.zeros)
        for name, known in self.levels.items():
            found.append((name, slice(start, start + len(known))))
            start += len(known)
        return tuple(found)

    @property
    def n_columns(self) -> int:
        """How many numbers, zeros of numbers, and levels there are."""
        return len(self.stand_ins) + len(self.zeros) + sum(map(len, self.levels.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as plain data."""
        return {
            "stand_ins": dict(self.stand_ins),
            "zeros": list(self.zeros),
            "levels": {name: list(known) for name, known in self.levels.items()},
            "devices": list(self.devices),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Layout:
        """Return the layout that `to_dict` wrote."""
        return cls(
            stand_ins={str(n): float(v) for n, v in data["stand_ins"].items()},
            zeros=tuple(map(str, data["zeros"])),
            levels={str(n): tuple(map(str, known)) for n, known in data["levels"].items()},
            devices=tuple(map(str, data["devices"])),
        )

    def encode(self, X: pd.DataFrame) -> Rows:
        """Return the rows of `X` as numbers."""
        X = with_composed(X, self.composed)
        values = {name: not_negative(X[name]) for name in self.stand_ins}
        logs = [
            np.log(np.where(x > 0, x, self.stand_ins[name]) / self.stand_ins[name])
            for name, x in values.items()
        ]
        zeros = [(values[name] == 0).astype(float) for name in self.zeros]
        marks = [level_marks(X[name], known) for name, known in self.levels.items()]
        shares = [np.maximum(log_collective(values[name]), _FLOOR) for name in self.devices]
        empty = np.empty((len(X), 0))
        return Rows(
            logs=np.column_stack([empty, *logs]),
            marks=np.column_stack([empty, *zeros, *marks]),
            collectives=np.column_stack([np.zeros(len(X)), *shares]),
        )


def layout_of(
    X: pd.DataFrame, extrinsic: Sequence[Any] | None, categorical: Sequence[Any] | None
) -> Layout:
    """Return what each column of `X` becomes."""
    columns = columns_of(X, extrinsic, categorical)
    levels = columns.levels
    for name in columns.extrinsic:
        positive(X, name)
    stand_ins, zeros = {}, []
    for name in map(str, X.columns):
        if name in levels:
            continue
        x = not_negative(X[name])
        present = x[x > 0]
        stand_ins[name] = float(np.exp(np.log(present).mean())) if len(present) else 1.0
        if len(present) < len(x):
            zeros.append(name)
    return Layout(
        stand_ins=stand_ins,
        zeros=tuple(zeros),
        levels=levels,
        devices=tuple(n for n in stand_ins if _counts_devices(n, X[n])),
    )


def _counts_devices(name: str, values: pd.Series[Any]) -> bool:
    """Return whether 1 - 1/n says something: far from one device it is nearly constant.

    Of two numbers a power says as much, and exceeds what a collective costs on more.
    """
    is_count = counts_what(name) == "devices" and bool((values >= 1).all())
    return is_count and values.nunique() > 1 and bool(values.min() <= _FEW_DEVICES)
