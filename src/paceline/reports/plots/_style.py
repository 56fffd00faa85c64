"""What all figures share: colours, margins, units of time.

Figures are plain data, as Plotly's JSON has it, so that a report needs no Plotly in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Spec = dict[str, Any]

# told apart by the colour-blind, readable on white and on near black (after Okabe and Ito)
COLOURS = (
    "#3b82c4",
    "#e08214",
    "#1b9e77",
    "#c8509b",
    "#8a6fd1",
    "#c9a400",
    "#d1495b",
    "#4fb3bf",
    "#8c8c8c",
    "#7a5c3e",
)
FAINT = "rgba(59,130,196,0.18)"
NEUTRAL = "#8c8c8c"
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_MOST_LETTERS = 34
_MOST_WIDE = 48  # beside a bar there is more room than below one


def figure(
    data: Sequence[Mapping[str, Any]],
    *,
    height: int = 420,
    x: Mapping[str, Any] | None = None,
    y: Mapping[str, Any] | None = None,
    **layout: Any,
) -> Spec:
    """Return a figure with our margins, legend and axes.

    Parameters
    ----------
    data
        Traces.
    height
        In pixels.
    x, y
        Axes; further keywords go into the layout as they are.
    """
    return {
        "data": [dict(trace) for trace in data],
        "layout": {
            "height": height,
            "margin": {"l": 70, "r": 24, "t": 24, "b": 60},
            "font": {"family": "system-ui, sans-serif", "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(COLOURS),
            "hoverlabel": {"align": "left"},
            "legend": dict(LEGEND),
            "xaxis": dict(x) if x else axis(),
            "yaxis": dict(y) if y else axis(),
            **layout,
        },
    }


def axis(title: str = "", **more: Any) -> dict[str, Any]:
    """Return an axis whose labels are never cut."""
    settings = {"automargin": True, "zeroline": False, "gridcolor": "rgba(128,128,128,0.25)"}
    return settings | ({"title": {"text": plain(title), "standoff": 12}} if title else {}) | more


def log_axis(title: str, values: Iterable[float], **more: Any) -> dict[str, Any]:
    """Return a logarithmic axis that labels 1, 2 and 5 of a decade where there is room for them.

    Plotly's own labels leave out the decade: its 2 may mean 20.
    """
    known = [v for v in values if v > 0 and math.isfinite(v)] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    few = max(known) < 8 * min(known)
    digits = (1, 2, 3, 4, 5, 6, 8) if few else (1, 2, 5) if high - low <= 3 else (1,)
    ticks = [d * 10.0**k for k in range(low - 1, high + 2) for d in digits]
    texts = [f"{tick:g}" if 0.9e-3 < tick < 1.1e5 else _power(tick) for tick in ticks]
    return axis(title, type="log", tickvals=ticks, ticktext=texts, **more)


def _power(tick: float) -> str:
    exponent = math.floor(math.log10(tick) + 1e-9)
    digit = round(tick / 10.0**exponent)
    return f"10<sup>{exponent}</sup>" if digit == 1 else f"{digit}·10<sup>{exponent}</sup>"


def count_axis(title: str, values: Sequence[float], **more: Any) -> dict[str, Any]:
    """Return a logarithmic axis with a label at every value that is shown."""
    distinct = sorted({float(v) for v in values})
    while len(distinct) > 12:
        distinct = distinct[::2]
    texts = [f"{v:g}" for v in distinct]
    return axis(title, type="log", tickvals=distinct, ticktext=texts, **more)


def time_unit(values: Iterable[float | None]) -> tuple[float, str]:
    """Return how many seconds the unit is in which the largest of the times reads best.

    Examples
    --------
    >>> time_unit([0.004, 0.02])
    (0.001, 'ms')
    """
    known = [abs(v) for v in values if v is not None and math.isfinite(v)]
    largest = max(known, default=1.0)
    return next((unit for unit in _UNITS if largest >= unit[0]), _UNITS[-1])


def scaled(values: Iterable[float | None], unit_s: float) -> list[float | None]:
    """Return times in a unit; what is not finite becomes None, which JSON can say."""
    return [None if v is None or not math.isfinite(v) else v / unit_s for v in values]


def plain(text: str) -> str:
    """Return text that Plotly shows as it is: it would take tags in names as its own."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def shorten(text: str, most: int = _MOST_LETTERS) -> str:
    """Return a label, its middle left out when it is too long for an axis."""
    if len(text) <= most:
        return plain(text)
    head = most // 2
    return plain(f"{text[:head]}…{text[-(most - head - 1) :]}")


def unique(labels: Sequence[str]) -> list[str]:
    """Return labels for an axis, all different: Plotly would draw equal ones as one."""
    seen: dict[str, int] = {}
    found = []
    for label in (shorten(label, _MOST_WIDE) for label in labels):
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found
