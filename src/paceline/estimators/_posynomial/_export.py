"""A posynomial in the languages of others: LaTeX, Python, SymPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from paceline.dataset import level_name
from paceline.errors import MissingDependencyError, UnknownNameError
from paceline.estimators._identifiers import identifiers
from paceline.estimators._latex import latex_cases, latex_name, latex_number, latex_power
from paceline.estimators._posynomial._composed import Beyond, Pair

if TYPE_CHECKING:
    from paceline.estimators._posynomial._expression import PosynomialExpression, PosynomialTerm

_PYTHON_HELPERS = """

def _number(name, value, stand_in):
    if value < 0:
        raise ValueError(f"{name} must not be negative, but is {value}")
    return float(value) if value > 0 else stand_in


def _level(value):
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    whole, _, rest = text.partition(".")
    is_whole = rest and not rest.strip("0") and whole.lstrip("+-").isdigit()
    return whole if is_whole else text
"""


def to_python(expression: PosynomialExpression, name: str = "time_s") -> str:
    """Return the source of a function of all parameters that needs only ``math``."""
    words = identifiers((*expression.names, *(c.name for c in expression.composed)))
    arguments = ", ".join(words[n] for n in expression.names)
    lines = ["import math", _PYTHON_HELPERS, "", f"def {name}({arguments}):"]
    lines += ['    """Return the time in seconds; an unknown level counts as an average one."""']
    lines += [f"    shared = 1.0{_python_zeros(expression.zero_factors, words)}"]
    # before any 0 is replaced by what stands in for it
    lines += [
        f"    term_{k} = 1.0{_python_zeros(term.zero_factors, words)}"
        for k, term in enumerate(expression.terms, 1)
    ]
    lines += [
        f"    {words[n]} = _number({n!r}, {words[n]}, {float(x)!r})"
        for n, x in expression.stand_ins.items()
    ]
    lines += [
        f"    {words[n]} = _level({words[n]})"
        for n in expression.names[len(expression.stand_ins) :]
    ]
    lines += [f"    {words[c.name]} = {c.to_python(words)}" for c in expression.composed]
    lines += _python_factors("shared", useful(expression.factors), words)
    for k, term in enumerate(expression.terms, 1):
        lines += [f"    term_{k} *= {_python_product(term, words)}"]
        lines += _python_factors(f"term_{k}", useful(term.factors), words)
    terms = ", ".join(f"term_{k}" for k in range(1, len(expression.terms) + 1))
    lines += [f"    return shared * math.fsum([{terms}])"]
    return "\n".join(lines) + "\n"


def _python_zeros(zero_factors: Mapping[str, float], words: Mapping[str, str]) -> str:
    return "".join(
        f" * ({float(factor)!r} if {words[name]} == 0 else 1.0)"
        for name, factor in zero_factors.items()
        if factor != 1.0
    )


def _python_factors(
    target: str, factors: Mapping[str, Mapping[str, float]], words: Mapping[str, str]
) -> list[str]:
    lines = []
    for name, group in factors.items():
        known = {level: float(factor) for level, factor in group.items()}
        lines.append(f"    {target} *= {known!r}.get({words[name]}, {average_factor(group)!r})")
    return lines


def _python_product(term: PosynomialTerm, words: Mapping[str, str]) -> str:
    parts = [f"{float(term.coefficient_s)!r}"]
    parts += [f"{words[name]} ** {float(power)!r}" for name, power in term.powers.items()]
    if term.collective:
        parts.append(f"(1 - 1 / max({words[term.collective]}, 1.0))")
    return " * ".join(parts)


def to_latex(expression: PosynomialExpression, digits: int = 4) -> str:
    """Return an ``aligned`` formula, one term per line, with its level factors below."""
    lines = [_latex_term(term, k, digits) for k, term in enumerate(expression.terms, 1)]
    shared = [rf"f_{{{latex_name(name)}}}" for name in useful(expression.factors)]
    shared += [rf"z_{{{latex_name(n)}}}" for n, f in expression.zero_factors.items() if f != 1.0]
    head = r"t &= " + r"\, ".join([*shared, r"\Bigl("] if shared else [""])
    text = head + " \\\\\n  &\\quad + ".join(lines) + (r" \Bigr)" if shared else "")
    return "\\begin{aligned}\n  " + text + _latex_factors(expression, digits) + "\n\\end{aligned}"


def _latex_term(term: PosynomialTerm, k: int, digits: int) -> str:
    parts = [latex_number(term.coefficient_s, digits)]
    parts += [latex_power(n, p, digits) for n, p in term.powers.items()]
    if term.collective:
        parts.append(rf"\left(1 - \frac{{1}}{{{latex_name(term.collective)}}}\right)")
    parts += [rf"f_{{{k},{latex_name(name)}}}" for name in useful(term.factors)]
    parts += [rf"z_{{{k},{latex_name(n)}}}" for n, f in term.zero_factors.items() if f != 1.0]
    return r"\, ".join(parts)


def _latex_factors(expression: PosynomialExpression, digits: int) -> str:
    groups = [("", name, group) for name, group in useful(expression.factors).items()]
    for k, term in enumerate(expression.terms, 1):
        groups += [(f"{k},", name, group) for name, group in useful(term.factors).items()]
    text = ""
    for prefix, name, group in groups:
        text += f" \\\\\n  f_{{{prefix}{latex_name(name)}}} &= "
        text += latex_cases(dict(group), digits)
    text += _latex_zeros("", expression.zero_factors, digits)
    for k, term in enumerate(expression.terms, 1):
        text += _latex_zeros(f"{k},", term.zero_factors, digits)
    return text


def _latex_zeros(prefix: str, zero_factors: Mapping[str, float], digits: int) -> str:
    text = ""
    for name, factor in zero_factors.items():
        if factor == 1.0:
            continue
        word = latex_name(name)
        text += f" \\\\\n  z_{{{prefix}{word}}} &= {latex_number(factor, digits)}"
        text += rf" \text{{ if }} {word} = 0 \text{{, else }} 1"
    return text


def to_sympy(expression: PosynomialExpression, levels: Mapping[str, Any] | None = None) -> Any:
    """Return a SymPy expression of one symbol per number and one 0-or-1 symbol per level.

    Parameters
    ----------
    expression
        The posynomial.
    levels
        Levels to put in. Of the other categorical parameters every level is a symbol such as
        ``gpu=V100``, which is 1 for that level and 0 for all others.

    Raises
    ------
    MissingDependencyError
        SymPy is not installed.
    """
    try:
        import sympy
    except ImportError as error:
        raise MissingDependencyError("`to_sympy`", "SymPy", "symbolic") from error
    chosen = {str(name): level_name(level) for name, level in (levels or {}).items()}
    for name in chosen:
        if name not in expression.categorical:
            raise UnknownNameError("categorical parameter", name, expression.categorical)
    return _Symbols(expression, chosen, sympy).total()


class _Symbols:
    """Builds the SymPy expression, whose module is only known once it is asked for."""

    def __init__(
        self, expression: PosynomialExpression, chosen: Mapping[str, str], sympy: Any
    ) -> None:
        self.expression, self.chosen, self.sympy = expression, chosen, sympy

    def total(self) -> Any:
        shared = self.factors(self.expression.factors) * self.zeros(self.expression.zero_factors)
        return shared * self.sympy.Add(*map(self.term, self.expression.terms))

    def term(self, term: PosynomialTerm) -> Any:
        product = self.number(term.coefficient_s) * self.factors(term.factors)
        product *= self.zeros(term.zero_factors)
        for name, power in term.powers.items():
            product *= self.value(name) ** self.number(power)
        return product * (1 - 1 / self.value(term.collective)) if term.collective else product

    def factors(self, factors: Mapping[str, Mapping[str, float]]) -> Any:
        product = self.sympy.Integer(1)
        for name, group in useful(factors).items():
            average = average_factor(group)
            if name in self.chosen:
                product *= self.number(group.get(self.chosen[name], average))
                continue
            product *= self.number(average)
            for level, factor in group.items():
                product *= self.number(factor / average) ** self.mark(name, level)
        return product

    def mark(self, name: str, level: str) -> Any:
        """Return what is 1 where a parameter has a level and 0 elsewhere."""
        composed = next((c for c in self.expression.composed if c.name == name), None)
        if isinstance(composed, Beyond):
            is_beyond = self.symbol(composed.parameter) > self.number(composed.limit)
            values = (1, 0) if composed.is_beyond(level) else (0, 1)
            return self.sympy.Piecewise((values[0], is_beyond), (values[1], True))
        if isinstance(composed, Pair):
            first, second = composed.split(level)
            return self.mark(composed.first, first) * self.mark(composed.second, second)
        if name in self.chosen:
            return self.sympy.Integer(int(self.chosen[name] == level))
        return self.sympy.Symbol(f"{name}={level}", nonnegative=True)

    def zeros(self, zero_factors: Mapping[str, float]) -> Any:
        product = self.sympy.Integer(1)
        for name, factor in zero_factors.items():
            is_zero = self.sympy.Eq(self.symbol(name), 0)
            product *= self.sympy.Piecewise((self.number(factor), is_zero), (1, True))
        return product

    def symbol(self, name: str) -> Any:
        may_be_zero = name in self.expression.zero_factors
        return self.sympy.Symbol(
            name, nonnegative=True, **({} if may_be_zero else {"zero": False})
        )

    def value(self, name: str) -> Any:
        x = self.symbol(name)
        if name not in self.expression.zero_factors:
            return x
        stand_in = self.number(self.expression.stand_ins[name])
        return self.sympy.Piecewise((stand_in, self.sympy.Eq(x, 0)), (x, True))

    def number(self, value: float) -> Any:
        near = round(float(value))
        return self.sympy.Integer(near) if value == near else self.sympy.Float(float(value))


def to_numpy(expression: PosynomialExpression) -> Callable[..., Any]:
    """Return a function of columns: one array or scalar per parameter, by name."""

    def time_s(columns: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
        given = {**({} if columns is None else dict(columns)), **named}
        missing = [name for name in expression.names if name not in given]
        if missing:
            raise UnknownNameError("column", missing[0], given)
        arrays = np.broadcast_arrays(*(np.asarray(given[name]) for name in expression.names))
        flat = {n: a.ravel() for n, a in zip(expression.names, arrays, strict=True)}
        return expression.evaluate(pd.DataFrame(flat)).reshape(arrays[0].shape)

    time_s.__doc__ = f"Return the time in seconds; columns: {', '.join(expression.names)}."
    return time_s


def average_factor(group: Mapping[str, float]) -> float:
    """Return the geometric mean of the factors of a parameter: what an unseen level has."""
    logs = np.log(list(group.values()))
    return float(np.exp(logs.mean())) if logs.any() else 1.0


def useful(factors: Mapping[str, Mapping[str, float]]) -> dict[str, Mapping[str, float]]:
    """Return the groups of which some level has a factor other than 1."""
    return {
        name: group
        for name, group in factors.items()
        if any(abs(factor - 1.0) > 1e-12 for factor in group.values())
    }
