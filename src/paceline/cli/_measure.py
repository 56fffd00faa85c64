"""``paceline measure``."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from paceline.cli._options import format_option
from paceline.cli._output import print_json, progress_bar


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline measure demo -o runs.db\n"
    "  paceline measure my-study.toml -o runs.db --dry-run\n"
    "  paceline measure chapter4 -o lenet5.db --reduced\n"
    "  paceline measure chapter4 -o jax.db --reduced --executor jax --trials 150\n"
    "  paceline measure my-study.toml -o runs.db --module net.py:Net"
)
@click.argument("study")
@click.option("-o", "--output", type=click.Path(), required=True, help="The store, a .db file.")
@click.option("--reduced", is_flag=True, help="The study at its reduced size.")
@click.option("--executor", help="Who runs it, instead of those of the study.")
@click.option("--trials", type=click.IntRange(min=1), help="Trials, instead of the study's.")
@click.option("--module", metavar="FILE:NAME", help="Your own network instead of a workload.")
@click.option("--dry-run", is_flag=True, help="Say how long it would take, and stop.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True)
@click.option("--address", help="Of the Ray cluster [default: one on this machine].")
@format_option
def command(study: str, output: str, output_format: str, **options: Any) -> None:
    """Run the campaign of STUDY (a TOML file, or a name of `paceline list studies`).

    The same command again goes on where it stopped; Ctrl-C stops it cleanly.
    """
    from paceline.measurement import load_study

    plan = load_study(study)
    plan = plan.with_module(options["module"]) if options["module"] else plan
    plan = plan.reduced() if options["reduced"] else plan
    plan = _changed(plan, options["executor"], options["trials"])
    if options["dry_run"]:
        _dry_run(plan, output, output_format)
        return
    dataset = measure_with_progress(plan, output, options["engine"], options["address"])
    _show(dataset, output, output_format)


def _changed(study: Any, executor: str | None, n_trials: int | None) -> Any:
    changes: dict[str, Any] = {}
    if executor is not None:
        changes["executors"] = (executor,)
    if n_trials is not None:
        changes["n_trials"] = n_trials
    return replace(study, **changes)


def measure_with_progress(
    study: Any, output: str, engine: str = "local", address: str | None = None
) -> Any:
    """Measure a study under a progress bar; return its dataset."""
    from paceline.measurement import Progress, measure

    with progress_bar("Measuring") as show:

        def follow(progress: Progress) -> None:
            show(progress.runs_done, progress.runs_total, str(progress))

        return measure(study, output, engine=engine, address=address, progress=follow)


def _dry_run(study: Any, output: str, output_format: str) -> None:
    from paceline.measurement import dry_run

    forecast = dry_run(study, output)
    if output_format == "json":
        print_json(asdict(forecast))
    else:
        click.echo(str(forecast))


def _show(dataset: Any, output: str, output_format: str) -> None:
    from paceline.measurement import noise_floor
    from paceline.units import format_percent

    floor = noise_floor(output)
    if output_format == "json":
        print_json({"n_rows": dataset.n_rows, "noise_floor": floor, "store": output})
        return
    click.echo(f"{dataset.n_rows} trials measured; {dataset.basis}. Written to {output}.")
    if floor is not None:
        click.echo(f"Noise floor (trials repeated later): {format_percent(floor)}.")
    click.echo(f"Next: paceline fit {output} -o model.json")
