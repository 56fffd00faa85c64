"""What-if questions to a fitted model: one point, a curve through it, and what would halve it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import counts_all_devices, counts_what, level_name
from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.estimators import FitResult
from paceline.oracle import knee

_MOST_STOPS = 65
_BEYOND = 8  # how far beyond the measured range a number that scales the job may be moved
_COLUMNS = ("predicted_s", "lower_s", "upper_s", "extrapolates")


def list_parameters(fit: FitResult) -> dict[str, Any]:
    """Return every parameter with the values that it can be moved to, and the typical point."""
    measured, extrinsic = fit.measured, list(fit.estimator.extrinsic)
    numeric = [
        {
            "name": name,
            "role": "extrinsic" if name in extrinsic else "intrinsic",
            "low": low,
            "high": high,
            "whole": _is_whole(fit, name),
            "stops": stops_of(fit, name),
        }
        for name, (low, high) in measured.ranges.items()
    ]
    categorical = [{"name": n, "levels": sorted(known)} for n, known in measured.levels.items()]
    axes = _axes(fit)
    return {
        "numeric": sorted(numeric, key=lambda p: axes.index(str(p["name"]))),
        "categorical": categorical,
        "point": measured.typical(),
        "axes": axes,
        "basis": str(fit.basis),
        "time_per": fit.basis.time_per,
        "covers": fit.covers,
        "form": fit.form,
    }


def answer_what_if(fit: FitResult, point: Mapping[str, Any], over: str | None) -> dict[str, Any]:
    """Return the time at a point and along one parameter through it.

    Parameters
    ----------
    fit
        The model.
    point
        Values of parameters; what is not named takes its typical measured value.
    over
        The numeric parameter of the curve; None: the number of devices, if there is one.
    """
    here = _complete(fit, point)
    name = over if over is not None else next(iter(_axes(fit)), None)
    if name is not None and name not in fit.measured.ranges:
        raise InvalidInputError(
            f"A curve must go over a numeric parameter, but {name[:60]!r} is none. "
            f"Known: {', '.join(fit.measured.ranges)}."
        )
    values = [] if name is None else _curve_values(fit, name)
    # all rows at once: most of the time of a prediction does not grow with them
    rows = pd.DataFrame({n: [value] * (1 + len(values)) for n, value in here.items()})
    if name is not None:
        rows[name] = [here[name], *values]
    predicted = _predict_first(fit, rows)
    return {
        "point": here,
        "prediction": predicted.iloc[0].to_dict(),
        "outside": [*_outside(fit, here), *_apart(fit, rows)],
        "curve": None if name is None else _curve(fit, name, values, predicted.iloc[1:]),
    }


def _complete(fit: FitResult, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for every parameter, the typical one where none is given."""
    for name in point:
        if name not in fit.measured.names:
            raise UnknownNameError("parameter", name[:60], fit.measured.names)
    return {n: point.get(n, value) for n, value in fit.measured.typical().items()}


def _outside(fit: FitResult, here: Mapping[str, Any]) -> list[str]:
    return [f"{n}: {fit.measured.describe(n)}" for n in here if _is_outside(fit, n, here)]


def _apart(fit: FitResult, rows: pd.DataFrame) -> list[str]:
    """Return which levels of the first row were not measured together."""
    X = fit.measured.read(rows.iloc[:1])
    far = {n: distance for n, distance in fit.outside(X).items() if n not in fit.measured.names}
    return [f"{n}: not measured together" for n, distance in far.items() if distance[0] > 0]


def _is_outside(fit: FitResult, name: str, point: Mapping[str, Any]) -> bool:
    """Return whether a value that could be predicted at lies outside of what was measured."""
    if name in fit.measured.levels:
        return level_name(point[name]) not in fit.measured.levels[name]
    low, high = fit.measured.ranges[name]
    return not low <= float(point[name]) <= high


def find_halving(fit: FitResult, point: Mapping[str, Any]) -> dict[str, Any]:
    """Return for every parameter the nearest value that halves the time, or the best it does."""
    row, _ = fit.measured.complete(point)
    moves = [
        (name, value)
        for name in fit.measured.names
        for value in _moves(fit, name)
        if value != row[name].iloc[0]
    ]
    rows = pd.concat([row] * (1 + len(moves)), ignore_index=True)
    for i, (name, value) in enumerate(moves, start=1):
        rows.loc[i, name] = value
    predicted = _predict_first(fit, rows)
    now_s = float(predicted["predicted_s"].iloc[0])
    table = predicted.iloc[1:].assign(
        name=[name for name, _ in moves], value=[value for _, value in moves]
    )
    table = table[np.isfinite(table["predicted_s"])]
    found = [
        _best_move(part, now_s, row[name].iloc[0])
        for name, part in table.groupby("name", sort=False)
    ]
    found.sort(key=lambda move: (not move["halves"], move["predicted_s"]))
    return {"now_s": now_s, "moves": found}


