"""The verb `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, overload

import pandas as pd

from paceline.dataset import TimeBasis, counts_all_devices
from paceline.errors import InvalidInputError
from paceline.estimators import FitResult, GenericExpression, PosynomialExpression, Spread
from paceline.explainers._explanation import (
    Explanation,
    LevelsReading,
    ScalingReading,
    TermReading,
)
from paceline.explainers._facts import errors_in_words
from paceline.explainers._formula import write_formula
from paceline.explainers._posynomial import explain_posynomial
from paceline.explainers._posynomial_explanation import PosynomialExplanation
from paceline.explainers._warnings import warnings_of
from paceline.explainers._words import power_in_words, rank_in_words, scaling_verdict
from paceline.units import format_count, format_seconds


@overload
def explain(
    subject: GenericExpression,
    *,
    at: Mapping[str, Any] | None = None,
    basis: TimeBasis | None = None,
    over: tuple[str, str] | None = None,
) -> Explanation: ...


@overload
def explain(
    subject: PosynomialExpression,
    *,
    at: Mapping[str, Any] | None = None,
    basis: TimeBasis | None = None,
    over: tuple[str, str] | None = None,
) -> PosynomialExplanation: ...


@overload
def explain(
    subject: FitResult,
    *,
    at: Mapping[str, Any] | None = None,
    basis: TimeBasis | None = None,
    over: tuple[str, str] | None = None,
) -> Explanation | PosynomialExplanation: ...


def explain(
    subject: FitResult | GenericExpression | PosynomialExpression,
    *,
    at: Mapping[str, Any] | None = None,
    basis: TimeBasis | None = None,
    over: tuple[str, str] | None = None,
) -> Explanation | PosynomialExplanation:
    """Say what an expression means.

    Parameters
    ----------
    subject
        A fit, or a bare expression such as one from a publication.
    at
        The point at which shares are given; missing parameters take their typical measured
        value. A bare generic expression has none, so there `at` must be complete to be used; a
        bare posynomial takes mean values and average levels.
    basis
        What the time is of; None takes the fit's own.
    over
        Two numeric parameters over which the largest term of a posynomial is mapped; None
        takes those that shift the balance between terms most.

    Returns
    -------
    Explanation or PosynomialExplanation
        By the form of the expression.
    """
    if _is_posynomial(subject):
        return explain_posynomial(subject, at=at, basis=basis, over=over)
    if over is not None:
        raise InvalidInputError(
            "A map of the largest term needs a posynomial, but the form is generic. Leave `over` "
            "out, or fit with form='posynomial'."
        )
    assert not isinstance(subject, PosynomialExpression)  # it was explained above
    return _explain_generic(subject, at, basis)


def _is_posynomial(subject: Any) -> TypeGuard[FitResult | PosynomialExpression]:
    expression = subject.estimator.expression_ if isinstance(subject, FitResult) else subject
    return isinstance(expression, PosynomialExpression)


def _explain_generic(
    subject: FitResult | GenericExpression,
    at: Mapping[str, Any] | None,
    basis: TimeBasis | None,
) -> Explanation:
    if not isinstance(subject, FitResult | GenericExpression):
        raise InvalidInputError(
            f"A fit or an expression can be explained, but got {type(subject).__name__}. "
            f"Load one with `load_fit`."
        )
    fit = subject if isinstance(subject, FitResult) else None
    expression = subject.estimator.expression_ if isinstance(subject, FitResult) else subject
    basis = basis or (fit.basis if fit else TimeBasis())
    spreads = fit.stability.spreads if fit and fit.stability else {}
    row, point = _point(fit, expression, at)
    return Explanation(
        formula=write_formula(expression),
        basis=str(basis),
        terms=_read_terms(expression, spreads),
        scaling=_read_scaling(expression, basis, spreads),
        levels=_read_levels(expression, spreads, is_tested=fit is None or bool(spreads)),
        floor_s=expression.constant_s,
        floor_words=_floor_words(expression, spreads),
        shares=dict(fit.shares) if fit else {},
        point=point,
        point_s=None if row is None else float(expression.evaluate(row)[0]),
        point_shares={} if row is None else _shares_at(expression, row),
        warnings=(*_point_warnings(fit, row), *warnings_of(fit)) if fit else (),
        facts=_facts(fit) if fit else (),
    )


def _point(
    fit: FitResult | None, expression: GenericExpression, at: Mapping[str, Any] | None
) -> tuple[pd.DataFrame | None, dict[str, float | str]]:
    if fit is None:
        missing = [name for name in expression.names if at and name not in at]
        if missing:
            raise InvalidInputError(
                f"A point of a bare expression must give every parameter, but "
                f"{', '.join(missing)} is missing."
            )
        return (pd.DataFrame([dict(at)]), dict(at)) if at else (None, {})
    row, _ = fit.measured.complete(at or {})
    return row, {str(name): _plain(row[name].iloc[0]) for name in row}


def _point_warnings(fit: FitResult, row: pd.DataFrame | None) -> list[str]:
    if row is None:
        return []
    outside = fit.measured.outside(row)
    return [
        f"The point lies outside what was measured: {name} {row[name].iloc[0]} "
        f"({fit.measured.describe(name)})."
        for name, distance in outside.items()
        if distance[0] > 0
    ]


def _plain(value: Any) -> float | str:
    return value if isinstance(value, str) else float(value)


def _shares_at(expression: GenericExpression, row: pd.DataFrame) -> dict[str, float]:
    parts = expression.components(row).iloc[0]
    total = float(parts.sum()) or 1.0
    return {str(name): float(value) / total for name, value in parts.items()}


def _read_terms(
    expression: GenericExpression, spreads: Mapping[str, Spread]
) -> tuple[TermReading, ...]:
    readings = []
    for term in expression.terms:
        spread = spreads.get(f"p[{term.name}]")
        low, high = _interval(spread)
        readings.append(
            TermReading(
                name=term.name,
                coefficient_s=term.coefficient_s,
                power=term.power,
                words=_words(term.name, term.power, spread, silent=term.coefficient_s == 0),
                low=low,
                high=high,
            )
        )
    return tuple(readings)


def _words(name: str, power: float, spread: Spread | None, *, silent: bool = False) -> str:
    """Return the power in words, unless the data do not support any."""
    if silent:
        return f"no measurable effect of {name}"
    if spread and spread.problem:
        return f"not determined: the power is {spread.problem}"
    if spread and spread.low < 0 < spread.high:
        return f"no measurable effect of {name}"
    return power_in_words(name, power)


def _read_scaling(
    expression: GenericExpression, basis: TimeBasis, spreads: Mapping[str, Spread]
) -> tuple[ScalingReading, ...]:
    readings = []
    for name, power in expression.powers.items():
        ideal = basis.ideal_device_power if counts_all_devices(name) else None
        spread = spreads.get(f"q[{name}]")
        low, high = _interval(spread)
        readings.append(
            ScalingReading(
                name=name,
                power=power,
                words=_words(name, power, spread),
                ideal=ideal,
                verdict=None if ideal is None else scaling_verdict(power, ideal, low, high),
                low=low,
                high=high,
            )
        )
    return tuple(readings)


def _read_levels(
    expression: GenericExpression, spreads: Mapping[str, Spread], *, is_tested: bool
) -> tuple[LevelsReading, ...]:
    readings = []
    for name, group in expression.canonical().levels.items():
        ranked = tuple(sorted(group.items(), key=lambda item: (-item[1], item[0])))
        margins = {level: _margin(spreads, f"level[{name}={level}]") for level in group}
        words = rank_in_words(ranked, margins if is_tested else None)
        readings.append(LevelsReading(name=name, ranked=ranked, words=words))
    return tuple(readings)


def _margin(spreads: Mapping[str, Spread], name: str) -> float:
    spread = spreads.get(name)
    if spread is None:
        return 0.0
    return float("inf") if spread.problem else (spread.high - spread.low) / 2


def _interval(spread: Spread | None) -> tuple[float | None, float | None]:
    return (None, None) if spread is None or spread.problem else (spread.low, spread.high)


def _floor_words(expression: GenericExpression, spreads: Mapping[str, Spread]) -> str:
    if expression.constant_s <= 0:
        return "No floor: the fitted constant C is 0."
    falling = [name for name, q in expression.powers.items() if q < 0]
    floor = format_seconds(expression.constant_s)
    if not falling:
        return f"A part of {floor} does not scale."
    what = f"value of {' and '.join(falling)}"
    if all(counts_all_devices(name) for name in falling):
        what = "number of devices"
    spread = spreads.get("C")
    doubt = "" if spread is None or spread.is_identified else " (C is not determined well)"
    return f"No {what} gets below {floor}{doubt}."


def _facts(fit: FitResult) -> tuple[str, ...]:
    model = fit.estimator
    n_constants = model.columns_.n_constants
    constants = format_count(n_constants, "independent constant")
    facts = [f"{fit.form} form, {fit.n_rows} rows, {constants}"]
    penalty = "no penalty" if model.penalty == "none" else f"{model.penalty}, {model.strength:g}"
    facts.append(f"solver {model.solver}, {model.cost} error, {penalty}, {model.units} units")
    return (*facts, *errors_in_words(fit))
