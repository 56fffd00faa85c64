"""How many bytes a number, its gradient and its optimizer's state take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.errors import UnknownNameError

_BYTES: Mapping[str, int] = {
    "float64": 8,
    "float32": 4,
    "tf32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8": 2,  # weights and activations are kept in sixteen bits and cast for products
}

# numbers of state per parameter
_STATE: Mapping[str, int] = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}

_TEMPORARY = ("adam", "adamw")  # the root of the second moment

OPTIMIZERS = tuple(_STATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Bytes by number.

    Parameters
    ----------
    weight
        Of a weight, a gradient or an activation.
    state
        Of the optimizer's state of one parameter: in full precision, with a full copy of the
        weight beside it where that is kept in half (ZeRO, arXiv 1910.02054, section 3.1).
    update
        Of the optimizer's temporary of one parameter; only Adam makes any.
    """

    weight: int
    state: int
    update: int = 0

    @property
    def scale(self) -> float:
        """Bytes of an activation by those of a number in a layer graph."""
        return self.weight / 4


def numbers_of(precision: str, optimizer: str) -> Numbers:
    """Return bytes by number for a precision and an optimizer."""
    if precision not in _BYTES:
        raise UnknownNameError("precision", precision, _BYTES)
    if optimizer not in _STATE:
        raise UnknownNameError("optimizer", optimizer, _STATE)
    size = _BYTES[precision]
    full = max(size, 4)
    copy = full if size < full else 0
    temporary = full if optimizer in _TEMPORARY else 0
    return Numbers(weight=size, state=_STATE[optimizer] * full + copy, update=temporary)
