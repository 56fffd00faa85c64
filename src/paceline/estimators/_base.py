"""What all our estimators share: reading X and y the way scikit-learn expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators._columns import Array


class BaseTimeRegressor(RegressorMixin, BaseEstimator):
    """A scikit-learn regressor of positive times over a table of parameters."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.positive_only = True
        # the generic data of scikit-learn's checks are no sums of powers
        tags.regressor_tags.poor_score = True
        return tags

    def _read_fit(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[pd.DataFrame, Array, Array | None]:
        if y is None:
            raise InvalidInputError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} "
                f"fits measured times."
            )
        if _has_text(X):
            validate_data(self, X, skip_check_array=True)
            check_complete(X)
            frame = X
            times = column_or_1d(y, warn=True, dtype=np.float64)
        else:
            values, times = validate_data(
                self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2
            )
            frame = pd.DataFrame(values, columns=self._names(values))
        check_times(np.asarray(times, dtype=float), len(frame))
        weights = (
            None
            if sample_weight is None
            else _check_sample_weight(sample_weight, frame, ensure_non_negative=True)
        )
        return frame, np.asarray(times, dtype=float), weights

    def _read_predict(self, X: Any) -> pd.DataFrame:
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if isinstance(X, pd.DataFrame) and names is not None:
            for name in names:
                if name not in X.columns:
                    raise UnknownNameError("column", str(name), map(str, X.columns))
            X = X[list(names)]
        if _has_text(X):
            validate_data(self, X, skip_check_array=True, reset=False)
            check_complete(X)
            return X
        values = validate_data(self, X, dtype=np.float64, reset=False)
        return pd.DataFrame(values, columns=self._names(values))

    def _names(self, values: Array) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(values.shape[1])] if names is None else list(names)


def check_times(times: Array, n_rows: int) -> None:
    """Refuse times that are not as many as the rows, finite and positive."""
    if len(times) != n_rows:
        raise InvalidInputError(f"`len(y) == len(X)` must hold, but got {len(times)} != {n_rows}.")
    bad = ~(np.isfinite(times) & (times > 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInputError(
            f"Times must be finite and positive, but row {row + 1} has {times[row]:g}. "
            f"Leave the row out."
        )


def check_complete(X: pd.DataFrame) -> None:
    """Refuse missing values and infinite numbers, naming the first one."""
    for name in X.columns:
        missing = X[name].isna().to_numpy(dtype=bool)
        if pd.api.types.is_numeric_dtype(X[name].dtype):
            missing = missing | np.isinf(X[name].to_numpy(dtype=float))
        if missing.any():
            row = int(np.argmax(missing))
            raise InvalidInputError(
                f"Values must not be missing (NaN) or infinite, but row {row + 1} of `{name}` "
                f"is {X[name].iloc[row]!r}. Leave the row out, or fill it."
            )


def _has_text(X: Any) -> bool:
    return isinstance(X, pd.DataFrame) and not all(
        pd.api.types.is_numeric_dtype(dtype) for dtype in X.dtypes
    )
