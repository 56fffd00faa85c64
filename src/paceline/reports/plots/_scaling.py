"""Scaling curves: time and speedup with interval, ideal line and knee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from paceline.dataset import counts_what
from paceline.reports.plots._style import (
    COLOURS,
    FAINT,
    NEUTRAL,
    Spec,
    count_axis,
    figure,
    log_axis,
    scaled,
    shorten,
    time_unit,
)
from paceline.reports.views import ScalingCurve

_ROOM = 6.0  # the interval may leave the picture; the curve may not


def draw_scaling(view: ScalingCurve, time: str = "time") -> Spec:
    """Return the time and, where the basis says what is ideal, the speedup along a parameter."""
    unit_s, unit = time_unit(view.predicted_s)
    has_speedup = view.speedup is not None
    x = list(view.values)
    traces = [
        *_interval(x, scaled(view.lower_s, unit_s), scaled(view.upper_s, unit_s), ""),
        _curve(x, scaled(view.predicted_s, unit_s), ""),
        *_measured(view, unit_s),
    ]
    if view.ideal_s is not None:
        traces.append(_ideal(x, scaled(view.ideal_s, unit_s), ""))
    low, high = _limits(view)
    layout: dict[str, Any] = {}
    if has_speedup:
        traces += _speedup(view)
        layout["xaxis2"] = count_axis(_label(view), x, domain=[0.56, 1.0], anchor="y2")
        layout["yaxis2"] = log_axis(
            f"speedup over {view.values[0]:g} {shorten(view.name, 20)} (×)",
            [0.5, *(view.ideal_speedup or ())],
            anchor="x2",
            range=_log_range(_speedup_limits(view)),
        )
    return figure(
        traces,
        height=460,
        x=count_axis(_label(view), x, domain=[0.0, 0.44 if has_speedup else 1.0]),
        y=log_axis(
            f"{time} ({unit})",
            [low / unit_s, high / unit_s],
            range=_log_range((low / unit_s, high / unit_s)),
        ),
        shapes=_knee_line(view) + _beyond(view, has_speedup),
        annotations=_knee_words(view),
        **layout,
    )


def _label(view: ScalingCurve) -> str:
    if view.is_devices:
        return f"{view.name} (number of devices)"
    return f"{view.name} (samples)" if counts_what(view.name) == "batch" else view.name


def _interval(
    x: list[float], low: Sequence[float | None], high: Sequence[float | None], number: str
) -> list[Spec]:
    if any(value is None for value in (*low, *high)):
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [*x, *reversed(x)],
            "y": [*high, *reversed(list(low))],
            "fill": "toself",
            "fillcolor": FAINT,
            "line": {"width": 0},
            "hoverinfo": "skip",
            "name": "90 % interval",
            "legendgroup": "interval",
            "showlegend": not number,
            "xaxis": f"x{number}",
            "yaxis": f"y{number}",
        }
    ]


def _curve(x: list[float], y: Sequence[float | None], number: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": list(y),
        "name": "predicted",
        "legendgroup": "predicted",
        "showlegend": not number,
        "line": {"color": COLOURS[0], "width": 2.5},
        "hovertemplate": "%{x:.6g}: %{y:.4g}<extra>predicted</extra>",
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
    }


def _ideal(x: list[float], y: Sequence[float | None], number: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": list(y),
        "name": "ideal",
        "legendgroup": "ideal",
        "showlegend": not number,
        "line": {"color": NEUTRAL, "dash": "dash", "width": 2},
        "hovertemplate": "%{x:.6g}: %{y:.4g}<extra>ideal</extra>",
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
    }


def _measured(view: ScalingCurve, unit_s: float) -> list[Spec]:
    if not view.measured:
        return []
    middle = [m.median_s / unit_s for m in view.measured]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [m.value for m in view.measured],
            "y": middle,
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [
                    m.high_s / unit_s - y for m, y in zip(view.measured, middle, strict=True)
                ],
                "arrayminus": [
                    y - m.low_s / unit_s for m, y in zip(view.measured, middle, strict=True)
                ],
                "color": COLOURS[1],
            },
            "marker": {"color": COLOURS[1], "size": 8, "symbol": "diamond"},
            "name": "measured, moved to this point (median, 90 %)",
            "customdata": [m.n_rows for m in view.measured],
            "hovertemplate": "%{x:.6g}: %{y:.4g}, %{customdata} rows<extra>measured</extra>",
        }
    ]


def _speedup(view: ScalingCurve) -> list[Spec]:
    x = list(view.values)
    low, high = scaled(view.lower_speedup or (), 1.0), scaled(view.upper_speedup or (), 1.0)
    return [
        *_interval(x, low, high, "2"),
        _curve(x, list(view.speedup or ()), "2"),
        _ideal(x, list(view.ideal_speedup or ()), "2"),
    ]


def _limits(view: ScalingCurve) -> tuple[float, float]:
    curve = [*view.predicted_s, *(view.ideal_s or ())]
    low, high = min(curve), max(curve)
    band = [v for v in (*view.lower_s, *view.upper_s) if math.isfinite(v) and v > 0]
    marks = [v for m in view.measured for v in (m.low_s, m.high_s) if v > 0]
    return (
        max(min([low, *band, *marks]), low / _ROOM) / 1.1,
        min(max([high, *band, *marks]), high * _ROOM) * 1.1,
    )


def _speedup_limits(view: ScalingCurve) -> tuple[float, float]:
    curve = [*(view.speedup or ()), *(view.ideal_speedup or ())]
    return min(0.7, *curve) / 1.1, max(curve) * 1.3


def _log_range(limits: tuple[float, float]) -> list[float]:
    return [math.log10(limits[0]), math.log10(limits[1])]


def _knee_line(view: ScalingCurve) -> list[Spec]:
    if view.knee is None or not view.knee.is_reached:
        return []
    line = {"color": COLOURS[6], "dash": "dot", "width": 2}
    x = {"x0": view.knee.n_devices, "x1": view.knee.n_devices}
    return [{"type": "line", **x, "y0": 0, "y1": 1, "yref": "paper", "xref": "x2", "line": line}]


def _knee_words(view: ScalingCurve) -> list[Spec]:
    if view.knee is None or not view.knee.is_reached:
        return []
    return [
        {
            "text": f"knee: {view.knee.n_devices}",
            "x": math.log10(view.knee.n_devices),
            "xref": "x2",
            "y": 0.98,
            "yref": "paper",
            "xanchor": "left",
            "xshift": 5,
            "showarrow": False,
            "font": {"color": COLOURS[6]},
        }
    ]


def _beyond(view: ScalingCurve, has_speedup: bool) -> list[Spec]:
    """Return a shade over what lies beyond the measured range."""
    if view.values[-1] <= view.measured_to:
        return []
    places = ["x", *(["x2"] if has_speedup else [])]
    x = {"x0": view.measured_to, "x1": view.values[-1]}
    look = {"fillcolor": "rgba(128,128,128,0.10)", "line": {"width": 0}, "layer": "below"}
    return [
        {"type": "rect", **x, "xref": place, "y0": 0, "y1": 1, "yref": "paper", **look}
        for place in places
    ]
