"""``paceline run``."""

from __future__ import annotations

from typing import Any

import click

from paceline.cli._options import format_option
from paceline.cli._output import check_writable, print_json
from paceline.errors import InvalidInputError
from paceline.units import format_count

_KINDS = ("idx", "cifar10", "nifti")


@click.command(
    epilog="\b\nExamples:\n  paceline run plan.json\n"
    "  paceline run plan.json --steps 50 -o runs.db\n"
    "  paceline run plan.json --module net.py:Net --data idx:mnist\n"
    "  paceline run plan.json --rendezvous first:29500 --nodes 2 --node-rank 1"
)
@click.argument("plan", metavar="PLAN")
@click.option("--steps", type=click.IntRange(1), default=20, show_default=True, help="To time.")
@click.option(
    "--warmup", type=click.IntRange(0), default=3, show_default=True, help="Steps before them."
)
@click.option("-o", "--output", type=click.Path(), help="Add the measurement to this .db.")
@click.option("--module", metavar="FILE:NAME", help="Where your own network is now.")
@click.option(
    "--data", metavar="KIND:FOLDER", help="Train on this set [default: generated samples]."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    help="Seconds that the steps may take.",
)
@click.option("--rendezvous", metavar="HOST:PORT", help="Of the first of several hosts.")
@click.option("--nodes", type=click.IntRange(1), default=1, show_default=True, help="Hosts.")
@click.option(
    "--node-rank", type=click.IntRange(0), default=0, show_default=True, help="Which this is."
)
@format_option
def command(plan: str, output: str | None, output_format: str, **options: Any) -> None:
    """Run PLAN for real: predicted beside measured, labelled so."""
    from paceline.measurement import run_plan, store_run
    from paceline.scenario import load_plan

    check_writable(output, plan)
    loaded = load_plan(plan)
    n = loaded.strategy.n_devices
    click.echo(f"Starting {format_count(n, 'worker')} ...", err=True)
    done = run_plan(
        loaded,
        n_steps=options["steps"],
        n_warmup=options["warmup"],
        timeout_s=options["timeout"],
        data=_data(options["data"]),
        module=options["module"],
        executor=_executor(options),
    )
    if output:
        store_run(done, output)
    _show(done, output, output_format)


def _executor(options: dict[str, Any]) -> Any:
    """Return who starts the workers of this host; None: all are here."""
    from paceline.executors import FrameworkExecutor, parse_rendezvous

    if options["rendezvous"] is None:
        if options["nodes"] > 1:
            raise InvalidInputError(
                "Several nodes need a place to meet. Try: --rendezvous first:29500"
            )
        return None
    place = parse_rendezvous(options["rendezvous"], options["nodes"], options["node_rank"])
    return FrameworkExecutor("torch", rendezvous=place)


def _data(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    kind, colon, folder = text.partition(":")
    if not colon or kind not in _KINDS or not folder:
        raise InvalidInputError(
            f"--data must be KIND:FOLDER with a kind of {', '.join(_KINDS)}, but got {text!r}."
        )
    return {"kind": kind, "folder": folder}


def _show(done: Any, output: str | None, output_format: str) -> None:
    from paceline.reports import show_plan_run

    if output_format == "json":
        print_json(done.to_dict())
        return
    click.echo(show_plan_run(done))
    if output:
        click.echo(f"\nWritten to {output}.\nNext: paceline fit {output} -o model.json")
