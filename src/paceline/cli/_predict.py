"""``paceline predict``."""

from __future__ import annotations

import math
from typing import Any

import click

from paceline.cli._options import at_option, format_option, is_given, parse_at, say_notes
from paceline.cli._output import check_writable, print_json
from paceline.errors import InvalidInputError


@click.command(
    epilog="\b\nExamples:\n"
    "  paceline predict model.json rows.csv -o predicted.csv\n"
    "  paceline predict model.json --at n_devices=16 --at global_batch=256\n"
    "  paceline predict model.json --at n_devices=16 --samples 1281167 --epochs 90 --price 2.5"
)
@click.argument("model", type=click.Path())
@click.argument("rows", type=click.Path(), required=False)
@at_option("One point; what is not named takes its typical measured value.")
@click.option("-o", "--output", type=click.Path(), help="Write rows and predictions here.")
@click.option("--samples", type=click.IntRange(1), help="Samples of an epoch: predict a run.")
@click.option("--epochs", type=float, default=1.0, show_default=True, help="Epochs of the run.")
@click.option("--price", type=float, help="Of one device for one hour.")
@click.option("--strict", is_flag=True, help="Refuse levels that were never measured.")
@format_option
def command(
    model: str,
    rows: str | None,
    at: tuple[str, ...],
    output: str | None,
    strict: bool,
    output_format: str,
    samples: int | None,
    epochs: float,
    price: float | None,
) -> None:
    """Predict the time of ROWS (a CSV), or of one point with --at.

    Adds predicted_s, lower_s, upper_s (90 % interval) and extrapolates (0 or 1); with --samples
    also the time, device-hours and money of a run, samples per second and efficiency.
    """
    from paceline.estimators import Run, load_fit

    if (rows is None) == (not at):
        raise InvalidInputError("Give either ROWS.csv or --at NAME=VALUE, not both or neither.")
    if samples is None and is_given("epochs", "price"):
        raise InvalidInputError("--epochs and --price need --samples, the samples of an epoch.")
    check_writable(output, model, rows)
    run = None if samples is None else Run(n_samples=samples, n_epochs=epochs, price=price)
    fit = load_fit(model)
    if rows is None:
        _predict_point(fit, parse_at(at), run, strict, output, output_format)
    else:
        _predict_rows(fit, rows, run, strict, output, output_format)


def _predict_point(
    fit: Any, point: dict[str, str], run: Any, strict: bool, output: str | None, output_format: str
) -> None:
    from paceline.reports import show_prediction, show_run

    row, filled = fit.measured.complete(point)
    fit.predict(row)  # an impossible value is refused before anything is said
    predicted = _predict(fit, row, run, strict)
    _say_filled(filled, "of a typical row" if fit.features is not None else "")
    table = row.join(predicted)
    if output:
        _write(table, output)
    if output_format == "json":
        print_json(_records(table)[0])
    elif not output:
        values = {name: _plain(row[name].iloc[0]) for name in row}
        click.echo(show_prediction(predicted.iloc[0], values, fit.covers))
        if run is not None:
            click.echo(show_run(predicted.iloc[0]))


def _say_filled(filled: dict[str, float | str], how: str) -> None:
    medians = [f"{n}={v:g}" for n, v in filled.items() if not isinstance(v, str)]
    levels = [f"{n}={v}" for n, v in filled.items() if isinstance(v, str)]
    if medians:
        say_notes((f"not given, {how or 'at their median'}: {', '.join(medians)}.",))
    if levels:
        say_notes((f"not given, {how or 'at their commonest level'}: {', '.join(levels)}.",))


def _predict_rows(
    fit: Any, rows: str, run: Any, strict: bool, output: str | None, output_format: str
) -> None:
    from paceline.dataset import read_table

    table = read_table(rows, labels=list(fit.measured.levels))
    predicted = _predict(fit, table, run, strict)
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


def _predict(fit: Any, rows: Any, run: Any, strict: bool) -> Any:
    from paceline.estimators import batch_notes, predict_run

    X = fit.measured.read(rows)
    for name, distance in fit.outside(X).items():
        n_far = int((distance > 0).sum())
        if not n_far:
            continue
        if name in X:
            far = [_value(value) for value in sorted(set(X[name][distance > 0]))[:5]]
            message = f"{name} {', '.join(far)} not measured ({fit.measured.describe(name)})"
        else:
            pairs = _apart(fit, X, name, distance > 0)
            message = f"levels that were not measured together ({pairs})"
        if strict and name in fit.measured.levels:
            raise InvalidInputError(f"--strict allows known levels only, but got {message}.")
        say_notes((f"{n_far} of {len(X)} rows extrapolate: {message}.",))
    predicted = fit.predict(rows)
    if run is None:
        return predicted
    say_notes(batch_notes(fit))
    return predicted.join(predict_run(fit, rows, run))


def _apart(fit: Any, X: Any, name: str, is_far: Any) -> str:
    """Return the first pairs of levels of a composed parameter that were not measured."""
    composed = next(c for c in fit.estimator.expression_.composed if c.name == name)
    return f"{name}: {', '.join(composed.known(X[is_far])[:5])}"


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


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
