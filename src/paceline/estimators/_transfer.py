"""Times on one device from times on another: few runs there, many here."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from paceline.errors import InvalidInputError

Array = NDArray[np.float64]

LEAST_ROWS = 3
_SMALL_SHARE = 1e-3  # a part that takes less of the time is as good as none
_STRENGTHS = np.logspace(-2, 3, 12)


def transfer_times(
    measured: pd.DataFrame, times: ArrayLike, asked: pd.DataFrame, *, time: str = "time_s"
) -> Array:
    """Predict times on another device from times and profiles on this one.

    The median of three members, so that one that is off does no harm: every part of the time
    scaled by a factor of its own (non-negative least squares on relative error); the logarithm of
    the ratio of both devices as a linear function, and as a smooth one, of the parts' shares and
    of the time. PROFET (Lee et al. 2022) takes the median of three regressors too, of the time
    itself; the members are ours.

    Parameters
    ----------
    measured
        Runs that were measured on both devices, as this one has them: its time, and parts of that
        time by kind of operation (convolutions, pooling …) in any unit, or none.
    times
        Their times on the other device, in any unit: predictions have the same.
    asked
        Runs measured on this device only, with the same columns.
    time
        Name of the column with this device's time.

    Returns
    -------
    array of float
        One time on the other device for every row of `asked`.

    Examples
    --------
    >>> here = pd.DataFrame({"time_s": [1.0, 2.0, 4.0, 8.0]})
    >>> there = transfer_times(here.iloc[:3], [0.5, 1.0, 2.0], here.iloc[3:])
    >>> there.round(1).tolist()
    [4.0]
    """
    known, y, wanted = _check(measured, times, asked, time)
    members = [_scale_parts(known, y, wanted, time), *_scale_ratio(known, y, wanted, time)]
    return np.asarray(np.median(members, axis=0))


def _check(
    measured: pd.DataFrame, times: ArrayLike, asked: pd.DataFrame, time: str
) -> tuple[pd.DataFrame, Array, pd.DataFrame]:
    y = np.asarray(times, dtype=float)
    if time not in measured or set(measured) != set(asked):
        raise InvalidInputError(
            f"Both tables must have the same columns, `{time}` among them, but got "
            f"{list(measured)} and {list(asked)}."
        )
    if len(y) != len(measured) or len(y) < LEAST_ROWS:
        raise InvalidInputError(
            f"At least {LEAST_ROWS} runs must have been measured on both devices, but got "
            f"{len(measured)} rows and {len(y)} times."
        )
    wanted = asked[list(measured)]
    low = min(float(y.min()), float(measured[time].min()), float(wanted[time].min()))
    if not low > 0 or (measured < 0).any(axis=None) or (wanted < 0).any(axis=None):
        raise InvalidInputError(
            f"Times must be positive and their parts not negative, but got {low:g} at the least."
        )
    return measured, y, wanted


def _scale_parts(known: pd.DataFrame, y: Array, wanted: pd.DataFrame, time: str) -> Array:
    """Return the sum of every part times its own factor, and a constant."""
    parts = [name for name in known if name != time] or [time]
    scale = np.maximum(known[parts].to_numpy(float).max(axis=0), 1e-300)
    tables = (frame[parts].to_numpy(float) / scale for frame in (known, wanted))
    here, there = (np.column_stack([table, np.ones(len(table))]) for table in tables)
    factors, _ = nnls(here / y[:, None], np.ones(len(y)))
    return np.asarray(there @ factors)


def _scale_ratio(
    known: pd.DataFrame, y: Array, wanted: pd.DataFrame, time: str
) -> tuple[Array, Array]:
    """Return time here times a ratio, linear in the features, and smooth in them."""
    from sklearn.kernel_ridge import KernelRidge  # slow to import, and rarely wanted
    from sklearn.linear_model import RidgeCV
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(_features(known, time))
    here, there = (scaler.transform(_features(frame, time)) for frame in (known, wanted))
    ratio = np.log(y / known[time].to_numpy(float))
    middle = ratio.mean()
    linear = RidgeCV(_STRENGTHS).fit(here, ratio).predict(there)
    # as wide as about five standard deviations of one feature: few rows, smooth ratios
    smooth = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.02).fit(here, ratio - middle)
    base = wanted[time].to_numpy(float)
    return base * np.exp(linear), base * np.exp(smooth.predict(there) + middle)


def _features(frame: pd.DataFrame, time: str) -> Array:
    seconds = frame[time].to_numpy(float)
    parts = frame.drop(columns=time).to_numpy(float)
    total = parts.sum(axis=1, keepdims=True)
    shares = parts / np.where(total > 0, total, 1.0)
    return np.column_stack([np.log(shares + _SMALL_SHARE), np.log(seconds)])
