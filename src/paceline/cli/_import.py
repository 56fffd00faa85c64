"""``paceline import``."""

from __future__ import annotations

from typing import Any

import click

from paceline.cli._options import data_options, read_data
from paceline.errors import InvalidInputError


@click.command(
    name="import",
    epilog="\b\nExamples:\n"
    "  paceline import times.csv -o runs.db --time step_ms --time-unit ms\n"
    "  paceline import runs.db -o runs.parquet",
)
@click.argument("file", type=click.Path())
@click.option(
    "-o", "--output", type=click.Path(), required=True, help="A .db, .csv or .parquet file."
)
@click.option("--append", is_flag=True, help="Add the rows to an existing .db.")
@data_options
def command(file: str, output: str, append: bool, **options: Any) -> None:
    """Turn FILE, a table of measured times, into a dataset that remembers its roles."""
    from paceline.dataset import save_store

    if append and not output.endswith(".db"):
        raise InvalidInputError(f"--append needs a .db file, but got {output!r}.")
    dataset = read_data(file, options)
    if output.endswith(".db"):
        save_store(dataset, output, append=append)
    elif output.endswith(".csv"):
        dataset.to_csv(output)
    elif output.endswith(".parquet"):
        dataset.to_parquet(output)
    else:
        raise InvalidInputError(f"-o must end in .db, .csv or .parquet, but got {output!r}.")
    click.echo(f"{dataset}\nWritten to {output}.")
