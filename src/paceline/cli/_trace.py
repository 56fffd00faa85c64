"""``paceline trace``."""

from __future__ import annotations

import statistics
import sys
from typing import Any

import click

from paceline.cli._options import at_option, format_option, parse_at
from paceline.cli._output import print_json
from paceline.errors import InvalidInputError


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog="\b\nExamples:\n"
    "  paceline trace -o runs.db --at n_devices=1 --at global_batch=64 -- python train.py\n"
    "  paceline trace --steps 50 -- torchrun --nproc-per-node 2 train.py",
)
@click.option("-o", "--output", type=click.Path(), help="Add the measurement to this .db.")
@at_option("A parameter of this run, to be kept beside its time.")
@click.option("--steps", type=click.IntRange(3), help="Stop after so many steps.")
@click.option("--warmup", type=click.IntRange(0), default=5, show_default=True)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds.")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND")
@format_option
def command(
    output: str | None,
    at: tuple[str, ...],
    steps: int | None,
    warmup: int,
    timeout: float | None,
    words: tuple[str, ...],
    output_format: str,
) -> None:
    """Measure the training steps of COMMAND from outside; the script is not edited."""
    from paceline.executors import trace

    point = parse_at(at)
    if output and not point:
        raise InvalidInputError(
            "A measurement needs parameters to be stored, but got none. Try: --at n_devices=1"
        )
    record = trace(
        list(words),
        timeout_s=timeout,
        n_warmup=warmup,
        stop_after=None if steps is None else steps + warmup,
        echo=sys.stderr.buffer,
    )
    if output:
        _store(record, point, output)
    _show(record, output, output_format)


def _store(record: Any, point: dict[str, str], output: str) -> None:
    from dataclasses import replace
    from pathlib import Path

    import pandas as pd

    from paceline.dataset import Dataset, save_store

    row = {name: _number(value) for name, value in point.items()}
    row["time_s"] = statistics.median(record.step_s)
    dataset = replace(
        Dataset.from_frame(pd.DataFrame([row]), time_per="step"),
        times_s=(tuple(record.step_s),),
        provenance={"command": list(record.command), "source": record.source},
    )
    save_store(dataset, output, append=Path(output).exists())


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def _show(record: Any, output: str | None, output_format: str) -> None:
    from paceline.units import format_seconds

    figures = {
        "median_s": statistics.median(record.step_s),
        "min_s": min(record.step_s),
        "n_steps": len(record.step_s),
        "n_dropped": record.n_dropped,
        "n_processes": max(len(record.by_rank), 1),
    }
    if output_format == "json":
        print_json({"schema": "paceline/trace/1", **figures, "step_s": list(record.step_s)})
        return
    click.echo(
        f"Step: median {format_seconds(figures['median_s'])}, minimum "
        f"{format_seconds(figures['min_s'])} over {figures['n_steps']} steps of "
        f"{figures['n_processes']} processes ({figures['n_dropped']} dropped as warm-up)."
    )
    if output:
        click.echo(f"Written to {output}.")
