"""An explanation of a posynomial as text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Any

from paceline.explainers import DominanceMap, DoublingReading, PosynomialExplanation
from paceline.reports._table import table
from paceline.units import format_number, format_percent, format_seconds

_WIDTH = 78
_MAX_DOUBLINGS = 8
_FLAT = 0.005  # a power that nobody notices
_NAME = 22  # beside six columns of numbers


def show_posynomial(explanation: PosynomialExplanation) -> str:
    """Return the explanation as sections of text."""
    sections = [
        explanation.formula,
        _bullets("Fit", explanation.facts),
        _terms(explanation),
        _doublings(explanation),
        _devices(explanation),
        _regimes(explanation),
        _map(explanation),
        _levels(explanation),
        _bullets("Formula and correction", _correction(explanation)),
        _front(explanation),
        _bullets("Do not rely on", explanation.warnings),
    ]
    return "\n\n".join(section for section in sections if section)


def _terms(explanation: PosynomialExplanation) -> str:
    whose = "" if explanation.correction is None else "of the formula alone "
    lines = [
        f"Where the time goes ({format_seconds(explanation.point_s)} {whose}at the point below)"
    ]
    for term in explanation.terms:
        mean = "" if term.mean_share is None else f"{format_percent(term.mean_share)} on average, "
        shares = f"{mean}{format_percent(term.point_share)} at the point"
        lines.append(_wrapped(f"{term.name}: {term.label}; {shares}", "  ", "      "))
        lines.append(_wrapped(term.words, "      ", "      "))
    point = ", ".join(f"{n} {_value(v)}" for n, v in explanation.point.items())
    return "\n".join([*lines, _wrapped(f"point: {point}", "  ", "    ")])


def _doublings(explanation: PosynomialExplanation) -> str:
    if not explanation.doublings:
        return ""
    several = len(explanation.terms) > 1
    header = ["doubling", "time", "power"]
    header += [t.name for t in explanation.terms] if several else []
    shown = explanation.doublings[:_MAX_DOUBLINGS]
    rows = [_doubling(reading, several) for reading in shown]
    title = "When one parameter doubles at the point, the time is multiplied by"
    lines = [title, _indent(table(header, rows)), "  power: local, of the time as a whole"]
    if any(reading.extrapolates for reading in shown):
        lines[-1] += "; *: beyond the measured range"
    return "\n".join(lines)


def _doubling(reading: DoublingReading, several: bool) -> list[str]:
    mark = " *" if reading.extrapolates else ""
    cells = [shorten(reading.name, _NAME) + mark, format_number(reading.factor, 3)]
    cells.append(format_number(reading.elasticity, 2))
    if several:
        cells += ["new" if f is None else format_number(f, 3) for f in reading.term_factors]
    return cells


def shorten(text: str, width: int) -> str:
    """Return the text, its end cut off when it is too long."""
    return text if len(text) <= width else f"{text[: width - 3]}..."


def _devices(explanation: PosynomialExplanation) -> str:
    what = "the time" if explanation.correction is None else "the formula's time"
    lines = []
    for d in explanation.devices:
        power = format_number(d.power, 2)
        how = f"goes like {d.name}^{power}" if abs(d.power) >= _FLAT else "does not change"
        text = f"from {_value(d.low)} to {_value(d.high)} {d.name} {what} {how}"
        if d.verdict is not None:
            text += f": {d.verdict} (ideal {format_number(d.ideal or 0.0)})"
        lines.append(_wrapped(text, "  ", "      "))
    return "\n".join([f"How it scales ({explanation.basis})", *lines]) if lines else ""


def _regimes(explanation: PosynomialExplanation) -> str:
    labels = {term.name: f"{term.name} ({term.label})" for term in explanation.terms}
    lines = [
        _wrapped(
            f"{r.name}: below {format_number(r.value, 3)} {labels[r.below]} is the largest, "
            f"above it {labels[r.above]}",
            "  ",
            "      ",
        )
        for r in explanation.regimes
    ]
    if lines:
        return "\n".join(["Where the regime changes (all else as at the point)", *lines])
    if len(explanation.terms) < 2 or explanation.dominance is None:
        return ""
    largest = max(explanation.terms, key=lambda term: term.point_share)
    text = f"Along no single parameter: {labels[largest.name]} stays the largest."
    return "Where the regime changes (all else as at the point)\n" + _wrapped(text, "  ", "    ")


def _map(explanation: PosynomialExplanation) -> str:
    grid = explanation.dominance
    if grid is None:
        return ""
    used = {k for line in grid.terms for k in line}
    title = f"Largest term over {grid.x_name} (across) and {grid.y_name} (down)"
    if len(used) == 1:
        return _wrapped(f"{title}: term {used.pop()} everywhere", "", "  ")
    return f"{title}\n{_indent(_grid(grid))}"


def _grid(grid: DominanceMap) -> str:
    header = ["", *(format_number(x, 2) for x in grid.x)]
    rows = [
        [format_number(y, 2), *map(str, line)] for y, line in zip(grid.y, grid.terms, strict=True)
    ]
    return table(header, rows)


def _levels(explanation: PosynomialExplanation) -> str:
    lines = [_wrapped(f"{r.name}: {r.words}", "  ", "      ") for r in explanation.levels]
    return "\n".join(["Levels at the point", *lines]) if lines else ""


def _correction(explanation: PosynomialExplanation) -> tuple[str, ...]:
    return () if explanation.correction is None else explanation.correction.words


def _front(explanation: PosynomialExplanation) -> str:
    front = explanation.front
    if front is None:
        return ""
    header = ["", "terms", "constants", "held-out error"]
    rows = []
    for i, m in enumerate(front["members"]):
        mark = "->" if i == front["chosen"] else ""
        rows.append([mark, str(m["n_terms"]), str(m["n_constants"]), _error(m)])
    lines = ["Other formulas that were tried", _indent(table(header, rows))]
    return "\n".join([*lines, _wrapped(_why(front), "  ", "  ")])


def _why(front: Mapping[str, Any]) -> str:
    if front["n_asked"] is not None:
        return f"-> was asked for, with --terms {front['n_asked']}."
    if front["members"][front["chosen"]]["error"] is None:
        return "There are too few rows to compare formulas; --terms K gives one with K terms."
    return (
        "-> was chosen: the simplest within one standard error of the best that is allowed. "
        "Pick another with --terms K."
    )


def _error(member: dict[str, float | None]) -> str:
    error, spread = member["error"], member["standard_error"]
    if error is None:
        return "unknown"
    return format_percent(error) + (f" ± {format_percent(spread)}" if spread is not None else "")


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else format_number(value, 6)


def _bullets(title: str, lines: tuple[str, ...]) -> str:
    if not lines:
        return ""
    return "\n".join([title, *(_wrapped(line, "  - ", "    ") for line in lines)])


def _wrapped(text: str, first: str, rest: str) -> str:
    """Return wrapped text in which a number stays with its unit, a name with its value."""
    kept = re.sub(r"(?<=\d) (?=%|[mun]?s\b)| (?==)|(?<==) |(?<=\bterm) (?=\d)", "\0", text)
    return textwrap.fill(
        kept, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ).replace("\0", " ")


def _indent(text: str) -> str:
    return textwrap.indent(text, "  ")
