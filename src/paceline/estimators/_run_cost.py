"""What a whole run takes: hours, device-hours and money, from the time of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import counts_all_devices, global_batch_columns
from paceline.errors import InvalidInputError
from paceline.estimators._columns import Array
from paceline.estimators._result import FitResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is to be trained.

    Parameters
    ----------
    n_samples
        Samples of one epoch.
    n_epochs
        Epochs.
    price
        Of one device for one hour; None when money is not asked for.
    """

    n_samples: int
    n_epochs: float = 1.0
    price: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("samples", self.n_samples), ("epochs", self.n_epochs)):
            if not value > 0:
                raise InvalidInputError(f"`{name} > 0` must hold, but got {value}.")
        if self.price is not None and not self.price >= 0:
            raise InvalidInputError(f"`price >= 0` must hold, but got {self.price}.")


def predict_run(fit: FitResult, rows: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Return what runs take, one row each, with 90 % intervals.

    The columns are ``run_s``, ``device_hours`` and, with a price, ``money``, each with ``_lower``
    and ``_upper``, then ``samples_per_s`` and ``efficiency``: the rate of one device as a share
    of what a lone device does, where one device lies within the measured range.

    Raises
    ------
    InvalidInputError
        The model does not say what its time is of, or its rows do not say how large a batch is.
    """
    X = fit.measured.read(rows)
    predicted = fit.predict(rows)
    repeats = _repeats(fit, X, run)
    devices = _devices(X)
    table: dict[str, Any] = {}
    for end, column in (("", "predicted_s"), ("_lower", "lower_s"), ("_upper", "upper_s")):
        seconds = predicted[column].to_numpy() * repeats
        table[f"run_s{end}"] = seconds
        table[f"device_hours{end}"] = seconds * devices / 3600.0
        if run.price is not None:
            table[f"money{end}"] = seconds * devices / 3600.0 * run.price
    rate = run.n_samples * run.n_epochs / table["run_s"]
    table["samples_per_s"] = rate
    table["efficiency"] = rate / devices / _lone_rate(fit, X, run)
    return pd.DataFrame(table, index=rows.index)


def _repeats(fit: FitResult, X: pd.DataFrame, run: Run) -> Array:
    """Return how often the predicted time passes in the run."""
    per = fit.basis.time_per
    if per == "epoch":
        return np.full(len(X), run.n_epochs)
    if per == "sample":
        return np.full(len(X), run.n_samples * run.n_epochs)
    if per is None:
        raise InvalidInputError(
            "The time of a run needs to know what the model's time is of, but that is unknown. "
            "Fit again with --time-per step, epoch or sample."
        )
    return np.asarray(np.ceil(run.n_samples / _global_batch(X)) * run.n_epochs)


def batch_notes(fit: FitResult) -> tuple[str, ...]:
    """Return what is assumed of a batch whose name does not say whose it is."""
    above, _ = global_batch_columns(fit.measured.names)
    if fit.basis.time_per != "step" or fit.basis.batch is not None or not above:
        return ()
    return (
        f"`{above[0]}` is taken as the batch of all devices together; call it device_batch and "
        f"fit again if it is that of one.",
    )


def _global_batch(X: pd.DataFrame) -> Array:
    above, below = global_batch_columns([str(name) for name in X.columns])
    if not above:
        raise InvalidInputError(
            "The time of a run needs the size of a step's batch: a parameter `global_batch`, or "
            f"`device_batch` and `n_devices`; but got {', '.join(map(str, X.columns))}."
        )
    batch = np.ones(len(X))
    for name in above:
        batch = batch * X[name].to_numpy(dtype=float)
    for name in below:
        batch = batch / X[name].to_numpy(dtype=float)
    return batch


def _device_name(X: pd.DataFrame) -> str | None:
    return next((str(name) for name in X.columns if counts_all_devices(str(name))), None)


def _devices(X: pd.DataFrame) -> Array:
    name = _device_name(X)
    return np.ones(len(X)) if name is None else X[name].to_numpy(dtype=float)


def _lone_rate(fit: FitResult, X: pd.DataFrame, run: Run) -> Array:
    """Return the samples a second of one device; NaN where none was ever measured alone."""
    name = _device_name(X)
    if name is None or not fit.measured.ranges[name][0] <= 1.0:
        return np.full(len(X), np.nan)
    alone = X.assign(**{name: 1.0})
    seconds = fit.predict(alone)["predicted_s"].to_numpy() * _repeats(fit, alone, run)
    return np.asarray(run.n_samples * run.n_epochs / seconds)
