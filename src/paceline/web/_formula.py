"""An expression as parts that a page can set: numbers, names and powers, never as markup."""

from __future__ import annotations

from typing import Any

from paceline.estimators import GenericExpression, PosynomialExpression
from paceline.units import format_number, format_seconds


def typeset(expression: GenericExpression | PosynomialExpression) -> list[dict[str, Any]]:
    """Return the summands of an expression; what stands around a bracket is in ``factors``."""
    if isinstance(expression, PosynomialExpression):
        return [_posynomial_term(expression, term) for term in expression.terms]
    return _generic_terms(expression)


def _posynomial_term(expression: PosynomialExpression, term: Any) -> dict[str, Any]:
    powers = [_power(name, power) for name, power in term.powers.items() if power]
    if term.collective:
        powers.append({"collective": term.collective})
    groups = [
        {"levels": name}
        for name in dict.fromkeys((*expression.factors, *term.factors))
        if _matters(expression.factors.get(name)) or _matters(term.factors.get(name))
    ]
    return {"coefficient": format_seconds(term.coefficient_s), "factors": [*powers, *groups]}


def _generic_terms(expression: GenericExpression) -> list[dict[str, Any]]:
    around = [_power(name, power) for name, power in expression.powers.items() if power]
    terms = [
        {
            "coefficient": format_seconds(term.coefficient_s),
            "factors": [_power(term.name, term.power), *around],
        }
        for term in expression.terms
        if term.coefficient_s > 0
    ]
    terms += [
        {"coefficient": "", "factors": [{"levels": name}, *around]}
        for name, costs in expression.levels.items()
        if any(cost > 0 for cost in costs.values())
    ]
    if expression.base_s > 0:
        terms.append({"coefficient": format_seconds(expression.base_s), "factors": around})
    if expression.constant_s > 0 or not terms:
        terms.append({"coefficient": format_seconds(expression.constant_s), "factors": []})
    return terms


def _power(name: str, power: float) -> dict[str, str]:
    return {"name": name, "power": "" if power == 1 else format_number(power, 3)}


def _matters(group: Any) -> bool:
    return bool(group) and any(abs(factor - 1.0) > 1e-3 for factor in group.values())