def _best_move(part: pd.DataFrame, now_s: float, now: Any) -> dict[str, Any]:
    """Return the nearest value that halves the time; else the one with the least time."""
    enough = part[part["predicted_s"] <= 0.5 * now_s]
    if len(enough) and not isinstance(now, str):
        far = np.abs(enough["value"].to_numpy(dtype=float) - float(now))
        chosen = enough.iloc[int(np.argmin(far))]
    else:
        chosen = part.iloc[int(np.argmin(part["predicted_s"].to_numpy()))]
    return {
        "name": chosen["name"],
        "now": now,
        "value": chosen["value"],
        "predicted_s": float(chosen["predicted_s"]),
        "ratio": float(chosen["predicted_s"]) / now_s if now_s > 0 else None,
        "halves": bool(len(enough)),
        "extrapolates": bool(chosen["extrapolates"]),
    }


def stops_of(fit: FitResult, name: str) -> list[float]:
    """Return the values that a numeric parameter can be moved to, rising."""
    low, high = fit.measured.ranges[name]
    is_scaled = name in fit.estimator.extrinsic
    top = high * _BEYOND if is_scaled and high > 0 else high
    bottom = max(low / _BEYOND, 1.0) if is_scaled and low >= 1 else low
    if bottom > 0 and top / bottom >= 8:
        grid = np.geomspace(bottom, top, _MOST_STOPS)
    else:
        grid = np.linspace(bottom, top, _MOST_STOPS)
    marks = [low, high, fit.measured.medians[name]]
    if counts_what(name) in ("devices", "batch") and bottom > 0:
        grid = bottom * 2.0 ** np.arange(1 + np.floor(np.log2(top / bottom)))
        marks += np.geomspace(low, high, 9).tolist()
    values = np.concatenate([grid, marks])
    if _is_whole(fit, name):
        return [float(v) for v in np.unique(np.round(values)).tolist()]
    rounded = {float(f"{v:.4g}") for v in grid if low <= v <= high or is_scaled}
    return sorted({*rounded, float(low), float(high), float(fit.measured.medians[name])})


def _moves(fit: FitResult, name: str) -> Sequence[Any]:
    return fit.measured.levels[name] if name in fit.measured.levels else stops_of(fit, name)


def _axes(fit: FitResult) -> list[str]:
    """Return the numeric parameters: devices first, then what else scales the job."""
    extrinsic = list(fit.estimator.extrinsic)
    return sorted(
        fit.measured.ranges,
        key=lambda n: (not counts_all_devices(n), counts_what(n) != "devices", n not in extrinsic),
    )


def _is_whole(fit: FitResult, name: str) -> bool:
    return all(float(value).is_integer() for value in fit.measured.ranges[name])


def _curve_values(fit: FitResult, name: str) -> list[float]:
    low, high = fit.measured.ranges[name]
    if counts_what(name) == "devices" and low > 0:
        top = max(min(high * _BEYOND, 4096.0), high)
        doubled = low * 2.0 ** np.arange(1 + np.floor(np.log2(top / low)))
        return sorted({*doubled.tolist(), low, high})
    stops = stops_of(fit, name)
    places = np.unique(np.linspace(0, len(stops) - 1, 25).round().astype(int))
    return [stops[i] for i in places]


def _curve(fit: FitResult, name: str, values: list[float], rows: pd.DataFrame) -> dict[str, Any]:
    n, times = np.array(values), rows["predicted_s"].to_numpy(dtype=float)
    low, high = fit.measured.ranges[name]
    curve: dict[str, Any] = {
        "name": name,
        "values": values,
        **{column: rows[column].tolist() for column in _COLUMNS},
        "measured_from": low,
        "measured_to": high,
        "ideal_s": None,
        "knee": None,
    }
    power = fit.basis.ideal_device_power
    is_known = counts_all_devices(name) and power is not None and bool(np.isfinite(times).all())
    if not is_known or power is None or not (n > 0).all() or not (times > 0).all():
        return curve
    # samples of a step grow with the devices at a fixed device batch
    rate = (n / n[0]) ** (1.0 + power) * times[0] / times
    curve["ideal_s"] = times[0] * (n / n[0]) ** power
    if _is_whole(fit, name) and len(n) > 1:
        curve["knee"] = knee([int(v) for v in n], rate)
    return curve


def _predict_first(fit: FitResult, rows: pd.DataFrame) -> pd.DataFrame:
    """Predict rows of which the first must be possible; the others are NaN where they are not."""
    try:
        return fit.predict(rows)
    except (InvalidInputError, InfeasibleError):
        first = fit.predict(rows.iloc[:1])
        return pd.concat([first, _predict_possible(fit, rows.iloc[1:])])


def _predict_possible(fit: FitResult, rows: pd.DataFrame) -> pd.DataFrame:
    """Predict the rows that can be; halve what cannot until the culprits are alone."""
    if not len(rows):
        return pd.DataFrame({name: [] for name in _COLUMNS}, dtype=float)
    try:
        return fit.predict(rows)
    except (InvalidInputError, InfeasibleError):
        if len(rows) == 1:
            nothing = dict.fromkeys(_COLUMNS, np.nan) | {"extrapolates": 1}
            return pd.DataFrame([nothing], index=rows.index)
        half = len(rows) // 2
        parts = (rows.iloc[:half], rows.iloc[half:])
        return pd.concat([_predict_possible(fit, part) for part in parts])
