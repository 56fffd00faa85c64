"""Shares of terms, the front of expressions, paths against strength, spreads of constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.estimators import Comparison, Spread, Stability
from paceline.reports.plots._style import (
    COLOURS,
    LEGEND,
    NEUTRAL,
    Spec,
    axis,
    figure,
    log_axis,
    plain,
    shorten,
    unique,
)
from paceline.reports.views import FrontPoint, Share, StrengthPath

_BAR = 30  # pixels of a horizontal bar
_SEEN = 0.02  # of the time; smaller shares cannot be seen


def draw_shares(views: Sequence[Share]) -> Spec:
    """Return the share of every summand, over the measured rows and at the typical point."""
    names = unique([view.name for view in views])
    traces = []
    for field, name, colour in (
        ("at_point", "at the typical point", COLOURS[1]),
        ("mean", "mean over the measured rows", COLOURS[0]),
    ):
        values = [getattr(view, field) for view in views]
        if all(value is None for value in values):
            continue
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": [None if value is None else 100 * value for value in values],
                "name": name,
                "marker": {"color": colour},
                "customdata": [plain(view.label) for view in views],
                "hovertemplate": "%{customdata}: %{x:.3g} %<extra></extra>",
            }
        )
    return figure(
        traces,
        height=130 + 2 * _BAR * len(views),
        x=axis("share of the time (%)", range=[0, 100]),
        y=axis(autorange="reversed", type="category"),
        legend={**LEGEND, "traceorder": "reversed"},
        barmode="group",
        bargap=0.3,
    )


def draw_front(views: Sequence[FrontPoint]) -> Spec:
    """Return held-out error against the number of constants; the chosen expression is marked."""
    known = [view for view in views if view.error is not None]
    traces = []
    for chosen, name, colour in ((False, "tried", COLOURS[0]), (True, "chosen", COLOURS[1])):
        own = [view for view in known if view.is_chosen == chosen]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [view.n_constants for view in own],
                "y": [100 * (view.error or 0.0) for view in own],
                "error_y": {
                    "type": "data",
                    "array": [100 * (view.standard_error or 0.0) for view in own],
                    "thickness": 1.2,
                },
                "text": _front_labels(own, known),
                "textposition": "top right",
                "marker": {"size": 13 if chosen else 9, "color": colour},
                "customdata": [v.n_terms for v in own],
                "hovertemplate": "%{customdata} terms<br>"
                "%{x} constants, %{y:.3g} % held-out error<extra></extra>",
                "name": name,
                "cliponaxis": False,
            }
        )
    top = 112 * max(((v.error or 0.0) + (v.standard_error or 0.0) for v in known), default=0.01)
    return figure(
        traces,
        x=axis("independent constants of the expression"),
        y=axis("held-out error (%)", range=[0, top]),
    )


def _front_labels(own: Sequence[FrontPoint], known: Sequence[FrontPoint]) -> list[str]:
    """Return a word beside a point, unless another point would lie beneath it."""
    if not known:
        return []
    width = max(v.n_constants for v in known) - min(v.n_constants for v in known) or 1
    high = max(v.error or 0.0 for v in known) or 1.0
    labels = []
    for view in own:
        crowded = any(
            other is not view
            and not view.is_chosen
            and -0.02 <= (other.n_constants - view.n_constants) / width <= 0.12
            and abs((other.error or 0.0) - (view.error or 0.0)) / high < 0.1
            for other in known
        )
        plural = "s" if view.n_terms > 1 else ""
        labels.append("" if crowded else f"{view.n_terms} term{plural}")
    return labels


def draw_path(view: StrengthPath) -> Spec:
    """Return shares of the summands, powers and R² against the strength of the penalty."""
    shares = {n: v for n, v in view.shares.items() if max(v) >= _SEEN}
    there = {n for n in view.shares if n in shares}
    powers = {n: v for n, v in view.constants.items() if _is_power(n, there)}
    traces = [
        *_paths(view, {n: tuple(100 * x for x in v) for n, v in shares.items()}, "", "shares"),
        *_paths(view, powers, "2", "powers"),
        *_paths(view, {"R²": view.r2}, "3", "fit"),
    ]
    strength = f"strength λ of the {view.penalty.upper()} penalty (on scaled time)"
    return figure(
        traces,
        height=760,
        x=log_axis(strength, view.strengths, anchor="y3"),
        y=axis("share of the time (%)", domain=[0.7, 1.0], rangemode="tozero"),
        yaxis2=axis("power", domain=[0.35, 0.63]),
        yaxis3=axis("R²", domain=[0.0, 0.28], range=[min(0.0, *view.r2) - 0.05, 1.05]),
        legend={"x": 1.02, "y": 1.0, "yanchor": "top", "orientation": "v", "tracegroupgap": 24},
        margin={"l": 70, "r": 190, "t": 24, "b": 60},
        shapes=_mark(view.chosen),
    )


def _is_power(name: str, there: set[str]) -> bool:
    """Return whether a constant is a power of something that has a share of the time."""
    kind, _, rest = name.partition("[")
    return kind == "q" or (kind == "p" and rest.removesuffix("]") in there)


def _paths(
    view: StrengthPath, lines: Mapping[str, Sequence[float]], number: str, group: str
) -> list[Spec]:
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": list(view.strengths),
            "y": list(values),
            "name": shorten(name, 22),
            "yaxis": f"y{number}",
            "legendgroup": group,
            "line": {"width": 2, "color": COLOURS[place % len(COLOURS)]},
            "marker": {"size": 5},
        }
        for place, (name, values) in enumerate(lines.items())
    ]


def _mark(chosen: float | None) -> list[Spec]:
    if chosen is None or chosen <= 0:
        return []
    line = {"color": NEUTRAL, "dash": "dot"}
    x = {"x0": chosen, "x1": chosen, "xref": "x"}
    return [{"type": "line", **x, "y0": 0, "y1": 1, "yref": "paper", "line": line}]


def draw_stability(view: Stability) -> Spec:
    """Return the spread of every constant over seeds and over the data, relative to itself."""
    moving = {n: s for n, s in view.spreads.items() if s.value and not s.problem}
    names = unique(list(moving))
    data = [
        _spread_trace(
            names,
            moving,
            [(s.low / s.value - 1, s.high / s.value - 1) for s in moving.values()],
            f"90 % interval, {view.n_bootstrap} resamplings of the data",
            COLOURS[0],
        ),
        _spread_trace(
            names,
            moving,
            [((-s.seed_sd) / s.value, s.seed_sd / s.value) for s in moving.values()],
            f"± one standard deviation over {view.n_seeds} seeds",
            COLOURS[1],
        ),
    ]
    return figure(
        data,
        height=140 + 24 * len(names),
        x=axis("deviation from the fitted value (%)", range=[-150, 150]),
        y=axis(autorange="reversed", type="category"),
    )


def _spread_trace(
    names: Sequence[str],
    spreads: Mapping[str, Spread],
    limits: Sequence[tuple[float, float]],
    name: str,
    colour: str,
) -> Spec:
    low = [100 * min(pair) for pair in limits]
    high = [100 * max(pair) for pair in limits]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [0.0] * len(names),
        "y": list(names),
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": high,
            "arrayminus": [-value for value in low],
            "color": colour,
            "thickness": 3,
            "width": 5,
        },
        "marker": {"color": colour, "size": 6},
        "name": name,
        "customdata": [[s.value, s.low, s.high] for s in spreads.values()],
        "hovertemplate": "%{y}: %{customdata[0]:.4g}, from %{customdata[1]:.4g} to "
        "%{customdata[2]:.4g}<extra></extra>",
    }


def draw_comparison(comparison: Comparison) -> Spec:
    """Return the held-out error of every form and black box."""
    rows = [row for row in comparison.rows if row.scores is not None]
    errors = [100 * row.scores.mape for row in rows if row.scores is not None]
    shapes = []
    if comparison.floor is not None:
        x = {"x0": 100 * comparison.floor, "x1": 100 * comparison.floor}
        line = {"color": NEUTRAL, "dash": "dash"}
        shapes = [{"type": "line", **x, "y0": 0, "y1": 1, "yref": "paper", "line": line}]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": unique([row.name for row in rows]),
        "x": errors,
        "text": [f"{error:.3g} %" for error in errors],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": COLOURS[0]},
        "hovertemplate": "%{y}: %{x:.3g} %<extra></extra>",
    }
    return figure(
        [bars],
        height=100 + _BAR * len(rows),
        x=axis(
            "held-out mean absolute percentage error (%)", range=[0, 1.15 * max(errors, default=1)]
        ),
        y=axis(autorange="reversed", type="category"),
        shapes=shapes,
    )
