"""``paceline check``."""

from __future__ import annotations

from typing import Any

import click

from paceline.cli._options import data_options, format_option, read_data
from paceline.cli._output import print_json
from paceline.errors import InvalidInputError


def parse_share(text: str) -> float:
    """Return the share that ``10%`` or ``0.1`` means."""
    number = text.strip().removesuffix("%").strip()
    try:
        share = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < float("inf"):
        raise InvalidInputError(f"--max-error must be a share such as 10%, but got {text!r}.")
    if share >= 1 and not text.strip().endswith("%"):
        raise InvalidInputError(
            f"--max-error must be a share such as 0.1 or have a percent sign, but got {text!r}. "
            f"Write {number}% if that is what you mean."
        )
    return share


@click.command(epilog="\b\nExample:\n  paceline check model.json new.csv --max-error 10%")
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--max-error", default="10%", show_default=True, help="Mean percentage error.")
@data_options(grouped=False)
@format_option
def command(model: str, data: str, max_error: str, output_format: str, **options: Any) -> None:
    """Exit 1 when MODEL's mean error on DATA exceeds a limit: a gate for CI."""
    from paceline.estimators import load_fit, score
    from paceline.units import format_percent

    limit = parse_share(max_error)
    fit = load_fit(model)
    if options["intrinsic"] is None and options["extrinsic"] is None and data.endswith(".csv"):
        extrinsic = list(fit.estimator.extrinsic)
        options["extrinsic"] = extrinsic
        options["intrinsic"] = [n for n in fit.measured.names if n not in extrinsic]
        options["categorical"] = list(fit.measured.levels)
    dataset = read_data(data, options, keep_constant=True)
    scores = score(dataset.y, fit.predict(dataset.X)["predicted_s"])
    good = scores.mape <= limit
    if output_format == "json":
        print_json({"max_error": limit, "passed": good, "scores": scores.to_dict()})
    else:
        verdict = "within" if good else "above"
        click.echo(
            f"Mean error {format_percent(scores.mape, 3)} on {dataset.n_rows} rows, "
            f"{verdict} the limit of {format_percent(limit, 3)}."
        )
    raise SystemExit(0 if good else 1)
