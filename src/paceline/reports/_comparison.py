"""A comparison as text."""

from __future__ import annotations

import textwrap

from paceline.estimators import Comparison, ComparisonRow
from paceline.reports._table import table
from paceline.units import format_number, format_percent, format_seconds

_HEADER = ["form", "MAPE", "median", "MAE", "RMSE", "R2", "covers", "fit"]


def show_comparison(comparison: Comparison) -> str:
    """Return the table of a comparison with what a reader needs to judge it."""
    lines = [table(_HEADER, [_row(row) for row in comparison.rows])]
    split = f"{comparison.n_rows} rows; {comparison.split}."
    lines += ["", textwrap.fill(split, 78)]
    if any(row.coverage is not None for row in comparison.rows):
        lines.append("covers: share of the held-out times within the 90 % interval.")
    if comparison.floor is not None:
        lines.append(f"Noise floor (repeats of a configuration): {_percent(comparison.floor)}.")
    lines += ["", "Settings"]
    for row in comparison.rows:
        text = f"{row.name}: {row.error or _settings(row)}"
        lines.append(textwrap.fill(text, 78, initial_indent="  ", subsequent_indent="      "))
    return "\n".join(lines)


def _row(row: ComparisonRow) -> list[str]:
    if row.scores is None or row.fit_seconds is None:
        return [row.name, "failed", *[""] * (len(_HEADER) - 2)]
    s = row.scores
    return [
        row.name,
        _percent(s.mape),
        _percent(s.median_ape),
        format_seconds(s.mae_s),
        format_seconds(s.rmse_s),
        format_number(s.r2, 4),
        "" if row.coverage is None else _percent(row.coverage),
        format_seconds(row.fit_seconds, 2),
    ]


def _percent(share: float) -> str:
    return format_percent(share, 3)


def _settings(row: ComparisonRow) -> str:
    return ", ".join(f"{n} {v}" for n, v in row.settings.items()) or "nothing to set"
