"""``paceline predict``."""

from __future__ import annotations

import math
from typing import Any

import click

from paceline.cli._options import at_option, format_option, parse_at, say_notes
from paceline.cli._output import print_json
from paceline.errors import InvalidInputError


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline predict model.json rows.csv -o predicted.csv\n"
    "  paceline predict model.json --at n_devices=16 --at global_batch=256"
)
@click.argument("model", type=click.Path())
@click.argument("rows", type=click.Path(), required=False)
@at_option("One point; what is not named takes its typical measured value.")
@click.option("-o", "--output", type=click.Path(), help="Write rows and predictions here.")
@click.option("--strict", is_flag=True, help="Refuse levels that were never measured.")
@format_option
def command(
    model: str,
    rows: str | None,
    at: tuple[str, ...],
    output: str | None,
    strict: bool,
    output_format: str,
) -> None:
    """Predict the time of ROWS (a CSV), or of one point with --at.

    Adds predicted_s, lower_s, upper_s (90 % interval) and extrapolates (0 or 1).
    """
    from paceline.estimators import load_fit

    if (rows is None) == (not at):
        raise InvalidInputError("Give either ROWS.csv or --at NAME=VALUE, not both or neither.")
    fit = load_fit(model)
    if rows is None:
        _predict_point(fit, parse_at(at), strict, output, output_format)
    else:
        _predict_rows(fit, rows, strict, output, output_format)


def _predict_point(
    fit: Any, point: dict[str, str], strict: bool, output: str | None, output_format: str
) -> None:
    from paceline.reports import show_prediction

    row, filled = fit.measured.complete(point)
    fit.predict(row)  # an impossible value is refused before anything is said
    predicted = _predict(fit, row, strict)
    _say_filled(filled)
    table = row.join(predicted)
    if output:
        _write(table, output)
    if output_format == "json":
        print_json(_records(table)[0])
    elif not output:
        values = {name: _plain(row[name].iloc[0]) for name in row}
        click.echo(show_prediction(predicted.iloc[0], values, fit.covers))


def _say_filled(filled: dict[str, float | str]) -> None:
    medians = [f"{n}={v:g}" for n, v in filled.items() if not isinstance(v, str)]
    levels = [f"{n}={v}" for n, v in filled.items() if isinstance(v, str)]
    if medians:
        say_notes((f"not given, at their median: {', '.join(medians)}.",))
    if levels:
        say_notes((f"not given, at their commonest level: {', '.join(levels)}.",))


def _predict_rows(
    fit: Any, rows: str, strict: bool, output: str | None, output_format: str
) -> None:
    from paceline.dataset import read_table

    table = read_table(rows, labels=list(fit.measured.levels))
    predicted = _predict(fit, table, strict)
    clash = [name for name in predicted if name in table]
    full = table.drop(columns=clash).join(predicted)
    if clash:
        click.echo(f"note: columns replaced: {', '.join(clash)}.", err=True)
    if output:
        _write(full, output)
    if output_format == "json":
        print_json(_records(full))
    elif not output:
        click.echo(full.to_csv(index=False), nl=False)


def _predict(fit: Any, rows: Any, strict: bool) -> Any:
    X = fit.measured.read(rows)
    outside = fit.measured.outside(X)
    for name, distance in outside.items():
        n_far = int((distance > 0).sum())
        if not n_far:
            continue
        far = sorted({str(value) for value in X[name][distance > 0]})[:5]
        message = f"{name} {', '.join(far)} not measured ({fit.measured.describe(name)})"
        if strict and name in fit.measured.levels:
            raise InvalidInputError(f"--strict allows known levels only, but got {message}.")
        say_notes((f"{n_far} of {len(X)} rows extrapolate: {message}.",))
    return fit.predict(rows)


def _write(table: Any, output: str) -> None:
    from paceline.dataset import write_text

    write_text(output, table.to_csv(index=False))


def _records(table: Any) -> list[dict[str, Any]]:
    return [
        {str(name): _plain(value) for name, value in record.items()}
        for record in table.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    is_finite = not isinstance(plain, float) or math.isfinite(plain)
    return plain if is_finite else None
