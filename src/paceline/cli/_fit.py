"""``paceline fit``."""

from __future__ import annotations

from typing import Any

import click

from paceline.cli._options import (
    data_options,
    feature_options,
    format_option,
    is_given,
    read_data,
    say_notes,
    seed_option,
    settle_features,
)
from paceline.cli._output import check_writable, print_json, progress_bar


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline fit times.csv -o model.json\n"
    "  paceline fit times.csv --form posynomial --terms 3 -o model.json\n"
    "  paceline fit times.csv --intrinsic layers,width --extrinsic n_gpus,batch\n"
    "  paceline fit runs.csv --features layers --workload lenet5\n"
    "  paceline fit runs.csv --features oracle --workload resnet50 --cluster abci\n"
    "  paceline fit runs.db --penalty l2 --strength 0.001 --seeds 1"
)
@click.argument("data", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="Write the fitted model here.")
@click.option(
    "--form",
    default="auto",
    show_default=True,
    help="auto, generic, posynomial or corrected; `paceline list forms` says what they are.",
)
@click.option("--terms", type=click.IntRange(1), help="Number of terms of a posynomial.")
@click.option("--solver", type=click.Choice(["fast", "de"]), default="fast", show_default=True)
@click.option(
    "--penalty", type=click.Choice(["none", "l1", "l2"]), default="none", show_default=True
)
@click.option("--strength", type=float, default=0.001, show_default=True, help="Of coefficients.")
@click.option("--power-strength", type=float, help="Of powers [default: as --strength].")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Seeds for the spread of the constants; 1: quick, no study of stability.",
)
@seed_option
@data_options()
@feature_options
@format_option
def command(data: str, output: str | None, output_format: str, **options: Any) -> None:
    """Fit a readable expression of the time to DATA, a .csv or a .db of ours."""
    from paceline.estimators import GenericRegressor, fit, fit_to_dict, save_fit
    from paceline.explainers import explain
    from paceline.reports import show_explanation

    _settle_form(options)
    check_writable(output, data)
    dataset = read_data(data, options)
    names = ("penalty", "strength", "power_strength", "solver")
    settings = GenericRegressor(**{name: options[name] for name in names})
    with progress_bar("Fitting") as progress:
        result = fit(
            dataset,
            form=options["form"],
            estimator=settings if options["form"] == "generic" else None,
            n_terms=options["terms"],
            n_seeds=options["seeds"],
            group=options["group"],
            **settle_features(options),
            random_state=options["random_state"],
            progress=progress,
        )
    say_notes(result.notes[len(dataset.notes) :])
    if output:
        save_fit(result, output)
    if output_format == "json":
        print_json(fit_to_dict(result))
    else:
        click.echo(show_explanation(explain(result)))
        click.echo(f"\nWritten to {output}." if output else "\nNot saved (use -o model.json).")


def _settle_form(options: dict[str, Any]) -> None:
    """Let options of one form choose it, and say which do nothing."""
    if options["penalty"] == "none" and is_given("strength", "power_strength"):
        say_notes(("--strength does nothing without --penalty l1 or l2.",))
    is_of_generic = is_given("penalty", "solver")
    if options["form"] == "auto" and is_of_generic:
        options["form"] = "generic"
        say_notes(("--penalty and --solver are the generic form's, so that form is fitted.",))
    elif is_of_generic and options["form"] != "generic":
        say_notes((f"--penalty and --solver do nothing with --form {options['form']}.",))
    if options["terms"] and options["form"] == "generic":
        say_notes(("--terms does nothing with --form generic.",))
