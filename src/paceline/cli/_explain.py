"""``paceline explain``."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from paceline.cli._options import Names, at_option, format_option, parse_at
from paceline.cli._output import print_json
from paceline.errors import InvalidInputError
from paceline.units import format_percent


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline explain model.json\n"
    "  paceline explain model.json --at n_devices=8 --output-format json\n"
    "  paceline explain model.json --export python > formula.py"
)
@click.argument("model", type=click.Path())
@at_option("The point at which shares are given [default: typical values].")
@click.option("--over", type=Names(), help="Two parameters: which term is the largest where.")
@click.option(
    "--export",
    type=click.Choice(["latex", "python", "json"]),
    help="Print only the expression, in this language.",
)
@format_option
def command(
    model: str, at: tuple[str, ...], over: list[str] | None, export: str | None, output_format: str
) -> None:
    """Say what the expression in MODEL means: shares, powers, scaling, what not to trust."""
    from paceline.estimators import load_fit
    from paceline.explainers import explain
    from paceline.reports import show_explanation

    fit = load_fit(model)
    if export is not None:
        _export(fit, export)
        return
    explanation = explain(fit, at=parse_at(at), over=_pair(over))
    if output_format == "json":
        print_json({"schema": "paceline/explanation/1", **explanation.to_dict()})
    else:
        click.echo(show_explanation(explanation))


def _pair(names: list[str] | None) -> tuple[str, str] | None:
    if names is None:
        return None
    if len(names) != 2:
        raise InvalidInputError(
            f"--over must name two parameters, but got {len(names)}. Try: --over a,b"
        )
    return names[0], names[1]


_COMMENTS = {"latex": "% ", "python": "# "}


def _export(fit: Any, language: str) -> None:
    expression, notes = fit.estimator.expression_, _notes(fit)
    if language == "json":
        print_json({**expression.to_dict(), **({"notes": notes} if notes else {})})
        return
    mark = _COMMENTS[language]
    for note in notes:
        click.echo(textwrap.fill(note, 97, initial_indent=mark, subsequent_indent=mark))
    click.echo(getattr(expression, f"to_{language}")().rstrip("\n"))


def _notes(fit: Any) -> list[str]:
    """Return what the formula leaves out, and what its derived columns are."""
    notes = [_left_out(fit)] if fit.form == "corrected" else []
    if fit.features is not None:
        used = [n for n in fit.features.names if n in fit.estimator.expression_.names]
        notes += [f"{name}: {fit.features.describe(name)}" for name in used]
    return notes


def _left_out(fit: Any) -> str:
    alone = fit.estimator.formula_error_
    errors = ""
    if alone is not None and fit.scores is not None:
        both = format_percent(fit.scores.mape)
        errors = f", and is off by {format_percent(alone)} on rows not seen instead of {both}"
    return f"The formula of a corrected fit: it leaves the correction out{errors}."
