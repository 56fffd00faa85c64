"""The verb `explain`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from paceline.dataset import TimeBasis, counts_all_devices
from paceline.estimators import FitResult, GenericExpression, Spread
from paceline.explainers._explanation import (
    Explanation,
    LevelsReading,
    ScalingReading,
    TermReading,
)
from paceline.explainers._formula import write_formula
from paceline.explainers._warnings import warnings_of
from paceline.explainers._words import power_in_words, rank_in_words, scaling_verdict
from paceline.units import format_number, format_percent, format_seconds


def explain(
    subject: FitResult | GenericExpression,
    *,
    at: Mapping[str, Any] | None = None,
    basis: TimeBasis | None = None,
) -> Explanation:
    """Say what an expression means.

    Parameters
    ----------
    subject
        A fit, or a bare expression such as one from a publication.
    at
        The point at which shares are given; missing parameters take their typical measured
        value. A bare expression has none, so there `at` must be complete to be used.
    basis
        What the time is of; None takes the fit's own.

    Returns
    -------
    Explanation
    """
    fit = subject if isinstance(subject, FitResult) else None
    expression = fit.estimator.expression_ if fit else subject
    assert isinstance(expression, GenericExpression)  # the one other type that is allowed
    basis = basis or (fit.basis if fit else TimeBasis())
    spreads = fit.stability.spreads if fit and fit.stability else {}
    row, point = _point(fit, at)
    return Explanation(
        formula=write_formula(expression),
        basis=str(basis),
        terms=_read_terms(expression, spreads),
        scaling=_read_scaling(expression, basis, spreads),
        levels=_read_levels(expression, spreads),
        floor_s=expression.constant_s,
        floor_words=_floor_words(expression),
        shares=dict(fit.shares) if fit else {},
        point=point,
        point_s=None if row is None else float(expression.evaluate(row)[0]),
        point_shares={} if row is None else _shares_at(expression, row),
        warnings=warnings_of(fit) if fit else (),
        facts=_facts(fit) if fit else (),
    )


def _point(
    fit: FitResult | None, at: Mapping[str, Any] | None
) -> tuple[pd.DataFrame | None, dict[str, float | str]]:
    if fit is None:
        return (pd.DataFrame([dict(at)]), dict(at)) if at else (None, {})
    row, _ = fit.measured.complete(at or {})
    return row, {str(name): _plain(row[name].iloc[0]) for name in row}


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
        low, high = _interval(spreads, f"p[{term.name}]")
        silent = term.coefficient_s == 0 or (
            low is not None and high is not None and low < 0 < high
        )
        words = f"no measurable effect of {term.name}" if silent else None
        readings.append(
            TermReading(
                name=term.name,
                coefficient_s=term.coefficient_s,
                power=term.power,
                words=words or power_in_words(term.name, term.power),
                low=low,
                high=high,
            )
        )
    return tuple(readings)


def _read_scaling(
    expression: GenericExpression, basis: TimeBasis, spreads: Mapping[str, Spread]
) -> tuple[ScalingReading, ...]:
    readings = []
    for name, power in expression.powers.items():
        ideal = basis.ideal_device_power if counts_all_devices(name) else None
        low, high = _interval(spreads, f"q[{name}]")
        readings.append(
            ScalingReading(
                name=name,
                power=power,
                words=power_in_words(name, power),
                ideal=ideal,
                verdict=None if ideal is None else scaling_verdict(power, ideal),
                low=low,
                high=high,
            )
        )
    return tuple(readings)


def _read_levels(
    expression: GenericExpression, spreads: Mapping[str, Spread]
) -> tuple[LevelsReading, ...]:
    readings = []
    for name, group in expression.canonical().levels.items():
        ranked = tuple(sorted(group.items(), key=lambda item: (-item[1], item[0])))
        margins = {level: _margin(spreads, f"level[{name}={level}]") for level in group}
        words = rank_in_words(ranked, margins)
        readings.append(LevelsReading(name=name, ranked=ranked, words=words))
    return tuple(readings)


def _margin(spreads: Mapping[str, Spread], name: str) -> float:
    spread = spreads.get(name)
    return (spread.high - spread.low) / 2 if spread else 0.0


def _interval(spreads: Mapping[str, Spread], name: str) -> tuple[float | None, float | None]:
    spread = spreads.get(name)
    return (spread.low, spread.high) if spread else (None, None)


def _floor_words(expression: GenericExpression) -> str:
    if expression.constant_s <= 0:
        return "No floor: the fitted constant C is 0."
    falling = [name for name, q in expression.powers.items() if q < 0]
    what = f"value of {' and '.join(falling)}" if falling else "scaling"
    devices = [name for name in falling if counts_all_devices(name)]
    if devices == falling and devices:
        what = "number of devices"
    return f"No {what} gets below {format_seconds(expression.constant_s)}."


def _facts(fit: FitResult) -> tuple[str, ...]:
    model = fit.estimator
    n_constants = model.columns_.n_constants
    facts = [f"{fit.form} form, {fit.n_rows} rows, {n_constants} independent constants"]
    penalty = "no penalty" if model.penalty == "none" else f"{model.penalty}, {model.strength:g}"
    facts.append(f"solver {model.solver}, {model.cost} error, {penalty}, {model.units} units")
    if fit.scores is not None:
        facts.append(
            f"held-out error: mean {format_percent(fit.scores.mape)}, "
            f"median {format_percent(fit.scores.median_ape)}, "
            f"R2 {format_number(fit.scores.r2, 4)} ({fit.covers})"
        )
    return tuple(facts)
