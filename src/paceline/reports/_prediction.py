"""One prediction as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from paceline.units import format_number, format_percent, format_seconds


def show_prediction(row: pd.Series[Any], point: Mapping[str, float | str], covers: str) -> str:
    """Return a predicted time with its interval and the point it is for."""
    time = format_seconds(float(row["predicted_s"]))
    if pd.isna(row["lower_s"]):
        interval = "no interval: too few rows were held out"
    else:
        low, high = (format_seconds(float(row[name])) for name in ("lower_s", "upper_s"))
        interval = f"90 % interval {low} to {high}, for {covers}"
    values = ", ".join(
        f"{name}={value if isinstance(value, str) else format_number(value, 6)}"
        for name, value in point.items()
    )
    where = textwrap.fill(f"at {values}", 78, initial_indent="  ", subsequent_indent="     ")
    return f"{time}  ({interval})\n{where}"


def show_run(row: pd.Series[Any]) -> str:
    """Return what a whole run takes: time, device-hours, money, rate and efficiency."""
    lines = [f"the run takes {_spread(row, 'run_s', format_seconds)}"]
    lines.append(f"{_spread(row, 'device_hours', format_number)} device-hours")
    if "money" in row:
        lines.append(f"{_spread(row, 'money', format_number)} in money")
    rate = f"{format_number(float(row['samples_per_s']))} samples per second"
    if not pd.isna(row["efficiency"]):
        rate += f", efficiency {format_percent(float(row['efficiency']))}"
    return "\n".join(f"  {line}" for line in [*lines, rate])


def _spread(row: pd.Series[Any], name: str, write: Callable[[float], str]) -> str:
    value = write(float(row[name]))
    if pd.isna(row[f"{name}_lower"]):
        return value
    low, high = (write(float(row[f"{name}_{end}"])) for end in ("lower", "upper"))
    return f"{value} ({low} to {high})"
