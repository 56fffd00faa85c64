"""``paceline calibrate``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from paceline.cli._options import format_option
from paceline.cli._output import check_writable, print_json, progress_bar
from paceline.errors import InvalidInputError


@click.command(
    epilog="\b\nExamples:\n  paceline calibrate -o here.toml\n"
    "  paceline calibrate -o here.toml --workers 1,2,4"
)
@click.option(
    "-o", "--output", required=True, metavar="FILE", help="Where to write the cluster file."
)
@click.option(
    "--workers",
    default="1,2,3",
    show_default=True,
    metavar="LIST",
    help="Numbers of workers to measure with.",
)
@click.option(
    "--backend",
    type=click.Choice(["gloo", "nccl"]),
    default="gloo",
    show_default=True,
    help="What workers exchange by: gloo on CPUs, nccl on GPUs.",
)
@format_option
def command(output: str, workers: str, backend: str, output_format: str) -> None:
    """Measure this machine's rates and links: a cluster file.

    Takes two to three minutes on a machine that does nothing else.
    """
    from paceline.clusters import save_cluster
    from paceline.measurement import calibrate

    check_writable(output)
    counts = _counts(workers)
    with progress_bar("Calibrating") as show:
        found = calibrate(workers=counts, backend=backend, name=Path(output).stem, progress=show)
    save_cluster(found.cluster, output)
    if output_format == "json":
        print_json(_plain(found, output))
    else:
        click.echo(f"{found}\nWritten to {output}.")
        click.echo(
            f"Next: paceline oracle lenet5 --cluster {output} --devices 1,2 --device-batch 64"
        )


def _counts(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"--workers must be whole numbers with commas between them, but got {text!r}."
        ) from None


def _plain(found: Any, output: str) -> dict[str, Any]:
    return {"file": output, **asdict(found)}
