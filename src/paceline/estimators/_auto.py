"""What `fit` chooses, as a member of a comparison."""

from __future__ import annotations

from typing import Any, Self

import pandas as pd

from paceline.dataset import Dataset
from paceline.estimators._columns import Array
from paceline.estimators._fit import fit


class AutoMember:
    """The default of `fit`: the form is chosen anew on the rows of every fold.

    Parameters
    ----------
    random_state
        Seed.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit_dataset(self, dataset: Dataset, group: str | None) -> Self:
        """Choose and fit a form; rows of one value of `group` are held out together."""
        self.result_ = fit(dataset, group=group, n_seeds=1, random_state=self.random_state)
        self.settings_ = {"chosen": self.result_.form}
        return self

    def predict(self, X: Any) -> Array:
        """Return the time in seconds of every row of `X`."""
        return self.predict_intervals(X)["predicted_s"].to_numpy()

    def predict_intervals(self, X: Any) -> pd.DataFrame:
        """Return times with their 90 % intervals, as a `FitResult` does."""
        return self.result_.predict(X)
