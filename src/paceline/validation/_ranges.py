"""The shortest and the longest time that an expression gives over a space."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.estimators import GenericExpression
from paceline.space import Space


def time_range_s(expression: GenericExpression, space: Space) -> tuple[float, float]:
    """Return both extremes of the time over every combination of a space, in seconds.

    Every summand and every factor depends on one parameter, so each finds its own extremes;
    no grid is visited. Values are taken from `space`, which must have every parameter.
    """
    low, high = _bracket_range(expression, space)
    slow, fast = _scaling_range(expression, space)
    # four corners, since a negative bracket is at its least where the scaling is largest
    corners = [bracket * scaling for bracket in (low, high) for scaling in (slow, fast)]
    return min(corners) + expression.constant_s, max(corners) + expression.constant_s


def _bracket_range(expression: GenericExpression, space: Space) -> tuple[float, float]:
    summands = [
        [term.coefficient_s * float(value) ** term.power for value in space[term.name].values]
        for term in expression.terms
    ]
    summands += [
        [group[str(value)] for value in space[name].values]
        for name, group in expression.levels.items()
    ]
    return (
        expression.base_s + sum(min(values) for values in summands),
        expression.base_s + sum(max(values) for values in summands),
    )


def _scaling_range(expression: GenericExpression, space: Space) -> tuple[float, float]:
    low = high = 1.0
    for name, power in expression.powers.items():
        factors = _powers(space[name].values, power)
        low, high = low * min(factors), high * max(factors)
    return low, high


def _powers(values: Iterable[float | str], power: float) -> list[float]:
    return [float(value) ** power for value in values]
