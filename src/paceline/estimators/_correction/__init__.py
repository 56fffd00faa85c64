"""What a smooth black box adds to an expression, kept as arrays."""

from paceline.estimators._correction._blend import Blend, Reach
from paceline.estimators._correction._kernel import Kernel, Places, places_of
from paceline.estimators._correction._law import Law
from paceline.estimators._correction._members import (
    FORMULA,
    MEMBERS,
    POWER_LAW,
    Residuals,
    fit_member,
    known_to,
    learn,
)
from paceline.estimators._correction._stack import lowerings, spread, stack_weights, trust

__all__ = [
    "FORMULA",
    "MEMBERS",
    "POWER_LAW",
    "Blend",
    "Kernel",
    "Law",
    "Places",
    "Reach",
    "Residuals",
    "fit_member",
    "known_to",
    "learn",
    "lowerings",
    "places_of",
    "spread",
    "stack_weights",
    "trust",
]
