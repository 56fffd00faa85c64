"""An explanation as text."""

from __future__ import annotations

import textwrap

from paceline.explainers import (
    Explanation,
    PosynomialExplanation,
    ScalingReading,
    TermReading,
)
from paceline.reports._posynomial import show_posynomial
from paceline.reports._table import table
from paceline.units import format_number, format_percent, format_seconds

_WIDTH = 78


def show_explanation(explanation: Explanation | PosynomialExplanation) -> str:
    """Return an explanation as sections of text."""
    if isinstance(explanation, PosynomialExplanation):
        return show_posynomial(explanation)
    sections = [
        explanation.formula,
        _bullets("Fit", explanation.facts),
        _terms(explanation),
        _scaling(explanation),
        _levels(explanation),
        _shares(explanation),
        _bullets("Do not rely on", explanation.warnings),
    ]
    return "\n\n".join(section for section in sections if section)


def _terms(explanation: Explanation) -> str:
    rows = [(term.name, _power(term), term.words) for term in explanation.terms]
    return "\n".join(["What the job costs", *_readings(rows)]) if rows else ""


def _scaling(explanation: Explanation) -> str:
    rows = [(s.name, _power(s), _judged(s)) for s in explanation.scaling]
    title = f"How it scales ({explanation.basis})" if rows else "What does not scale"
    return "\n".join([title, *_readings(rows), _indent(explanation.floor_words)])


def _readings(rows: list[tuple[str, str, str]]) -> list[str]:
    """Return one wrapped line per parameter: its name, its power, what that means."""
    name_width = max((len(name) for name, _, _ in rows), default=0)
    power_width = max((len(power) for _, power, _ in rows), default=0)
    lines = []
    for name, power, words in rows:
        head = f"  {name:{name_width}}  {power:{power_width}}  "
        indent = " " * len(head) if len(head) < _WIDTH // 2 else "      "
        lines.append(_wrapped(words, head, indent))
    return lines


def _judged(reading: ScalingReading) -> str:
    if reading.verdict is None:
        return reading.words
    return f"{reading.words}; {reading.verdict} (ideal {format_number(reading.ideal or 0.0)})"


def _power(reading: TermReading | ScalingReading) -> str:
    power = format_number(reading.power)
    if reading.low is None or reading.high is None:
        return power
    return f"{power} ± {format_number((reading.high - reading.low) / 2, 2)}"


def _levels(explanation: Explanation) -> str:
    if not explanation.levels:
        return ""
    lines = ["Levels, dearest first (seconds above the cheapest, before scaling)"]
    for reading in explanation.levels:
        costs = ", ".join(f"{level} +{format_number(cost)}" for level, cost in reading.ranked)
        lines.append(_wrapped(f"{reading.name}: {reading.words}  ({costs})", "  ", "      "))
    return "\n".join(lines)


def _shares(explanation: Explanation) -> str:
    named = explanation.point_shares or explanation.shares
    names = [n for n in named if named[n] > 0 or explanation.shares.get(n, 0.0) > 0]
    if not names:
        return ""
    header = ["summand", "mean share", "at the point"]
    rows = [
        [_summand(n), _share(explanation.shares, n), _share(explanation.point_shares, n)]
        for n in sorted(names, key=lambda n: -explanation.point_shares.get(n, 0.0))
    ]
    title = "Where the time goes"
    if explanation.point_s is not None:
        title += f" ({format_seconds(explanation.point_s)} at the point below)"
    point = ", ".join(f"{n} {_value(v)}" for n, v in explanation.point.items())
    return f"{title}\n{_indent(table(header, rows))}\n" + _wrapped(f"point: {point}", "  ", "    ")


def _summand(name: str) -> str:
    return {"C": "C (floor)"}.get(name, name)


def _share(shares: object, name: str) -> str:
    value = shares.get(name) if isinstance(shares, dict) else None
    return "" if value is None else format_percent(value)


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else format_number(value, 6)


def _bullets(title: str, lines: tuple[str, ...]) -> str:
    if not lines:
        return ""
    return "\n".join([title, *(_wrapped(line, "  - ", "    ") for line in lines)])


def _wrapped(text: str, first: str, rest: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=rest)


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
