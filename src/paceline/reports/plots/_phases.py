"""Phases stacked, speedup beside the ideal, load of every worker, strategies, a plan's passes."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.reports.plots._style import (
    COLOURS,
    LEGEND,
    NEUTRAL,
    Spec,
    axis,
    figure,
    scaled,
    shorten,
    time_unit,
    unique,
)
from paceline.reports.views import PhaseBar, SpeedupCurve, WorkerBar

_BAR = 28


def draw_phases(views: Sequence[PhaseBar]) -> Spec:
    """Return phases stacked per network, framework and number of workers."""
    unit_s, unit = time_unit([max(sum(v.phases_s.values()), v.step_s or 0.0) for v in views])
    names = unique([_name(v.network, v.framework, v.n_workers) for v in views])
    traces = _stack(names, [v.phases_s for v in views], unit_s, unit)
    if any(view.step_s is not None for view in views):
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "y": names,
                "x": scaled([v.step_s for v in views], unit_s),
                "marker": {"symbol": "diamond-open", "size": 10, "color": NEUTRAL,
                           "line": {"width": 2}},
                "name": "whole step",
                "hovertemplate": f"whole step: %{{x:.4g}} {unit}<extra></extra>",
            }
        )  # fmt: skip
    return _bars(traces, len(names), f"mean time per step ({unit})")


def draw_workers(views: Sequence[WorkerBar]) -> Spec:
    """Return what every worker spends on its own work, by phase."""
    unit_s, unit = time_unit([sum(v.phases_s.values()) + v.wait_s for v in views])
    names = unique(
        [f"{_name(v.network, v.framework, v.n_workers)} · worker {v.worker}" for v in views]
    )
    parts = [{**v.phases_s, "wait": v.wait_s} for v in views]
    traces = _stack(names, parts, unit_s, unit)
    return _bars(traces, len(names), f"mean time per step ({unit})")


def _name(network: str, framework: str, n_workers: int) -> str:
    return f"{network} · {framework} · N={n_workers}"


def _stack(
    names: Sequence[str], parts: Sequence[dict[str, float]], unit_s: float, unit: str
) -> list[Spec]:
    phases = list(dict.fromkeys(phase for part in parts for phase in part))
    return [
        {
            "type": "bar",
            "orientation": "h",
            "y": list(names),
            "x": scaled([part.get(phase, 0.0) for part in parts], unit_s),
            "name": phase,
            "marker": {"color": COLOURS[i % len(COLOURS)]},
            "hovertemplate": f"{phase}: %{{x:.4g}} {unit}<extra></extra>",
        }
        for i, phase in enumerate(phases)
        if any(part.get(phase) for part in parts)
    ]


def _bars(traces: Sequence[Spec], n: int, title: str) -> Spec:
    return figure(
        traces,
        height=150 + _BAR * n,
        x=axis(title, rangemode="tozero"),
        y=axis(autorange="reversed", type="category", ticklabelstandoff=6),
        barmode="stack",
        legend={**LEGEND, "traceorder": "normal"},
        bargap=0.25,
    )


def draw_speedup(views: Sequence[SpeedupCurve]) -> Spec:
    """Return measured and predicted speedup against the number of workers, with the ideal line."""
    counts = sorted({n for view in views for n in view.n_workers})
    traces: list[Spec] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": counts,
            "y": counts,
            "name": "ideal",
            "line": {"color": NEUTRAL, "dash": "dash"},
        }
    ]
    for i, view in enumerate(views):
        name = shorten(f"{view.network} · {view.framework}")
        for values, how, dash, symbol in (
            (view.measured, "measured", "solid", "circle"),
            (view.predicted, "predicted", "dot", "x"),
        ):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "x": list(view.n_workers),
                    "y": list(values),
                    "name": f"{name}, {how}",
                    "line": {"color": COLOURS[i % len(COLOURS)], "dash": dash},
                    "marker": {"symbol": symbol, "size": 9},
                }
            )
    return figure(
        traces,
        height=max(440, 120 + 22 * len(traces)),
        x=axis("number of workers", tickvals=counts),
        y=axis("speedup over one worker (×)", rangemode="tozero"),
        legend={"x": 1.02, "y": 1.0, "yanchor": "top", "orientation": "v"},
    )
