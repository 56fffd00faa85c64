"""Expressions as MathML, which browsers typeset themselves: nothing to load, nothing to run."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from paceline.estimators import GenericExpression, PosynomialExpression, PosynomialTerm
from paceline.units import format_number, format_seconds

_SAME = 1e-9  # level factors that differ less are one


def typeset(expression: GenericExpression | PosynomialExpression) -> str:
    """Return an expression as a MathML element; every name in it is escaped.

    Examples
    --------
    >>> from paceline.estimators import PosynomialTerm
    >>> term = PosynomialTerm(coefficient_s=0.002, powers={"a<b": 0.5})
    >>> text = typeset(PosynomialExpression(terms=(term,), factors={}, stand_ins={"a<b": 1.0}))
    >>> "<msup><mi>a&lt;b</mi><mn>0.5</mn></msup>" in text
    True
    """
    if isinstance(expression, PosynomialExpression):
        lines = [_row(_posynomial_term(expression, term)) for term in expression.terms]
    else:
        lines = _generic_lines(expression)
    rows = "".join(
        f"<mtr><mtd>{'<mi>t</mi>' if i == 0 else ''}</mtd>"
        f"<mtd>{_operator('=') if i == 0 else ''}</mtd>"
        f"<mtd>{_operator('+') if i > 0 else ''}</mtd><mtd>{line}</mtd></mtr>"
        for i, line in enumerate(lines)
    )
    return f'<math display="block"><mtable class="formula">{rows}</mtable></math>'


def level_table(
    expression: GenericExpression | PosynomialExpression,
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None:
    """Return header and rows of what every level costs or multiplies by; None without levels."""
    if isinstance(expression, GenericExpression):
        rows = [
            (name, level, f"+ {_readable(cost)}")
            for name, group in expression.levels.items()
            for level, cost in group.items()
        ]
        return (("parameter", "level", "adds"), tuple(rows)) if rows else None
    return _factor_table(expression)


def _factor_table(
    expression: PosynomialExpression,
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]] | None:
    own = any(_differs(g) for term in expression.terms for g in term.factors.values())
    header = [f"term {k}" for k in range(1, len(expression.terms) + 1)] if own else ["all terms"]
    rows = []
    for name in _acting(expression):
        for level, shared in expression.factors[name].items():
            groups = [term.factors.get(name, {}) for term in expression.terms] if own else [{}]
            cells = [f"× {format_number(shared * g.get(level, 1.0), 3)}" for g in groups]
            rows.append((name, level, *cells))
    return (("parameter", "level", *header), tuple(rows)) if rows else None


def _acting(expression: PosynomialExpression) -> list[str]:
    """Return the categorical parameters whose levels make a difference."""
    return [
        name
        for name, shared in expression.factors.items()
        if _differs(shared) or any(_differs(t.factors.get(name, {})) for t in expression.terms)
    ]


def _differs(group: Mapping[str, float]) -> bool:
    return any(abs(factor - 1.0) > _SAME for factor in group.values())


def _posynomial_term(expression: PosynomialExpression, term: PosynomialTerm) -> list[str]:
    powers, parts = dict(term.powers), [_seconds(term.coefficient_s)]
    collective = []
    if term.collective:
        n = _name(term.collective)
        whole = format_number(powers.get(term.collective, 0.0), 3) == "1"
        if whole:
            del powers[term.collective]
        inner = f"{n}{_operator('−')}<mn>1</mn>"
        fraction = f"<mn>1</mn>{_operator('−')}<mfrac><mn>1</mn>{n}</mfrac>"
        collective = [_brackets(inner if whole else fraction)]
    parts += [_power(name, power) for name, power in powers.items() if _shown(power)]
    levels = [
        f"<mrow>{_operator('[')}{_name(name)}{_operator(']')}</mrow>"
        for name, shared in expression.factors.items()
        if _differs(shared) or _differs(term.factors.get(name, {}))
    ]
    zeros = [
        f"<msub><mi>z</mi>{_name(name)}</msub>"
        for name, factor in expression.zero_factors.items()
        if abs(factor * term.zero_factors.get(name, 1.0) - 1.0) > _SAME
    ]
    return [*parts, *collective, *levels, *zeros]


def _generic_lines(expression: GenericExpression) -> list[str]:
    inside = [
        _row([_seconds(t.coefficient_s), *([_power(t.name, t.power)] if _shown(t.power) else [])])
        for t in expression.terms
        if t.coefficient_s
    ]
    inside += [
        f"<mrow>{_operator('[')}{_name(n)}{_operator(']')}</mrow>" for n in expression.levels
    ]
    if expression.base_s or not inside:
        inside.append(_seconds(expression.base_s))
    powers = [_power(name, q) for name, q in expression.powers.items() if _shown(q)]
    if powers:
        inside[0] = f"<mo stretchy='false'>(</mo>{inside[0]}"
        inside[-1] += f"<mo stretchy='false'>)</mo>{_operator('×')}{_row(powers)}"
    floor = [_seconds(expression.constant_s)] if expression.constant_s else []
    return [*inside, *floor]


def _shown(power: float) -> bool:
    return format_number(power, 3) not in ("0", "-0")


def _row(factors: Sequence[str]) -> str:
    dot = '<mo lspace="0.15em" rspace="0.15em">·</mo>'
    return f"<mrow>{dot.join(factors)}</mrow>"


def _power(name: str, power: float) -> str:
    text = format_number(power, 3)
    if text == "1":
        return _name(name)
    return f"<msup>{_name(name)}{_number(text)}</msup>"


def _number(text: str) -> str:
    """Return a number; a negative one with a true minus, a power of ten written out."""
    mantissa, _, exponent = text.partition("e")
    shown = f"<mn>{mantissa.replace('-', '−')}</mn>"
    if not exponent:
        return shown
    ten = f"<msup><mn>10</mn><mn>{str(int(exponent)).replace('-', '−')}</mn></msup>"
    return f"<mrow>{shown}{_operator('×')}{ten}</mrow>"


def _seconds(value: float) -> str:
    """Return a time with its unit; in ms and smaller where that spares an exponent."""
    number, unit = _readable(value).split(" ")
    return f"<mrow>{_number(number)}<mspace width='0.2em'/><mtext>{unit}</mtext></mrow>"


def _readable(value: float) -> str:
    text = format_seconds(value, 4) if 1e-9 <= value < 1 else f"{format_number(value, 4)} s"
    return text.replace(" us", " µs")


def _brackets(inner: str) -> str:
    return f"<mrow>{_operator('(')}{inner}{_operator(')')}</mrow>"


def _name(name: str) -> str:
    # one letter would be slanted, and a parameter is a word
    upright = ' mathvariant="normal"' if len(name) == 1 else ""
    return f"<mi{upright}>{html.escape(name)}</mi>"


def _operator(sign: str) -> str:
    return f"<mo>{sign}</mo>"
