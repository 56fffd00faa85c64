"""``paceline list``."""

from __future__ import annotations

import click

from paceline.cli._options import format_option
from paceline.cli._output import print_json


@click.command(name="list", epilog="\b\nExample:\n  paceline list forms")
@click.argument("what", type=click.Choice(["forms", "spaces"]))
@format_option
def command(what: str, output_format: str) -> None:
    """List the forms that can be fitted, or the published spaces that are shipped."""
    from paceline.reports import table

    known = _forms() if what == "forms" else _spaces()
    if output_format == "json":
        print_json(known)
    else:
        click.echo(table([what[:-1], "what it is"], [[n, text] for n, text in known.items()], 2))


def _forms() -> dict[str, str]:
    from paceline.estimators import FORMS

    return dict(FORMS)


def _spaces() -> dict[str, str]:
    from paceline.space import list_spaces, load_space

    return {name: str(load_space(name)) for name in list_spaces()}
