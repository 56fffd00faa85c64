"""The generic expression written out."""

from __future__ import annotations

from paceline.estimators import GenericExpression
from paceline.units import format_number


def write_formula(expression: GenericExpression, width: int = 78) -> str:
    """Return the expression with its numbers, wrapped to `width` columns."""
    summands = [
        _term(t.coefficient_s, t.name, t.power) for t in expression.terms if t.coefficient_s
    ]
    summands += [f"[{name}]" for name in expression.levels]
    if expression.base_s:
        summands.append(f"{format_number(expression.base_s, 4)}")
    factors = [f"{name}^{format_number(q, 4)}" for name, q in expression.powers.items()]
    brackets = _wrap("t = ( ", summands or ["0"], " + ", width) + " )"
    if factors:
        brackets += "\n" + _wrap("    x ", factors, " x ", width)
    floor = f"\n    + {format_number(expression.constant_s, 4)}"
    return brackets + floor + "        (seconds)" + _level_tables(expression)


def _term(coefficient_s: float, name: str, power: float) -> str:
    if power == 0:
        return format_number(coefficient_s, 4)
    return f"{format_number(coefficient_s, 4)} {name}^{format_number(power, 4)}"


def _wrap(head: str, parts: list[str], glue: str, width: int) -> str:
    lines, line = [], head + parts[0]
    for part in parts[1:]:
        if len(line) + len(glue) + len(part) > width:
            lines.append(line + (glue.rstrip() if glue == ", " else ""))
            line = " " * (len(head) - len(glue)) + (glue if glue != ", " else "  ") + part
        else:
            line += glue + part
    return "\n".join([*lines, line])


def _level_tables(expression: GenericExpression) -> str:
    text = ""
    for name, group in expression.levels.items():
        costs = [f"{level} {format_number(v, 4)}" for level, v in group.items()]
        text += "\n" + _wrap(f"    [{name}] = ", costs, ", ", 78)
    return text
