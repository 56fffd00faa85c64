"""Free symbolic regression as a member of the comparison: Operon, by genetic programming.

Needs `pip install 'paceline[symbolic]'` (pyoperon, MIT licence). It is given logarithms of the
numbers and of the times, so that powers and sums of them are short, and a 0 or 1 for every level.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Self

import numpy as np
import pandas as pd

SYMBOLS = "add,sub,mul,div,exp,log,sqrt,constant,variable"
MAX_LENGTH = 100
MAX_EVALUATIONS = 200_000  # work, not seconds: equal on every machine
BEYOND = 1.0  # logarithms by which a prediction may leave the fitted times


class SymbolicRegressor:
    """Search for any formula of the log-time; predictions stay near the fitted times.

    Parameters
    ----------
    categorical
        Columns of labels.
    random_state
        Seed.
    """

    def __init__(self, categorical: Sequence[str], random_state: int = 0) -> None:
        self.categorical, self.random_state = list(categorical), random_state

    def fit(self, X: pd.DataFrame, y: pd.Series) -> Self:
        """Search with a budget that is counted in evaluations."""
        self.levels_ = {c: sorted(set(X[c].astype(str))) for c in self.categorical}
        log_times = np.log(np.asarray(y, dtype=float))
        self.limits_ = log_times.min() - BEYOND, log_times.max() + BEYOND
        self.search_ = search(self.random_state)
        self.search_.fit(self._places(X), log_times)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the time in seconds of every row of `X`."""
        found = self.search_.predict(self._places(X)).ravel()
        return np.exp(np.clip(np.nan_to_num(found, nan=np.mean(self.limits_)), *self.limits_))

    def _places(self, X: pd.DataFrame) -> np.ndarray:
        numbers = X.drop(columns=self.categorical).to_numpy(float)
        columns = [np.log(np.maximum(numbers, 1e-9))]
        for name, levels in self.levels_.items():
            columns.append(X[name].astype(str).to_numpy()[:, None] == np.array(levels))
        return np.column_stack(columns).astype(float)


def search(random_state: int) -> object:
    try:
        from pyoperon.sklearn import SymbolicRegressor as Operon
    except ImportError:
        sys.exit("The member `symbolic` needs pyoperon. Try: pip install 'paceline[symbolic]'")
    return Operon(
        allowed_symbols=SYMBOLS,
        max_length=MAX_LENGTH,
        optimizer_iterations=5,
        generations=MAX_EVALUATIONS,
        max_evaluations=MAX_EVALUATIONS,
        n_threads=1,
        random_state=random_state,
    )
