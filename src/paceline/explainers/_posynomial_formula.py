"""A posynomial written out: one term per line, level factors in one table."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from paceline.estimators import PosynomialExpression, PosynomialTerm
from paceline.units import format_number, format_seconds

_SAME = 1e-9  # level factors that differ less are one


def write_posynomial(expression: PosynomialExpression, width: int = 78) -> str:
    """Return the expression with its numbers, at most `width` columns wide.

    Examples
    --------
    >>> from paceline.estimators import PosynomialTerm
    >>> terms = (
    ...     PosynomialTerm(coefficient_s=0.002, powers={"batch": 1.0, "depth": 0.5}),
    ...     PosynomialTerm(coefficient_s=0.03, powers={"n_gpus": 1.0}, collective="n_gpus"),
    ... )
    >>> stand_ins = {"batch": 8.0, "depth": 2.0, "n_gpus": 4.0}
    >>> print(write_posynomial(PosynomialExpression(terms=terms, factors={}, stand_ins=stand_ins)))
    t =  2 ms x batch depth^0.5
      + 30 ms x (n_gpus - 1)
    """
    coefficients = [_coefficient(term.coefficient_s) for term in expression.terms]
    column = max(map(len, coefficients))
    lines = []
    for k, (term, text) in enumerate(zip(expression.terms, coefficients, strict=True), 1):
        head = f"{'  +' if k > 1 else 't ='} {text.rjust(column)}"
        parts = _parts(expression, term, k)
        lines.append(_line(head, parts, width))
    sections = ["\n".join(lines), _zeros(expression, width), _levels(expression, width)]
    return "\n\n".join(section for section in sections if section)


def own_levels(expression: PosynomialExpression) -> bool:
    """Return whether some term has level factors of its own."""
    return any(_differs(g) for term in expression.terms for g in term.factors.values())


def level_columns(expression: PosynomialExpression) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return what every level multiplies each term by; one number when all terms share it.

    Parameters whose levels make no difference are left out.
    """
    found = {}
    for name, shared in expression.factors.items():
        own = [term.factors.get(name, {}) for term in expression.terms]
        if not _differs(shared) and not any(map(_differs, own)):
            continue
        groups = own if own_levels(expression) else [{}]
        found[name] = {
            level: tuple(factor * group.get(level, 1.0) for group in groups)
            for level, factor in shared.items()
        }
    return found


def _differs(group: Mapping[str, float]) -> bool:
    return any(abs(factor - 1.0) > _SAME for factor in group.values())


def _coefficient(seconds: float) -> str:
    """Return seconds, or ms and us where that spares an exponent."""
    if 1e-9 <= seconds < 1.0:
        return format_seconds(seconds, 4)
    return f"{format_number(seconds, 4)} s"


def _parts(expression: PosynomialExpression, term: PosynomialTerm, k: int) -> list[str]:
    powers = dict(term.powers)
    parts = []
    if term.collective:
        whole = format_number(powers.get(term.collective, 0.0), 3) == "1"
        if whole:
            del powers[term.collective]
        n = term.collective
        parts = [f"({n} - 1)" if whole else f"(1 - 1/{n})"]
    named = {name: format_number(power, 3) for name, power in powers.items()}
    texts = [n if p == "1" else f"{n}^{p}" for n, p in named.items() if p not in ("0", "-0")]
    return [*texts, *parts, *_level_part(expression, term, k)]


def _level_part(expression: PosynomialExpression, term: PosynomialTerm, k: int) -> list[str]:
    names = [
        name
        for name, group in expression.factors.items()
        if _differs(group) or _differs(term.factors.get(name, {}))
    ]
    return [f"[{name}]" for name in names]


def _line(head: str, parts: list[str], width: int) -> str:
    if not parts:
        return head
    indent = " " * (len(head) + 3)
    return textwrap.fill(
        " ".join(part.replace(" ", "\0") for part in parts),
        width,
        initial_indent=f"{head} x ",
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace("\0", " ")


def _zeros(expression: PosynomialExpression, width: int) -> str:
    lines = zero_sentences(expression)
    return "\n".join(textwrap.fill(line, width, subsequent_indent="  ") for line in lines)


def zero_sentences(expression: PosynomialExpression) -> list[str]:
    """Return what a 0 of every parameter that was measured there does, in words."""
    lines = []
    for name, shared in expression.zero_factors.items():
        factors = [shared * term.zero_factors.get(name, 1.0) for term in expression.terms]
        if max(factors) - min(factors) <= _SAME * max(factors):
            what = f"the time by {format_number(factors[0], 3)}"
        else:
            each = (f"term {k} by {format_number(f, 3)}" for k, f in enumerate(factors, 1))
            what = ", ".join(each)
        stand_in = format_number(expression.stand_ins[name], 3)
        lines.append(f"{name} = 0 counts as {stand_in} and multiplies {what}.")
    return lines


def _levels(expression: PosynomialExpression, width: int) -> str:
    columns = level_columns(expression)
    if not columns:
        return ""
    n = len(expression.terms)
    header = [f"term {k + 1}" for k in range(n)] if own_levels(expression) else ["all terms"]
    rows = [
        (f"[{name}] {level}", [format_number(f, 3) for f in factors])
        for name, group in columns.items()
        for level, factors in group.items()
    ]
    widths = [max(len(title), *(len(row[1][i]) for row in rows)) for i, title in enumerate(header)]
    column = min(max(len(label) for label, _ in rows), width - sum(widths) - 2 * len(widths))
    column = max(column, len("factor of a level"))
    lines = [_row("factor of a level", header, column, widths)]
    lines += [_row(label, cells, column, widths) for label, cells in rows]
    return "\n".join(lines)


def _row(label: str, cells: list[str], column: int, widths: list[int]) -> str:
    label = label if len(label) <= column else f"{label[: column - 3]}..."
    return "  ".join(
        [label.ljust(column), *(c.rjust(w) for c, w in zip(cells, widths, strict=True))]
    )
