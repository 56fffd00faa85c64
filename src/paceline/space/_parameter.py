"""One named quantity that a run is described by."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from paceline.errors import InvalidInputError, UnknownNameError

Role = Literal["intrinsic", "extrinsic"]
Kind = Literal["numeric", "categorical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named quantity with the values it may take.

    Parameters
    ----------
    name
        How trials, columns and expressions call it.
    role
        ``intrinsic`` (what the job is) or ``extrinsic`` (how it is scaled; always numeric).
    kind
        ``numeric`` or ``categorical``.
    values
        Finite numbers, or strings when categorical; at least one, none twice.
    unit
        Unit of the values, for people; empty when there is none.

    Raises
    ------
    InvalidInputError
        When one of these rules is broken.

    Examples
    --------
    >>> print(Parameter(name="n_devices", role="extrinsic", kind="numeric", values=(1, 2, 4)))
    n_devices (extrinsic): 1, 2, 4
    """

    name: str
    role: Role
    kind: Kind
    values: tuple[float, ...] | tuple[str, ...]
    unit: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInputError(f"A parameter's `name` must be a text, but got {self.name!r}.")
        _check_choice("role", self.role, get_args(Role))
        _check_choice("kind", self.kind, get_args(Kind))
        if not isinstance(self.unit, str):
            raise InvalidInputError(
                f"`unit` of {self.name!r} must be a text, but got {self.unit!r}."
            )
        if self.role == "extrinsic" and self.kind == "categorical":
            raise InvalidInputError(
                f"An extrinsic parameter must be numeric, but got {self.name!r} as categorical."
            )
        object.__setattr__(self, "values", _checked_values(self.name, self.kind, self.values))

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return f"{self.name} ({self.role}): {', '.join(map(str, self.values))}{unit}"

    def to_dict(self) -> dict[str, Any]:
        """Return the parameter as plain data."""
        return {
            "name": self.name,
            "role": self.role,
            "kind": self.kind,
            "values": list(self.values),
            "unit": self.unit,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Parameter:
        """Return the parameter that `to_dict` described."""
        known = ("name", "role", "kind", "values", "unit")
        if not isinstance(data, Mapping):
            raise InvalidInputError(f"A parameter must be a table of fields, but got {data!r}.")
        for field in data:
            if field not in known:
                raise UnknownNameError("field of a parameter", str(field), known)
        for field in known[:4]:
            if field not in data:
                raise InvalidInputError(
                    f"A parameter must have the field `{field}`, but got {dict(data)!r}."
                )
        return cls(**data)


def _check_choice(field: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInputError(
            f"`{field}` of a parameter must be {' or '.join(choices)}, but got {value!r}."
        )


def _checked_values(name: str, kind: Kind, values: object) -> tuple[float | str, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidInputError(f"`values` of {name!r} must be a list, but got {values!r}.")
    plain = tuple(_checked_value(name, kind, value) for value in values)
    if not plain:
        raise InvalidInputError(f"`values` of {name!r} must not be empty.")
    repeated = [value for value, n in Counter(plain).items() if n > 1]
    if repeated:
        raise InvalidInputError(
            f"`values` of {name!r} must differ from each other, but got {repeated[0]!r} twice."
        )
    return plain


def _checked_value(name: str, kind: Kind, value: object) -> float | str:
    if kind == "categorical":
        if not isinstance(value, str):
            raise InvalidInputError(
                f"`values` of the categorical {name!r} must be texts, but got {value!r}."
            )
        return str(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise InvalidInputError(
            f"`values` of the numeric {name!r} must be finite numbers, but got {value!r}."
        )
    # Plain Python numbers, so that NumPy scalars never reach a file.
    return int(value) if isinstance(value, numbers.Integral) else float(value)
