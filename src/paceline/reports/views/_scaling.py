"""How the time goes with what a job is scaled by: curve, interval, ideal line, knee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.dataset import Dataset, counts_all_devices
from paceline.errors import InvalidInputError
from paceline.estimators import FitResult
from paceline.oracle import Knee, knee
from paceline.reports.views._rows import predict_rows

Array = NDArray[np.float64]

_BEYOND = 8  # how many times the largest measured number of devices is shown
_MOST_DEVICES = 4096
_N_VALUES = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAt:
    """Measured times with one value of the parameter, moved to the point by the model.

    A row was measured elsewhere: its ratio measured / predicted times the prediction at the point
    says what it would have been here. `low_s` to `high_s` hold 90 % of them.
    """

    value: float
    n_rows: int
    low_s: float
    median_s: float
    high_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingCurve:
    """The time along one parameter, all others at a point.

    Parameters
    ----------
    name
        The parameter.
    is_devices
        Whether it counts all devices.
    point
        Where the others are.
    values, predicted_s, lower_s, upper_s
        The curve with its 90 % interval (NaN where there is none).
    measured_to
        The largest measured value; beyond it the model extrapolates.
    ideal_s
        What the time would be if it scaled without loss from the first value on; None when the
        basis does not say.
    speedup, lower_speedup, upper_speedup, ideal_speedup
        Rate of training over that with the first value; None without a basis.
    knee
        Devices beyond which a doubling gains less than 10 %; None without a basis.
    measured
        What was measured, moved to the point.
    """

    name: str
    is_devices: bool
    point: Mapping[str, float | str]
    values: tuple[float, ...]
    predicted_s: tuple[float, ...]
    lower_s: tuple[float, ...]
    upper_s: tuple[float, ...]
    measured_to: float
    ideal_s: tuple[float, ...] | None
    speedup: tuple[float, ...] | None
    lower_speedup: tuple[float, ...] | None
    upper_speedup: tuple[float, ...] | None
    ideal_speedup: tuple[float, ...] | None
    knee: Knee | None
    measured: tuple[MeasuredAt, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


def view_scaling(
    dataset: Dataset,
    fit: FitResult,
    *,
    at: Mapping[str, Any] | None = None,
    rows: pd.DataFrame | None = None,
) -> tuple[ScalingCurve, ...]:
    """Return one curve per number that scales the job, devices first.

    Parameters
    ----------
    dataset, fit
        What was measured, and the model.
    at
        The point; what is not named takes its typical measured value.
    rows
        What `predict_rows` gave; None: predict them.
    """
    rows = predict_rows(dataset, fit) if rows is None else rows
    names = [n for n in fit.estimator.extrinsic if n in fit.measured.ranges]
    names = sorted(names, key=lambda n: not counts_all_devices(n))
    return tuple(_curve(dataset, fit, name, dict(at or {}), rows) for name in names)


def _curve(
    dataset: Dataset, fit: FitResult, name: str, at: dict[str, Any], rows: pd.DataFrame
) -> ScalingCurve:
    is_devices = counts_all_devices(name)
    own = fit.measured.read(dataset.X)[name].to_numpy()
    values = _values(own, is_devices)
    frame = _along(fit, name, at, values)
    predicted = fit.predict(frame)
    ideal = fit.basis.ideal_device_power if is_devices else None
    return ScalingCurve(
        name=name,
        is_devices=is_devices,
        point={str(n): _plain(frame[n].iloc[0]) for n in frame if n != name},
        values=tuple(values.tolist()),
        predicted_s=tuple(predicted["predicted_s"].tolist()),
        lower_s=tuple(predicted["lower_s"].tolist()),
        upper_s=tuple(predicted["upper_s"].tolist()),
        measured_to=float(own.max()),
        **_scaled(values, predicted, ideal),
        measured=_measured(own, rows, dict(zip(values, predicted["predicted_s"], strict=True))),
    )


def _values(own: Array, is_devices: bool) -> Array:
    """Return where the curve is drawn: every measured value, and doublings beyond for devices."""
    distinct: Array = np.unique(own)
    low, high = distinct[0], distinct[-1]
    if is_devices and low > 0:
        most = max(min(high * _BEYOND, _MOST_DEVICES), high)
        doubled = low * 2.0 ** np.arange(0, 1 + np.floor(np.log2(most / low)))
        return np.unique(np.concatenate([doubled, distinct[:_N_VALUES]]))
    if len(distinct) <= _N_VALUES or low <= 0:
        return np.asarray(distinct[:: max(1, len(distinct) // _N_VALUES)])
    places = np.searchsorted(distinct, np.geomspace(low, high, _N_VALUES)).clip(
        0, len(distinct) - 1
    )
    return np.asarray(distinct[np.unique(places)])


def _along(fit: FitResult, name: str, at: dict[str, Any], values: Array) -> pd.DataFrame:
    row, _ = fit.measured.complete({n: v for n, v in at.items() if n != name})
    frame = pd.concat([row] * len(values), ignore_index=True)
    frame[name] = values
    return frame


def _scaled(values: Array, predicted: pd.DataFrame, ideal: float | None) -> dict[str, Any]:
    """Return ideal line, speedup and knee, or None for each when the basis does not say."""
    if ideal is None:
        names = ("ideal_s", "speedup", "lower_speedup", "upper_speedup", "ideal_speedup", "knee")
        return dict.fromkeys(names)
    ratio = values / values[0]
    work = ratio ** (
        1.0 + ideal
    )  # samples of a step grow with the devices at a fixed device batch
    times = {n: predicted[f"{n}_s"].to_numpy() for n in ("predicted", "lower", "upper")}
    first = times["predicted"][0]
    speedup = work * first / times["predicted"]
    return {
        "ideal_s": tuple((first * ratio**ideal).tolist()),
        "speedup": tuple(speedup.tolist()),
        "lower_speedup": tuple((work * first / times["upper"]).tolist()),
        "upper_speedup": tuple((work * first / times["lower"]).tolist()),
        "ideal_speedup": tuple(ratio.tolist()),
        "knee": _knee(values, speedup),
    }


def _knee(values: Array, speedup: Array) -> Knee | None:
    try:
        return knee([int(v) for v in values], speedup)
    except InvalidInputError:  # one value only, or fractions of devices
        return None


def _measured(
    own: Array, rows: pd.DataFrame, here_s: Mapping[float, float]
) -> tuple[MeasuredAt, ...]:
    ratio = (rows["measured_s"] / rows["predicted_s"]).to_numpy()
    found = []
    for value, time_s in here_s.items():
        moved = ratio[own == value] * time_s
        if len(moved):
            low, median, high = np.quantile(moved, [0.05, 0.5, 0.95]).tolist()
            found.append(
                MeasuredAt(
                    value=float(value),
                    n_rows=len(moved),
                    low_s=low,
                    median_s=median,
                    high_s=high,
                )
            )
    return tuple(found)


def _plain(value: Any) -> float | str:
    return value if isinstance(value, str) else float(value)
