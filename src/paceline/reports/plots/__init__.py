"""Figures from views: ``draw_*`` gives Plotly's JSON as plain data, ``plot_*`` a live figure.

The report embeds what ``draw_*`` gives; notebooks call ``plot_*``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paceline.estimators import Comparison, Stability
from paceline.reports.plots._model import (
    draw_comparison,
    draw_front,
    draw_path,
    draw_shares,
    draw_stability,
)
from paceline.reports.plots._oracle import draw_gantt, draw_plan_parts, draw_survey
from paceline.reports.plots._phases import draw_phases, draw_speedup, draw_workers
from paceline.reports.plots._rows import draw_agreement, draw_residuals
from paceline.reports.plots._scaling import draw_scaling
from paceline.reports.views import (
    Agreement,
    FrontPoint,
    PhaseBar,
    PlanView,
    Residuals,
    ScalingCurve,
    Share,
    SpeedupCurve,
    StrengthPath,
    SurveyView,
    WorkerBar,
)

__all__ = [
    "draw_agreement",
    "draw_comparison",
    "draw_front",
    "draw_gantt",
    "draw_path",
    "draw_phases",
    "draw_plan_parts",
    "draw_residuals",
    "draw_scaling",
    "draw_shares",
    "draw_speedup",
    "draw_stability",
    "draw_survey",
    "draw_workers",
    "plot_agreement",
    "plot_comparison",
    "plot_front",
    "plot_gantt",
    "plot_path",
    "plot_phases",
    "plot_plan_parts",
    "plot_residuals",
    "plot_scaling",
    "plot_shares",
    "plot_speedup",
    "plot_stability",
    "plot_survey",
    "plot_workers",
]


def _plot(draw: Callable[..., dict[str, Any]], *views: Any) -> Any:
    """Return a live figure; Plotly is imported only now."""
    import plotly.graph_objects

    return plotly.graph_objects.Figure(draw(*views))


def plot_agreement(view: Agreement) -> Any:
    """Plot predicted against measured times."""
    return _plot(draw_agreement, view)


def plot_residuals(views: Sequence[Residuals]) -> Any:
    """Plot residuals along every parameter."""
    return _plot(draw_residuals, views)


def plot_shares(views: Sequence[Share]) -> Any:
    """Plot the share of every summand."""
    return _plot(draw_shares, views)


def plot_front(views: Sequence[FrontPoint]) -> Any:
    """Plot the expressions that were tried: error against complexity."""
    return _plot(draw_front, views)


def plot_path(view: StrengthPath) -> Any:
    """Plot constants and R² against the strength of the penalty."""
    return _plot(draw_path, view)


def plot_stability(view: Stability) -> Any:
    """Plot the spread of every constant."""
    return _plot(draw_stability, view)


def plot_scaling(view: ScalingCurve) -> Any:
    """Plot time and speedup along a parameter."""
    return _plot(draw_scaling, view)


def plot_phases(views: Sequence[PhaseBar]) -> Any:
    """Plot phases stacked."""
    return _plot(draw_phases, views)


def plot_speedup(views: Sequence[SpeedupCurve]) -> Any:
    """Plot measured and predicted speedup."""
    return _plot(draw_speedup, views)


def plot_workers(views: Sequence[WorkerBar]) -> Any:
    """Plot what every worker spends by phase."""
    return _plot(draw_workers, views)


def plot_comparison(comparison: Comparison) -> Any:
    """Plot the held-out error of every form and black box."""
    return _plot(draw_comparison, comparison)


def plot_survey(view: SurveyView) -> Any:
    """Plot rate and memory of every strategy."""
    return _plot(draw_survey, view)


def plot_gantt(view: PlanView) -> Any:
    """Plot when every pass of a plan runs."""
    return _plot(draw_gantt, view)


def plot_plan_parts(view: PlanView) -> Any:
    """Plot the parts of a plan's predicted step."""
    return _plot(draw_plan_parts, view)
