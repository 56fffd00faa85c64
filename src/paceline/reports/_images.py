"""Scaling curves as PNG and SVG, ready for a proposal; needs matplotlib."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, MissingDependencyError
from paceline.estimators import FitResult
from paceline.reports.views import ScalingCurve, view_scaling

_BLUE, _ORANGE, _RED, _GREY = "#3b82c4", "#e08214", "#d1495b", "#8c8c8c"
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def save_scaling_images(dataset: Dataset, fit: FitResult, folder: str | Path) -> tuple[Path, ...]:
    """Write every scaling curve as ``scaling-NAME.png`` and ``.svg``; return the paths.

    Raises
    ------
    MissingDependencyError
        When matplotlib is not installed.
    """
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError("Images", "matplotlib", "images") from error
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"--images must name a folder, but {folder!r} cannot be one: {error.strerror}."
        ) from error
    per = fit.basis.time_per
    paths: list[Path] = []
    for curve in view_scaling(dataset, fit):
        figure = draw_image(curve, f"time per {per}" if per else "time", matplotlib.figure.Figure)
        stem = target / f"scaling-{re.sub(r'[^A-Za-z0-9_-]+', '-', curve.name)}"
        for ending, settings in ((".png", {"dpi": 200}), (".svg", {})):
            path = stem.with_name(stem.name + ending)
            figure.savefig(path, **settings)
            paths.append(path)
    return tuple(paths)


def draw_image(curve: ScalingCurve, time: str, make_figure: Any) -> Any:
    """Return a curve as a figure of matplotlib, time and speedup side by side."""
    panels = 1 if curve.speedup is None else 2
    figure = make_figure(figsize=(5.2 * panels, 4.0), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    _time_panel(axes[0], curve, time)
    if panels == 2:
        _speedup_panel(axes[1], curve)
    for axis in axes:
        _finish(axis, curve)
    return figure


def _time_panel(axis: Any, curve: ScalingCurve, time: str) -> None:
    largest = max(curve.predicted_s)
    unit_s, unit = next((u for u in _UNITS if largest >= u[0]), _UNITS[-1])
    _band(axis, curve.values, curve.lower_s, curve.upper_s, unit_s)
    axis.plot(curve.values, np.divide(curve.predicted_s, unit_s), "o-", color=_BLUE,
              label="predicted")  # fmt: skip
    if curve.ideal_s is not None:
        axis.plot(curve.values, np.divide(curve.ideal_s, unit_s), "--", color=_GREY, label="ideal")
    if curve.measured:
        low, middle, high = (
            np.array([getattr(m, name) for m in curve.measured]) / unit_s
            for name in ("low_s", "median_s", "high_s")
        )
        places = [m.value for m in curve.measured]
        axis.errorbar(places, middle, [middle - low, high - middle], fmt="D", color=_ORANGE,
                      capsize=3, label="measured, moved to this point")  # fmt: skip
    shown = [*curve.predicted_s, *(curve.ideal_s or ())]
    axis.set_ylim(min(shown) / unit_s / 4, max(shown) / unit_s * 4)
    axis.set_ylabel(f"{time} ({unit})")


def _speedup_panel(axis: Any, curve: ScalingCurve) -> None:
    ideal = curve.ideal_speedup or ()
    _band(axis, curve.values, curve.lower_speedup or (), curve.upper_speedup or (), 1.0)
    axis.plot(curve.values, curve.speedup, "o-", color=_BLUE, label="predicted")
    axis.plot(curve.values, ideal, "--", color=_GREY, label="ideal")
    if curve.knee is not None and curve.knee.is_reached:
        n = curve.knee.n_devices
        axis.axvline(n, linestyle=":", color=_RED, label=f"knee: {n}")
    axis.set_ylim(min(0.7, *(curve.speedup or ())) / 1.1, max(ideal) * 1.3)
    axis.set_ylabel(f"speedup over {curve.values[0]:g} (×)")


def _band(
    axis: Any, values: Sequence[float], low: Sequence[float], high: Sequence[float], unit_s: float
) -> None:
    if np.isfinite([*low, *high]).all():
        axis.fill_between(values, np.divide(low, unit_s), np.divide(high, unit_s), color=_BLUE,
                          alpha=0.18, linewidth=0, label="90 % interval")  # fmt: skip


def _finish(axis: Any, curve: ScalingCurve) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    shown = list(curve.values)[:: max(1, len(curve.values) // 10)]
    axis.set_xticks(shown, [f"{v:g}" for v in shown], minor=False)
    axis.set_xticks([], minor=True)
    # a dollar sign in a name would begin a formula
    axis.set_xlabel(curve.name.replace("$", r"\$"))
    axis.grid(alpha=0.3)
    axis.legend(fontsize="small", frameon=False)
