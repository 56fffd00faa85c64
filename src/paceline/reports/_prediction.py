"""One prediction as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pandas as pd

from paceline.units import format_number, format_seconds


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
