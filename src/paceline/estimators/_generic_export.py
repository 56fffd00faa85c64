"""The generic expression in the languages of others: LaTeX and Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from paceline.estimators._identifiers import identifiers
from paceline.estimators._latex import latex_cases, latex_name, latex_number, latex_power

if TYPE_CHECKING:
    from paceline.estimators._expression import GenericExpression

_PYTHON_HELPERS = """
def _power(name, value, power):
    if value < 0:
        raise ValueError(f"{name} must not be negative, but is {value}")
    return float(value) ** power if value > 0 else 0.0


def _scale(name, value, power):
    if not value > 0:
        raise ValueError(f"{name} must be positive, but is {value}")
    return float(value) ** power


def _level(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)

"""


def to_python(expression: GenericExpression, name: str = "time_s") -> str:
    """Return the source of a function of all parameters that imports nothing."""
    words = identifiers(expression.names)
    lines = [_PYTHON_HELPERS.strip("\n"), "", ""]
    lines += [f"def {name}({', '.join(words.values())}):"]
    lines += ['    """Return the time in seconds; an unknown level counts as an average one."""']
    # no parameter becomes a word that begins with an underscore
    lines += [f"    _sum = {float(expression.base_s)!r}"]
    lines += [
        f"    _sum += {float(t.coefficient_s)!r} * "
        f"_power({t.name!r}, {words[t.name]}, {float(t.power)!r})"
        for t in expression.terms
    ]
    for group, costs in expression.levels.items():
        known = {level: float(cost) for level, cost in costs.items()}
        average = float(np.mean(list(known.values())))
        lines += [f"    _sum += {known!r}.get(_level({words[group]}), {average!r})"]
    lines += [
        f"    _sum *= _scale({n!r}, {words[n]}, {float(q)!r})"
        for n, q in expression.powers.items()
    ]
    lines += [f"    return _sum + {float(expression.constant_s)!r}"]
    return "\n".join(lines) + "\n"


def to_latex(expression: GenericExpression, digits: int = 4) -> str:
    """Return an ``aligned`` formula with the costs of the levels below."""
    summands = [
        rf"{latex_number(t.coefficient_s, digits)}\, {latex_power(t.name, t.power, digits)}"
        for t in expression.terms
        if t.coefficient_s
    ]
    summands += [rf"\ell_{{{latex_name(name)}}}" for name in expression.levels]
    if expression.base_s or not summands:
        summands.append(latex_number(expression.base_s, digits))
    powers = [latex_power(n, q, digits) for n, q in expression.powers.items() if q]
    text = r"t &= \Bigl(" + " \\\\\n  &\\quad + ".join(summands) + r"\Bigr)"
    text += "".join(rf"\, {power}" for power in powers)
    if expression.constant_s:
        text += f" + {latex_number(expression.constant_s, digits)}"
    for name, costs in expression.levels.items():
        cases = latex_cases(dict(costs), digits)
        text += f" \\\\\n  \\ell_{{{latex_name(name)}}} &= {cases}"
    return "\\begin{aligned}\n  " + text + "\n\\end{aligned}"
