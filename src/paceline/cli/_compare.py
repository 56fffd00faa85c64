"""``paceline compare``."""

from __future__ import annotations

from typing import Any

import click

from paceline.cli._options import (
    data_options,
    feature_options,
    format_option,
    read_data,
    say_notes,
    seed_option,
    settle_features,
)
from paceline.cli._output import check_writable, print_json, progress_bar
from paceline.errors import InvalidInputError


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline compare times.csv\n"
    "  paceline compare times.csv --group model --folds 10 -o comparison.csv"
)
@click.argument("data", type=click.Path())
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option("--holdout", type=float, help="Hold out this share once, instead of folds.")
@click.option("-o", "--output", type=click.Path(), help="Write the table as .csv or .json.")
@seed_option
@data_options()
@feature_options
@format_option
def command(
    data: str,
    folds: int,
    holdout: float | None,
    output: str | None,
    output_format: str,
    **options: Any,
) -> None:
    """Fit every form and every black box to DATA on the same folds, one table."""
    from paceline.estimators import add_features, compare
    from paceline.reports import show_comparison

    if output and not output.endswith((".csv", ".json")):
        raise InvalidInputError(f"-o must end in .csv or .json, but got {output!r}.")
    check_writable(output, data)
    given = read_data(data, options)
    dataset = add_features(given, **settle_features(options))
    say_notes(dataset.notes[len(given.notes) :])
    with progress_bar("Comparing") as progress:
        comparison = compare(
            dataset,
            group=options["group"],
            n_folds=folds,
            holdout=holdout,
            random_state=options["random_state"],
            progress=progress,
        )
    if output:
        _write(comparison, output)
    if output_format == "json":
        print_json(comparison.to_dict())
    else:
        click.echo(show_comparison(comparison))


def _write(comparison: Any, output: str) -> None:
    import json

    from paceline.dataset import write_text

    if output.endswith(".json"):
        write_text(output, json.dumps(comparison.to_dict(), indent=2) + "\n")
    else:
        write_text(output, comparison.to_frame().to_csv(index=False))
