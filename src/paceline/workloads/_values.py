"""Values of a workload's parameters: which may be given, and which are taken otherwise."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import Parameter

# what a trial says of the run and not of the network: allowed anywhere, and ignored
RUN_NAMES = (
    "workload",
    "executor",
    "n_devices",
    "n_workers",
    "device_batch",
    "global_batch",
    "micro_batch",
)

OPTIMIZERS = ("adam", "sgd")
ACTIVATIONS = ("relu", "tanh", "sigmoid")
LEARNING_RATES = (0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6)


def numeric(name: str, *values: float) -> Parameter:
    """Return an intrinsic parameter with the numbers that studies vary it over."""
    return Parameter(name=name, role="intrinsic", kind="numeric", values=values)


def categorical(name: str, *values: str) -> Parameter:
    """Return an intrinsic parameter with all its levels."""
    return Parameter(name=name, role="intrinsic", kind="categorical", values=values)


def complete(
    parameters: Sequence[Parameter], defaults: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a checked value for every parameter, the default where none is given."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in values:
        if name not in known and name not in RUN_NAMES:
            raise UnknownNameError("parameter", str(name), known)
    return {
        name: _checked(parameter, values.get(name, defaults[name]))
        for name, parameter in known.items()
    }


def _checked(parameter: Parameter, value: object) -> object:
    if parameter.kind == "categorical":
        if value not in parameter.values:
            raise UnknownNameError(parameter.name, str(value), map(str, parameter.values))
        return str(value)
    if parameter.name in ("learning_rate", "dropout"):
        return _checked_real(parameter.name, value)
    return _checked_count(parameter.name, value)


def _checked_count(name: str, value: object) -> int:
    number = _number(value)
    # a column with a gap, or a CSV, gives 5.0 for 5
    if not number.is_integer() or number < 1:
        raise InvalidInputError(f"`{name}` must be a positive whole number, but got {value!r}.")
    return int(number)


def _checked_real(name: str, value: object) -> float:
    number = _number(value)
    if name == "dropout" and not 0 <= number < 1:
        raise InvalidInputError(f"`dropout` must be from 0 to less than 1, but got {value!r}.")
    if name == "learning_rate" and not 0 < number < math.inf:
        raise InvalidInputError(f"`learning_rate` must be positive, but got {value!r}.")
    return number


def _number(value: object) -> float:
    """Return a number, or one that fails every test when it is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    return float(value)
