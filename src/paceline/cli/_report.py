"""``paceline report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from paceline.cli._options import data_options, read_data, say_notes
from paceline.cli._output import check_writable, progress_bar
from paceline.errors import InvalidInputError, PacelineError


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline report times.csv model.json -o report.html\n"
    "  paceline report runs.db model.json plan.json -o report.html --compare\n"
    "  paceline report runs.db model.json -o report.html --cluster abci --images figures"
)
@click.argument("data", type=click.Path())
@click.argument("model", type=click.Path())
@click.argument("plan", type=click.Path(), required=False)
@click.option("-o", "--output", type=click.Path(), required=True, help="The page, an .html.")
@click.option("--compare", is_flag=True, help="Fit every form and black box too (slow).")
@click.option("--cluster", metavar="NAME|FILE", help="Show every strategy on this cluster.")
@click.option("--workload", metavar="NAME", help="Of --cluster [default: as DATA or PLAN says].")
@click.option("--images", type=click.Path(), help="Write scaling curves as PNG and SVG here.")
@data_options(grouped=False)
def command(
    data: str,
    model: str,
    plan: str | None,
    output: str,
    compare: bool,
    cluster: str | None,
    workload: str | None,
    images: str | None,
    **options: Any,
) -> None:
    """Show DATA, MODEL and PLAN as one HTML page that works offline and prints.

    Predicted against measured, residuals, the formula, shares, scaling with intervals and knee,
    phases and imbalance where they were measured, and what a plan does when.
    """
    from paceline.estimators import load_fit
    from paceline.reports import report

    if workload is not None and cluster is None:
        raise InvalidInputError("--workload needs --cluster, on which its strategies are shown.")
    check_writable(output, data, model, plan)
    fit = load_fit(model)
    dataset = _read(data, fit, options)
    read_plan, plan_run = _plan(plan)
    made = report(
        dataset,
        fit,
        read_plan,
        plan_run=plan_run,
        phase_runs=phase_runs_of(data),
        comparison=_comparison(data, fit, options) if compare else None,
        survey=None if cluster is None else _survey(dataset, fit, cluster, workload, read_plan),
    )
    made.save(output)
    if images is not None:
        _images(dataset, fit, images)
    click.echo(str(Path(output)))


def _read(data: str, fit: Any, options: dict[str, Any]) -> Any:
    """Return the rows with the roles and the basis of the model, unless others are named."""
    named = options["intrinsic"] is not None or options["extrinsic"] is not None
    if not named and not data.endswith(".db"):
        extrinsic = list(fit.estimator.extrinsic)
        options["extrinsic"] = extrinsic
        options["intrinsic"] = [n for n in fit.measured.names if n not in extrinsic]
        options["categorical"] = list(fit.measured.levels)
    if options["time_per"] is None and fit.basis.time_per is not None:
        options["time_per"] = fit.basis.time_per
    return read_data(data, options, keep_constant=True)


def phase_runs_of(data: str) -> Any:
    """Return the runs of a campaign whose phases were timed; none for other data."""
    from paceline.measurement import load_phase_runs

    if not data.endswith(".db"):
        return ()
    try:
        return load_phase_runs(data)
    except PacelineError:  # most data have no phases; the page says so
        return ()


def _comparison(data: str, fit: Any, options: dict[str, Any]) -> Any:
    """Return every form on the same folds; columns that never vary tell the forms nothing."""
    from paceline.dataset import load_dataset
    from paceline.estimators import add_features, compare

    given = {name: value for name, value in options.items() if value is not None}
    features = "none" if fit.features is None else fit.features.source or "none"
    workload = fit.features.workload or None if fit.features is not None else None
    dataset = add_features(load_dataset(data, **given), features, workload)
    with progress_bar("Comparing") as progress:
        return compare(dataset, progress=progress)


def _plan(path: str | None) -> tuple[Any, Any]:
    """Return a plan, and when its passes run where that can be said."""
    from paceline.reports import plan_timeline
    from paceline.scenario import load_plan

    if path is None:
        return None, None
    plan = load_plan(path)
    try:
        return plan, plan_timeline(plan)
    except PacelineError as error:
        say_notes((f"The plan is shown without its passes: {error}",))
        return plan, None


def _survey(dataset: Any, fit: Any, cluster: str, workload: str | None, plan: Any) -> Any:
    from paceline.reports import survey_study

    return survey_study(dataset, fit, cluster, workload=workload, plan=plan)


def _images(dataset: Any, fit: Any, folder: str) -> None:
    from paceline.reports import save_scaling_images

    for path in save_scaling_images(dataset, fit, folder):
        click.echo(str(path))
