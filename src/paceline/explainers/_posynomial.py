"""What a posynomial means, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import TimeBasis, counts_all_devices
from paceline.errors import UnknownNameError
from paceline.estimators import Beyond, FitResult, PosynomialExpression
from paceline.explainers._facts import errors_in_words
from paceline.explainers._point import Point, in_parameters
from paceline.explainers._posynomial_explanation import (
    CorrectionReading,
    DeviceReading,
    LevelFactorsReading,
    PosynomialExplanation,
    PosynomialTermReading,
)
from paceline.explainers._posynomial_formula import level_columns, write_posynomial
from paceline.explainers._posynomial_names import name_terms, term_in_words
from paceline.explainers._posynomial_regimes import (
    double,
    map_dominance,
    regime_changes,
)
from paceline.explainers._words import scaling_verdict
from paceline.units import format_count, format_number, format_percent, format_seconds

_AVERAGE = "(average)"  # no level has this name, so its factor is 1
_BAD_FIT = 0.2
_HARDLY = 1e-9  # beyond a limit
_NO_LEVEL_EFFECT = 0.01


def explain_posynomial(
    subject: FitResult | PosynomialExpression,
    *,
    at: Mapping[str, Any] | None,
    basis: TimeBasis | None,
    over: tuple[str, str] | None,
) -> PosynomialExplanation:
    """Say what a posynomial means; `paceline.explainers.explain` has the parameters."""
    fit = subject if isinstance(subject, FitResult) else None
    expression = subject.estimator.expression_ if isinstance(subject, FitResult) else subject
    basis = basis or (fit.basis if fit else TimeBasis())
    point = Point.of(fit, at or {}) if fit else _bare_point(expression, at or {})
    columns = point.columns
    return PosynomialExplanation(
        formula=write_posynomial(expression),
        basis=str(basis),
        facts=_facts(fit, expression),
        terms=_read_terms(expression, basis, fit, point),
        point={str(name): _plain(columns[name].iloc[0]) for name in columns},
        point_s=float(expression.evaluate(columns)[0]),
        doublings=double(expression, point),
        devices=_read_devices(expression, basis, point),
        levels=_read_levels(expression, fit, point),
        regimes=regime_changes(expression, point),
        dominance=map_dominance(expression, point, over),
        front=_read_front(fit),
        correction=_read_correction(fit, point),
        warnings=_warnings(fit, point),
    )


def _read_front(fit: FitResult | None) -> dict[str, Any] | None:
    if fit is None or not hasattr(fit.estimator, "front_"):
        return None
    return {**fit.estimator.front_.to_dict(), "n_asked": fit.estimator.n_terms}


def _bare_point(expression: PosynomialExpression, at: Mapping[str, Any]) -> Point:
    """Return the point, with mean values and average levels where none is given."""
    for name in at:
        if name not in expression.names:
            raise UnknownNameError("parameter", name, expression.names)
    numbers = {n: float(at.get(n, x)) for n, x in expression.stand_ins.items()}
    levels = {n: str(at.get(n, _AVERAGE)) for n in expression.names if n not in numbers}
    return Point(row=pd.DataFrame([{**numbers, **levels}]), ranges={})


def _plain(value: Any) -> float | str:
    return value if isinstance(value, str) else float(value)


def _read_terms(
    expression: PosynomialExpression, basis: TimeBasis, fit: FitResult | None, point: Point
) -> tuple[PosynomialTermReading, ...]:
    parts = expression.components(point.columns).iloc[0]
    labels = name_terms(in_parameters(expression, point.features), basis, point.ranges)
    return tuple(
        PosynomialTermReading(
            name=str(name),
            label=label,
            words=term_in_words(term),
            mean_share=None if fit is None else fit.shares.get(str(name)),
            point_share=float(parts[name] / parts.sum()),
        )
        for name, label, term in zip(parts.index, labels, expression.terms, strict=True)
    )


def _read_devices(
    expression: PosynomialExpression, basis: TimeBasis, point: Point
) -> tuple[DeviceReading, ...]:
    readings = []
    for name in expression.stand_ins:
        if not counts_all_devices(name):
            continue
        value = max(float(point.row[name].iloc[0]), 1.0)
        low, high = point.ranges.get(name, (value, 2 * value))
        if not high > low > 0:
            continue
        first, last = np.log(expression.evaluate(point.vary({name: [low, high]})))
        power = float((last - first) / np.log(high / low))
        ideal = basis.ideal_device_power
        verdict = None if ideal is None else scaling_verdict(power, ideal)
        readings.append(
            DeviceReading(name=name, low=low, high=high, power=power, ideal=ideal, verdict=verdict)
        )
    return tuple(readings)


def _read_levels(
    expression: PosynomialExpression, fit: FitResult | None, point: Point
) -> tuple[LevelFactorsReading, ...]:
    readings = []
    known = fit.measured.levels if fit else {}
    matter = set(level_columns(expression))
    matter |= {name for c in expression.composed if c.name in matter for name in c.parents}
    groups = {
        n: list(g) for n, g in expression.factors.items() if n in matter & set(expression.names)
    }
    groups |= {name: list(known[name]) for name in point.replaced if name in known}
    for name, group in groups.items():
        rows = point.try_vary({name: group})
        if rows is None:
            continue
        logs = np.log(expression.evaluate(rows))
        factors = np.exp(logs - logs.mean())
        ranked = tuple(
            sorted(
                ((level, float(f)) for level, f in zip(group, factors, strict=True)),
                key=lambda pair: (-pair[1], pair[0]),
            )
        )
        readings.append(LevelFactorsReading(name=name, ranked=ranked, words=_level_words(ranked)))
    readings += _read_jumps(expression, point)
    return tuple(sorted(readings, key=lambda r: -r.ranked[0][1] / r.ranked[-1][1]))


def _read_jumps(expression: PosynomialExpression, point: Point) -> list[LevelFactorsReading]:
    """Return what happens where a number of devices passes a limit, all else being equal."""
    readings = []
    for beyond in (c for c in expression.composed if isinstance(c, Beyond)):
        rows = point.vary({beyond.parameter: [beyond.limit, beyond.limit * (1 + _HARDLY)]})
        before, after = expression.evaluate(rows)
        root = float(np.sqrt(after / before))
        ranked = sorted([("yes", root), ("no", 1 / root)], key=lambda level: -level[1])
        change = f"{format_percent(abs(after / before - 1))} {'up' if after > before else 'down'}"
        words = f"the time jumps {change} there"
        readings.append(LevelFactorsReading(name=beyond.name, ranked=tuple(ranked), words=words))
    return readings


def _level_words(ranked: tuple[tuple[str, float], ...]) -> str:
    (dear, most), (cheap, least) = ranked[0], ranked[-1]
    ratio = most / least
    if ratio - 1 < _NO_LEVEL_EFFECT:
        return "hardly matters at this point"
    how = f"{format_percent(ratio - 1)} more than"
    if ratio >= 2:
        how = f"{format_number(ratio, 3)} times the time of"
    if len(ranked) == 2:
        return f"{dear} takes {how} {cheap}"
    return f"{dear} is the dearest: {how} {cheap}, the cheapest"


def _facts(fit: FitResult | None, expression: PosynomialExpression) -> tuple[str, ...]:
    n_terms, n_constants = len(expression.terms), expression.n_constants
    constants = format_count(n_constants, "independent constant")
    size = f"{format_count(n_terms, 'term')}, {constants}"
    if fit is None:
        return (size,)
    facts = [f"{fit.form} form, {fit.n_rows} rows, {size}", *_dropped(fit), *_derived(fit)]
    return (*facts, *errors_in_words(fit))


def _dropped(fit: FitResult) -> list[str]:
    """Say where fewer terms are left than were asked for."""
    asked, n_terms = fit.estimator.n_terms, len(fit.estimator.expression_.terms)
    if asked is None or asked <= n_terms:
        return []
    return [f"{asked} terms were asked for; those that never mattered were dropped"]


def _derived(fit: FitResult) -> list[str]:
    """Say what the derived columns are, and how large they were."""
    if fit.features is None:
        return []
    ends = {n: [format_number(end, 3) for end in pair] for n, pair in fit.features.columns.items()}
    return [
        f"{name}: {fit.features.describe(name)}, {low} to {high}, from {fit.features}"
        for name, (low, high) in ends.items()
    ]


def _read_correction(fit: FitResult | None, point: Point) -> CorrectionReading | None:
    if fit is None or fit.form != "corrected":
        return None
    share = float(fit.estimator.formula_share_)
    alone = getattr(fit.estimator, "formula_error_", None)
    both = None if fit.scores is None else fit.scores.mape
    words = [
        f"Within the measured range {format_percent(share)} of the prediction is the formula "
        f"and {format_percent(1 - share)} black boxes that correct a power law and the most "
        f"accurate posynomial (weights of the logarithms)."
    ]
    if alone is not None and both is not None:
        gained = max(1 - both / alone, 0.0) if alone > 0 else 0.0
        words.append(
            f"On rows not seen the formula alone is off by {format_percent(alone)}, with the "
            f"correction by {format_percent(both)}: the correction removes "
            f"{format_percent(gained)} of the error."
        )
    bare_s = float(fit.estimator.expression_.evaluate(point.columns)[0])
    point_s = float(fit.predict(point.row)["predicted_s"].iloc[0])
    words.append(
        f"At the point the formula says {format_seconds(bare_s)}, with the correction it is "
        f"{format_seconds(point_s)}."
    )
    words.append(
        "The correction fades outside the measured range, where the formula is all there is. "
        "Shares, regimes and doublings here are the formula's."
    )
    return CorrectionReading(
        formula_share=share, formula_error=alone, corrected_error=both, words=tuple(words)
    )


def _warnings(fit: FitResult | None, point: Point) -> tuple[str, ...]:
    if fit is None:
        return ()
    warnings = [
        f"The point lies outside what was measured: {name} {point.row[name].iloc[0]} "
        f"({fit.measured.describe(name)})."
        for name, distance in fit.measured.outside(point.row).items()
        if distance[0] > 0
    ]
    warnings += [
        f"The levels of {name} at the point were not measured together."
        for name, is_far in fit.estimator.expression_.unmeasured(point.columns).items()
        if is_far[0]
    ]
    if fit.scores is None:
        warnings.append("Too few rows to hold some out: the error is unknown.")
    elif fit.scores.mape > max(_BAD_FIT, 2 * (fit.noise_floor or 0.0)):
        warnings.append(
            f"The {fit.form} form is off by {format_percent(fit.scores.mape)} on rows it has "
            f"not seen: powers and regimes are rough. `paceline compare` shows what would do "
            f"better."
        )
    return tuple(warnings)
