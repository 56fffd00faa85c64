"""How fast a form goes wrong outside the measured range: tried at the end of that range.

Rows with the largest numbers of devices are predicted by a fit of the same form without them.
What they are off by, for their distance from the others, says how intervals must grow.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from paceline.dataset import Dataset, counts_all_devices, widen
from paceline.errors import PacelineWarning
from paceline.estimators._columns import Array
from paceline.estimators._difficulty import Difficulty
from paceline.estimators._forms import Fitted
from paceline.estimators._intervals import COVERAGE, WIDENING, log_residuals
from paceline.estimators._measured import MeasuredRange
from paceline.estimators._threads import one_thread

_MOST = 30.0
_LEAST_ROWS = 10  # at the end of the range: fewer say little
_MOST_SHARE = 0.4  # of all rows
_LEAST_VALUES = 2  # that must be left
_LEAST_STEP = 0.15  # of the measured span, from them to the end: nearer, errors tell of noise


def learn_widening(
    fitted: Fitted,
    dataset: Dataset,
    groups: Any,
    difficulty: Difficulty | None,
    width: float | None,
) -> float:
    """Return how many times its width an interval gains one measured span outside.

    Parameters
    ----------
    fitted
        The form that was chosen.
    dataset, groups
        What it was fitted to, and which rows belong together.
    difficulty, width
        Of intervals within the measured range.
    """
    ends = _ends(dataset)
    if width is None or not len(ends):
        return WIDENING
    others = np.setdiff1d(np.arange(dataset.n_rows), ends)
    inner, beyond = dataset.take(others), dataset.take(ends)
    distance = np.sum(list(MeasuredRange.of(inner).outside(beyond.X).values()), axis=0)
    unit = 1.0 if difficulty is None else difficulty.at(beyond.X)
    predicted = _predict(fitted, inner, np.asarray(groups)[others], beyond)
    sizes = log_residuals(np.asarray(beyond.y, dtype=float), predicted)
    needed = (sizes / np.maximum(width * unit, 1e-9) - 1.0) / distance
    return float(np.clip(np.quantile(needed, COVERAGE), WIDENING, _MOST))


def _ends(dataset: Dataset) -> Any:
    """Return the rows with the largest numbers of devices; none where too little is left."""
    name = next((n for n in dataset.extrinsic if counts_all_devices(n)), None)
    nothing = np.empty(0, dtype=np.intp)
    if name is None:
        return nothing
    values = dataset.X[name].to_numpy(dtype=float)
    distinct = np.unique(values)
    for i in range(len(distinct) - 1, _LEAST_VALUES - 1, -1):
        ends = np.flatnonzero(values >= distinct[i])
        step = np.log(distinct[i] / distinct[i - 1]) / np.log(distinct[i - 1] / distinct[0])
        if len(ends) > _MOST_SHARE * len(values):
            break
        if len(ends) >= _LEAST_ROWS and step >= _LEAST_STEP:
            return ends
    return nothing


def _predict(fitted: Fitted, inner: Dataset, groups: Any, beyond: Dataset) -> Array:
    """Return what a fit to the inner rows alone says of those beyond."""
    if fitted.form == "generic":
        quick = clone(fitted.estimator).set_params(solver="quick")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PacelineWarning)
            found: Array = quick.fit(inner.X, inner.y).predict(beyond.X)
        return found
    posynomial = getattr(fitted.estimator, "posynomial_", fitted.estimator)
    columns = [str(name) for name in posynomial.feature_names_in_]
    with one_thread():
        expression = posynomial.regrow(widen(inner).X[columns], inner.y, groups)
    return np.asarray(expression.evaluate(widen(beyond).X[columns]))
