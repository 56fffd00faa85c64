"""Which term of a posynomial is the largest where, and what a parameter does at a point."""

from __future__ import annotations

from typing import Any

import numpy as np

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators import Beyond, PosynomialExpression
from paceline.explainers._point import Point, Ranges, in_parameters
from paceline.explainers._posynomial_explanation import (
    DominanceMap,
    DoublingReading,
    RegimeChange,
)

_STEP = 1e-4  # of the logarithm, for a derivative
_NO_EFFECT = 0.01  # an elasticity that nobody notices
_N_SCAN = 400
_N_ACROSS, _N_DOWN = 9, 6
_NOTHING = 1e-200  # a term this small is not there


def double(expression: PosynomialExpression, point: Point) -> tuple[DoublingReading, ...]:
    """Return what doubling each numeric parameter does at the point, widest effect first."""
    numbers = [n for n in point.replaced if n in point.ranges]
    readings = [_double(expression, point, n) for n in (*expression.stand_ins, *numbers)]
    found = [r for r in readings if r is not None]
    return tuple(sorted(found, key=lambda r: -abs(np.log(r.factor))))


def _double(expression: PosynomialExpression, point: Point, name: str) -> DoublingReading | None:
    value = float(point.columns[name].iloc[0])
    rows = point.try_vary({name: [value, 2 * value]})
    if value <= 0 or rows is None:
        return None  # twice nothing is nothing, and not everything can be built
    here, far = np.exp(expression.log_terms(rows))
    factor = float(far.sum() / here.sum())
    step = -_STEP if value in limits_of(expression, name) else _STEP  # not beyond a limit
    near = point.try_vary({name: [value * np.exp(step)]})
    if near is None:  # of what is counted there is no small change
        elasticity = float(np.log2(factor))
    else:
        close = np.exp(expression.log_terms(near))[0]
        elasticity = float(np.log(close.sum() / here.sum()) / step)
    if abs(elasticity) < _NO_EFFECT and abs(factor - 1) < _NO_EFFECT:
        return None
    return DoublingReading(
        name=name,
        value=value,
        elasticity=elasticity,
        factor=factor,
        term_factors=tuple(_ratio(a, b) for a, b in zip(here, far, strict=True)),
        extrapolates=name in point.ranges and 2 * value > point.ranges[name][1],
    )


def _ratio(before: float, after: float) -> float | None:
    return float(after / before) if before > _NOTHING else None


def regime_changes(expression: PosynomialExpression, point: Point) -> tuple[RegimeChange, ...]:
    """Return where the largest term becomes another one along each parameter."""
    changes = []
    for name in point.ranges:
        grid = _log_grid(_positive(expression, point.ranges, name), _N_SCAN)
        rows = point.try_vary({name: grid})
        if rows is None:
            continue  # between counts nothing can be built
        logs = expression.log_terms(rows)
        largest = logs.argmax(axis=1)
        for i in np.flatnonzero(largest[1:] != largest[:-1]):
            old, new = int(largest[i]), int(largest[i + 1])
            gaps = logs[i : i + 2, new] - logs[i : i + 2, old]
            # between two neighbours on a fine grid the gap is nearly straight in the logarithm
            place = -gaps[0] / (gaps[1] - gaps[0])
            value = np.exp(np.interp(place, [0, 1], np.log(grid[i : i + 2])))
            jumps = [x for x in limits_of(expression, name) if grid[i] <= x < grid[i + 1]]
            changes.append(
                RegimeChange(
                    name=name,
                    value=float(jumps[0] if jumps else value),
                    below=f"term {old + 1}",
                    above=f"term {new + 1}",
                )
            )
    return tuple(changes)


def limits_of(expression: PosynomialExpression, name: str) -> list[float]:
    """Return where the time jumps along a parameter."""
    return [c.limit for c in expression.composed if isinstance(c, Beyond) and c.parameter == name]


def map_dominance(
    expression: PosynomialExpression, point: Point, over: tuple[str, str] | None
) -> DominanceMap | None:
    """Return the largest term over two parameters; None when there is nothing to map.

    Two that were asked for must make networks that can be built; of others it is no fault.
    """
    ranges = point.ranges
    names = _check_over(over, ranges) if over else _widest(expression, point)
    if len(names) < 2 or len(expression.terms) < 2:
        return None
    x_name, y_name = names
    is_built = point.features is not None
    x = _readable(_log_grid(_positive(expression, ranges, x_name), _N_ACROSS), is_built)
    y = _readable(_log_grid(_positive(expression, ranges, y_name), _N_DOWN), is_built)
    across, down = (a.ravel() for a in np.meshgrid(x, y))
    values = {x_name: across, y_name: down}
    rows = point.vary(values) if over else point.try_vary(values)
    if rows is None:
        return None
    largest = expression.log_terms(rows).argmax(axis=1)
    places = largest.reshape(len(y), len(x)) + 1
    return DominanceMap(
        x_name=x_name,
        y_name=y_name,
        x=tuple(map(float, x)),
        y=tuple(map(float, y)),
        terms=tuple(tuple(map(int, line)) for line in places),
    )


def _check_over(over: tuple[str, str], ranges: Ranges) -> tuple[str, ...]:
    if len(over) != 2 or over[0] == over[1]:
        raise InvalidInputError(
            f"A map is over two different parameters, but got {', '.join(over) or 'none'}."
        )
    for name in over:
        if name not in ranges:
            raise UnknownNameError("numeric parameter", name, ranges)
    return tuple(over)


def _widest(expression: PosynomialExpression, point: Point) -> tuple[str, ...]:
    """Return the two that shift the balance between terms most, parameters before the derived."""
    ranges, shifts = point.ranges, {}
    expression = in_parameters(expression, point.features)
    for name in ranges:
        powers = [term.powers.get(name, 0.0) for term in expression.terms]
        collective = {term.collective == name for term in expression.terms}
        low, high = _positive(expression, ranges, name)
        spread = max(powers) - min(powers) + (0.5 if len(collective) > 1 else 0.0)
        shifts[name] = spread * float(np.log(high / low))
    moving = [name for name in shifts if shifts[name] > 0]
    ranked = sorted(moving, key=lambda n: (n not in point.row, -shifts[n]))
    return tuple(ranked[:2])


def _positive(expression: PosynomialExpression, ranges: Ranges, name: str) -> tuple[float, float]:
    """Return the measured range without 0, which has no logarithm."""
    low, high = ranges[name]
    stand_in = expression.stand_ins.get(name, high)
    low = low if low > 0 else min(stand_in, high) / 2
    return (low, high) if high > low > 0 else (stand_in, stand_in)


def _log_grid(limits: tuple[float, float], n: int) -> Any:
    low, high = limits
    return np.geomspace(low, high, n) if high > low else np.array([low])


def _readable(values: Any, is_built: bool) -> Any:
    """Return the values with two digits, the ends as they are.

    Between whole numbers they are whole where there are enough, and where networks are built
    from them: there is no part of a device or of a filter.
    """
    rounded = [float(f"{value:.1e}") for value in values]
    rounded[0], rounded[-1] = float(values[0]), float(values[-1])
    is_whole = all(float(values[i]).is_integer() for i in (0, -1))
    if is_whole and (is_built or values[-1] >= len(values)):
        rounded = [float(round(value)) for value in rounded]
    return np.unique(np.clip(rounded, values[0], values[-1]))
