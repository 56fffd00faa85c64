"""``paceline phases``."""

from __future__ import annotations

import click

from paceline.cli._options import at_option, format_option, parse_at
from paceline.cli._output import print_json


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline measure chapter3 -o chapter3.db\n"
    "  paceline phases chapter3.db\n"
    "  paceline phases chapter3.db --at workload=mlp --at device_batch=32"
)
@click.argument("data", type=click.Path())
@at_option("Only trials with this value; may be repeated.")
@format_option
def command(data: str, at: tuple[str, ...], output_format: str) -> None:
    """Say where the steps in DATA, the .db of a campaign, spend their time.

    Phases per network, framework and number of workers, the step and the speedup that the
    equations of chapter 3 predict beside the measured ones, the load imbalance factor with
    where it arises, and the regression of the epoch time.
    """
    from paceline.explainers import explain_phases
    from paceline.measurement import load_phase_runs
    from paceline.reports import show_phase_explanation

    explanation = explain_phases(load_phase_runs(data, at=parse_at(at)))
    if output_format == "json":
        print_json({"schema": "paceline/phases/1", **explanation.to_dict()})
    else:
        click.echo(show_phase_explanation(explanation))
