"""``paceline explain``."""

from __future__ import annotations

from typing import Any

import click

from paceline.cli._options import Names, at_option, format_option, parse_at
from paceline.cli._output import print_json
from paceline.errors import InvalidInputError


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
        _export(fit.estimator.expression_, export)
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


def _export(expression: Any, language: str) -> None:
    if language == "json":
        print_json(expression.to_dict())
        return
    write = getattr(expression, f"to_{language}", None)
    if write is None:
        raise InvalidInputError(
            f"--export {language} needs a posynomial, but the model is of the generic form. Try "
            f"--export json, or fit with --form posynomial."
        )
    click.echo(write().rstrip("\n"))
