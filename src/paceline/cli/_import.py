"""``paceline import``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click

from paceline.cli._options import data_options, format_option, read_data
from paceline.cli._output import check_writable, print_json
from paceline.errors import InvalidInputError

_SUFFIXES = (".db", ".csv", ".parquet", ".extrap", ".jsonl")


@click.command(
    name="import",
    epilog="\b\nExamples:\n"
    "  paceline import times.csv -o runs.db --time step_ms --time-unit ms\n"
    "  paceline import runs.db -o runs.parquet\n"
    "  paceline import extrap.txt -o runs.db --time-per step",
)
@click.argument("file", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    required=True,
    help="A .db, .csv, .parquet; .extrap, .jsonl.",
)
@click.option("--append", is_flag=True, help="Add the rows to an existing .db.")
@data_options()
@format_option
def command(file: str, output: str, append: bool, output_format: str, **options: Any) -> None:
    """Turn FILE, a table of measured times, into a dataset that remembers its roles."""
    from paceline.dataset import save_store, write_extra_p

    if append and not output.endswith(".db"):
        raise InvalidInputError(f"--append needs a .db file, but got {output!r}.")
    if not output.endswith(_SUFFIXES):
        raise InvalidInputError(f"-o must end in {', '.join(_SUFFIXES)}, but got {output!r}.")
    if not append:
        check_writable(output, file)
    if append and Path(output).exists():
        _take_roles(output, options)
    dataset = read_data(file, options, keep_constant=append)
    if output.endswith(".db"):
        save_store(dataset, output, append=append)
    elif output.endswith(".csv"):
        dataset.to_csv(output)
    elif output.endswith((".extrap", ".jsonl")):
        write_extra_p(dataset, output)
    else:
        dataset.to_parquet(output)
    if output_format == "json":
        print_json({"n_rows": dataset.n_rows, "roles": dict(dataset.roles), "store": output})
    else:
        click.echo(f"{textwrap.fill(str(dataset), 80)}\nWritten to {output}.")


def _take_roles(store: str, options: dict[str, Any]) -> None:
    """Let the roles of a store stand where none are given: rows to append must agree."""
    from paceline.dataset import read_store

    if options["intrinsic"] is None and options["extrinsic"] is None:
        known = read_store(store)
        options["intrinsic"], options["extrinsic"] = known.intrinsic, known.extrinsic
        options["categorical"] = options["categorical"] or known.categorical
        options["time_per"] = options["time_per"] or known.basis.time_per
