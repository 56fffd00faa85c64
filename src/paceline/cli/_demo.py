"""``paceline demo``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from paceline.cli._measure import measure_with_progress
from paceline.cli._output import progress_bar


@click.command(epilog="\b\nExample:\n  paceline demo -o demo")
@click.option(
    "-o", "--output", type=click.Path(), default="demo", show_default=True, help="A folder."
)
@click.option("--reduced", is_flag=True, help="Fewer trials, to see it run.")
def command(output: str, reduced: bool) -> None:
    """Train LeNet-5 with random parameters on 1 and 2 workers; fit, compare, explain, report.

    Begun again, it goes on where it stopped.
    """
    from paceline.measurement import load_study, noise_floor
    from paceline.units import format_percent

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    study = load_study("demo")
    study = study.reduced() if reduced else study
    click.echo(f"Measuring {study.n_trials} trials of LeNet-5 on one and two workers.", err=True)
    dataset = measure_with_progress(study, str(folder / "runs.db"))
    dataset.to_csv(folder / "runs.csv")
    result = _fit(dataset, folder)
    comparison = _compare(dataset, folder)
    floor = noise_floor(folder / "runs.db")
    if floor is not None:
        click.echo(f"Noise floor (trials repeated later): {format_percent(floor)}.")
    click.echo(
        f"\nWritten to {folder}: runs.db, runs.csv, model.json, explanation.txt, comparison.json."
        f"\nNext: paceline predict {folder / 'model.json'} --at n_devices=2"
    )
    click.echo(f"Report, for any browser: {_report(dataset, result, comparison, folder)}")


def _fit(dataset: Any, folder: Path) -> Any:
    from paceline.dataset import write_text
    from paceline.estimators import fit, save_fit
    from paceline.explainers import explain
    from paceline.reports import show_explanation

    with progress_bar("Fitting") as progress:
        result = fit(dataset, progress=progress)
    save_fit(result, folder / "model.json")
    text = show_explanation(explain(result))
    write_text(folder / "explanation.txt", text + "\n")
    click.echo(text)
    return result


def _compare(dataset: Any, folder: Path) -> Any:
    from paceline.dataset import write_text
    from paceline.estimators import compare
    from paceline.reports import show_comparison

    with progress_bar("Comparing") as progress:
        comparison = compare(dataset, progress=progress)
    write_text(folder / "comparison.json", json.dumps(comparison.to_dict(), indent=2) + "\n")
    click.echo(f"\n{show_comparison(comparison)}")
    return comparison


def _report(dataset: Any, result: Any, comparison: Any, folder: Path) -> Path:
    from paceline.cli._report import phase_runs_of
    from paceline.reports import report

    path = folder / "report.html"
    runs = phase_runs_of(str(folder / "runs.db"))
    report(dataset, result, comparison=comparison, phase_runs=runs).save(path)
    return path
