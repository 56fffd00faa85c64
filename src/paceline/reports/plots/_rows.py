"""Predicted against measured, and residuals along every parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.reports.plots._style import (
    COLOURS,
    FAINT,
    NEUTRAL,
    Spec,
    axis,
    figure,
    log_axis,
    plain,
    scaled,
    shorten,
    time_unit,
)
from paceline.reports.views import Agreement, Residuals
from paceline.units import format_number, format_percent

_ACROSS = 3
_ROW_HEIGHT = 230
_MOST = 12  # small pictures, so that they fit a printed page


def draw_agreement(view: Agreement, time: str = "time") -> Spec:
    """Return measured against predicted times with identity, fitted line and noise band."""
    unit_s, unit = time_unit([*view.measured_s, *view.predicted_s])
    ends = [min(view.measured_s) / 1.15, max(view.measured_s) * 1.15]
    shown = scaled(ends, unit_s)
    traces = [*_band(view, ends, unit_s)]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": scaled(view.measured_s, unit_s),
            "y": scaled(view.predicted_s, unit_s),
            "marker": {"size": 5, "opacity": 0.55, "color": COLOURS[0]},
            "name": "rows",
            "hovertemplate": f"measured %{{x:.4g}} {unit}<br>predicted %{{y:.4g}} {unit}"
            "<extra></extra>",
        }
    )
    line = [view.factor * x**view.power for x in ends]
    name = f"fitted: predicted ∝ measured^{format_number(view.power, 3)}"
    traces.append(_line(shown, shown, "predicted = measured", NEUTRAL, "dash"))
    traces.append(_line(shown, scaled(line, unit_s), name, COLOURS[1], "solid"))
    times = [t / unit_s for t in (*view.measured_s, *view.predicted_s)]
    return figure(
        traces,
        height=520,
        x=log_axis(f"measured {time} ({unit})", times),
        y=log_axis(f"predicted {time} ({unit})", times),
    )


def _line(x: list[float | None], y: list[float | None], name: str, colour: str, dash: str) -> Spec:
    line = {"color": colour, "dash": dash, "width": 2}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": line}


def _band(view: Agreement, ends: list[float], unit_s: float) -> list[Spec]:
    """Return the band within which repeats of a trial differ from each other."""
    floor = view.noise_floor
    if floor is None or floor >= 1:
        return []
    x = scaled([*ends, *reversed(ends)], unit_s)
    y = scaled(
        [end * (1 + floor) for end in ends] + [end * (1 - floor) for end in reversed(ends)],
        unit_s,
    )
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": y,
            "fill": "toself",
            "fillcolor": "rgba(27,158,119,0.22)",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "name": f"noise of repeats, ± {format_percent(floor)}",
        }
    ]


def draw_residuals(views: Sequence[Residuals]) -> Spec:
    """Return one small picture per parameter: half and 90 % of the residuals of like rows."""
    shown = [view for view in views if len(view.groups) > 1][:_MOST]
    n_down = max(1, -(-len(shown) // _ACROSS))
    height = n_down * _ROW_HEIGHT + 40
    traces: list[Spec] = []
    titles: list[Spec] = []
    axes: dict[str, Any] = {}
    limits = _limits(shown)
    for place, view in enumerate(shown):
        number = "" if place == 0 else str(place + 1)
        x0, x1, y0, y1 = _cell(place, n_down, height)
        axes[f"xaxis{number}"] = axis(
            domain=[x0, x1], anchor=f"y{number}", type="category", tickangle=-30, automargin=False
        ) | {"tickfont": {"size": 11}}
        axes[f"yaxis{number}"] = axis(
            domain=[y0, y1],
            anchor=f"x{number}",
            range=limits,
            ticksuffix=" %",
            tickfont={"size": 11},
            automargin=False,
        ) | {"zeroline": True, "zerolinecolor": NEUTRAL}
        traces.append(_boxes(view, number))
        titles.append(_title(view.name, (x0 + x1) / 2, y1))
    titles.append(_side_title())
    layout: dict[str, Any] = {"annotations": titles, "showlegend": False, **axes}
    return figure(traces, height=height, margin={"l": 78, "r": 12, "t": 34, "b": 56}, **layout)


def _cell(place: int, n_down: int, height: int) -> tuple[float, float, float, float]:
    """Return where a small picture lies, as shares of the drawing area."""
    across, down = place % _ACROSS, place // _ACROSS
    width, gap = 1.0 / _ACROSS, 0.055
    inner = height - 90  # without the margins of the whole
    share, below = 1.0 / n_down, 84 / inner  # room for labels and the next title
    top = 1.0 - down * share
    bottom = top - share + (below if down < n_down - 1 else 0.0)
    return across * width, (across + 1) * width - gap, max(bottom, 0.0), top


def _limits(views: Sequence[Residuals]) -> list[float]:
    """Return the range in per cent that all small pictures share."""
    groups = [group for view in views for group in view.groups]
    low = min((group.low for group in groups), default=-0.1)
    high = max((group.high for group in groups), default=0.1)
    return [115 * min(low, -0.01), 110 * min(max(high, 0.01), 4.0)]


def _boxes(view: Residuals, number: str) -> Spec:
    def percent(name: str) -> list[float]:
        return [100 * getattr(group, name) for group in view.groups]

    return {
        "type": "box",
        "x": [shorten(group.label, 12) for group in view.groups],
        "lowerfence": percent("low"),
        "q1": percent("lower"),
        "median": percent("median"),
        "q3": percent("upper"),
        "upperfence": percent("high"),
        "name": plain(view.name),
        "marker": {"color": COLOURS[0]},
        "fillcolor": FAINT,
        "line": {"width": 1.5},
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
    }


def _title(name: str, x: float, y: float) -> Spec:
    return {
        "text": f"<b>{shorten(name)}</b>",
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "yshift": 4,
        "showarrow": False,
    }


def _side_title() -> Spec:
    return {
        "text": "measured / predicted − 1 (%)",
        "x": 0,
        "y": 0.5,
        "xref": "paper",
        "yref": "paper",
        "xshift": -62,
        "textangle": -90,
        "xanchor": "center",
        "yanchor": "middle",
        "showarrow": False,
    }
