"""``paceline explain``."""

from __future__ import annotations

import click

from paceline.cli._options import at_option, format_option, parse_at
from paceline.cli._output import print_json


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline explain model.json\n"
    "  paceline explain model.json --at n_devices=8 --output-format json"
)
@click.argument("model", type=click.Path())
@at_option("The point at which shares are given [default: typical values].")
@format_option
def command(model: str, at: tuple[str, ...], output_format: str) -> None:
    """Say what the expression in MODEL means: shares, powers, scaling, what not to trust."""
    from paceline.estimators import load_fit
    from paceline.explainers import explain
    from paceline.reports import show_explanation

    explanation = explain(load_fit(model), at=parse_at(at))
    if output_format == "json":
        print_json({"schema": "paceline/explanation/1", **explanation.to_dict()})
    else:
        click.echo(show_explanation(explanation))
