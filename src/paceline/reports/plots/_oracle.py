"""Strategies on a cluster, and the passes of a plan over time."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.reports.plots._style import (
    COLOURS,
    NEUTRAL,
    Spec,
    axis,
    count_axis,
    figure,
    log_axis,
    scaled,
    time_unit,
    unique,
)
from paceline.reports.views import PlanView, StrategyPoint, SurveyView

_GIB = 2.0**30
_MOST_PASSES = 2000
_DASHES = ("solid", "dot", "dash", "dashdot")  # where the colours begin again


def draw_survey(view: SurveyView) -> Spec:
    """Return rate and memory of every strategy against the number of devices."""
    names = list(dict.fromkeys(p.strategy for p in view.points if p.samples_per_s is not None))
    counts = sorted({p.n_devices for p in view.points})
    traces: list[Spec] = []
    for i, name in enumerate(names):
        own = [p for p in view.points if p.strategy == name and p.samples_per_s is not None]
        colour = COLOURS[i % len(COLOURS)]
        look = {"color": colour, "width": 2, "dash": _DASHES[i // len(COLOURS) % len(_DASHES)]}
        traces.append(_line(own, [p.samples_per_s for p in own], name, look, ""))
        traces.append(_line(own, [(p.memory_bytes or 0) / _GIB for p in own], name, look, "2"))
    rates = [p.samples_per_s for p in view.points if p.samples_per_s]
    memories = [p.memory_bytes / _GIB for p in view.points if p.memory_bytes]
    limit = view.device_memory_bytes / _GIB
    return figure(
        traces,
        height=max(500, 110 + 24 * len(names)),
        x=count_axis("number of devices", counts, domain=[0, 0.38]),
        y=log_axis("training rate (samples/s)", rates),
        xaxis2=count_axis("number of devices", counts, domain=[0.5, 0.88], anchor="y2"),
        yaxis2=log_axis("memory of the fullest device (GiB)", [*memories, limit], anchor="x2"),
        legend={"x": 0.9, "y": 1.0, "yanchor": "top", "orientation": "v", "tracegroupgap": 0},
        margin={"l": 70, "r": 90, "t": 24, "b": 60},
        shapes=[_limit(limit)],
    )


def _line(
    own: Sequence[StrategyPoint],
    values: Sequence[float | None],
    name: str,
    look: Spec,
    number: str,
) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [p.n_devices for p in own],
        "y": list(values),
        "name": name,
        "legendgroup": name,
        "showlegend": not number,
        "line": look,
        "marker": {"size": 8, "symbol": ["circle" if p.fits else "x-thin-open" for p in own]},
        "customdata": [[p.degrees, p.limit] for p in own],
        "hovertemplate": "%{x} devices: %{y:.4g}<br>%{customdata[0]}<br>%{customdata[1]}"
        f"<extra>{name}</extra>",
        "xaxis": f"x{number}",
        "yaxis": f"y{number}",
    }


def _limit(limit: float) -> Spec:
    line = {"color": COLOURS[6], "dash": "dash"}
    return {
        "type": "line",
        "xref": "x2 domain",
        "x0": 0,
        "x1": 1,
        "yref": "y2",
        "y0": limit,
        "y1": limit,
        "line": line,
    }


def draw_gantt(view: PlanView) -> Spec:
    """Return when every pass of a plan's pipeline runs, one line per stage."""
    shown = view.passes[:_MOST_PASSES]
    unit_s, unit = time_unit([p.end_s for p in shown])
    names = [f"stage {i}" for i in range(1 + max((p.stage for p in shown), default=0))]
    traces = []
    for backward, name, colour in (
        (False, "forward", COLOURS[0]),
        (True, "backward", COLOURS[1]),
    ):
        own = [p for p in shown if p.is_backward == backward]
        long_enough = 0.012 * max((p.end_s for p in shown), default=1.0)
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": [names[p.stage] for p in own],
                "base": scaled([p.start_s for p in own], unit_s),
                "x": scaled([p.end_s - p.start_s for p in own], unit_s),
                "text": [
                    str(p.micro_batch) if p.end_s - p.start_s > long_enough else "" for p in own
                ],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "textangle": 0,
                "marker": {"color": colour, "line": {"color": NEUTRAL, "width": 0.5}},
                "name": f"{name} (number: micro-batch)",
                "customdata": [[p.micro_batch, p.piece] for p in own],
                "hovertemplate": f"{name} of micro-batch %{{customdata[0]}}, piece "
                f"%{{customdata[1]}}<br>from %{{base:.4g}}, %{{x:.4g}} {unit}<extra></extra>",
            }
        )
    return figure(
        traces,
        height=150 + 44 * len(names),
        x=axis(f"time within the step ({unit})", rangemode="tozero"),
        y=axis(autorange="reversed", type="category", categoryarray=names),
        barmode="overlay",
        bargap=0.2,
        uniformtext={"minsize": 9, "mode": "hide"},
    )


def draw_plan_parts(view: PlanView) -> Spec:
    """Return the parts of a plan's predicted step."""
    unit_s, unit = time_unit([view.step_s])
    names = unique(list(view.parts_s))
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": scaled(view.parts_s.values(), unit_s),
        "text": [f"{value / unit_s:.3g} {unit}" for value in view.parts_s.values()],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": COLOURS[0]},
        "hovertemplate": f"%{{y}}: %{{x:.4g}} {unit}<extra></extra>",
    }
    most = max(view.parts_s.values(), default=unit_s) / unit_s
    return figure(
        [bars],
        height=110 + 30 * len(names),
        x=axis(f"predicted time within the step ({unit})", range=[0, 1.18 * most]),
        y=axis(autorange="reversed", type="category"),
    )
