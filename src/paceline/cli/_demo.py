"""``paceline demo``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from paceline.cli._output import progress_bar


@click.command(epilog="\b\nExample:\n  paceline demo -o demo")
@click.option(
    "-o", "--output", type=click.Path(), default="demo", show_default=True, help="A folder."
)
def command(output: str) -> None:
    """Fit, compare and explain a generated study of table 4.1, with 5 % noise."""
    from paceline.dataset import write_text
    from paceline.estimators import compare, fit, save_fit
    from paceline.explainers import explain
    from paceline.reports import show_comparison, show_explanation
    from paceline.validation import generate_study

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    study = generate_study("tensorflow", n_rows=1500, noise=0.05, random_state=0)
    study.dataset.to_csv(folder / "study.csv")
    click.echo("Generated: 1500 trials of table 4.1 from table 4.3's TensorFlow constants.\n")
    small, _ = study.dataset.split(n_fit=1000, random_state=0)
    with progress_bar("Fitting") as progress:
        result = fit(small, progress=progress)
    save_fit(result, folder / "model.json")
    explanation = show_explanation(explain(result))
    write_text(folder / "explanation.txt", explanation + "\n")
    click.echo(explanation)
    with progress_bar("Comparing") as progress:
        comparison = compare(study.dataset, holdout=1 / 3, progress=progress)
    write_text(folder / "comparison.json", json.dumps(comparison.to_dict(), indent=2) + "\n")
    click.echo(f"\n{show_comparison(comparison)}")
    click.echo(f"\nWritten to {folder}: study.csv, model.json, explanation.txt, comparison.json.")
    click.echo(f"Next: paceline predict {folder / 'model.json'} --at n_devices=3")
