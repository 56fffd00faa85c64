"""``paceline validate``."""

from __future__ import annotations

import textwrap

import click

from paceline.cli._options import format_option
from paceline.cli._output import print_json, progress_bar


@click.command(epilog="\b\nExample:\n  paceline validate --output-format json")
@format_option
def command(output_format: str) -> None:
    """Replay published numbers; exit 1 when one is outside its tolerance."""
    from paceline.validation import validate

    with progress_bar("Validating") as progress:
        result = validate(progress=progress)
    if output_format == "json":
        print_json(result.to_dict())
    else:
        for check in result.checks:
            click.echo(textwrap.fill(str(check), 80, subsequent_indent="    "))
        click.echo(f"\n{len(result.checks) - result.n_failed} passed, {result.n_failed} failed")
    raise SystemExit(0 if result.passed else 1)
