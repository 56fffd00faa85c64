"""Posynomials over the parameters of a dataset and the columns that are derived from them."""

from __future__ import annotations

from typing import Any, Self

import pandas as pd

from paceline.dataset import Dataset, widen
from paceline.estimators._columns import Array
from paceline.estimators._corrected import CorrectedRegressor
from paceline.estimators._features import Features, features_of
from paceline.estimators._posynomial import PosynomialRegressor

Posynomial = PosynomialRegressor | CorrectedRegressor


def make_posynomial(
    form: str, dataset: Dataset, n_terms: int | None = None, random_state: int = 0
) -> tuple[Posynomial, list[str]]:
    """Return an unfitted form for the widened dataset, and the columns that it is fitted to."""
    features = features_of(dataset)
    wide, hidden = widen(dataset), list(features.replaces if features else ())
    shown = [str(name) for name in wide.X if name not in hidden]
    if form == "corrected":
        model = CorrectedRegressor(
            wide.extrinsic, wide.categorical, n_terms, random_state, hidden=hidden or None
        )
        return model, [str(name) for name in wide.X]
    return PosynomialRegressor(
        [name for name in wide.extrinsic if name in shown],
        [name for name in wide.categorical if name in shown],
        n_terms,
        random_state=random_state,
    ), shown


class FeaturedPosynomial:
    """A posynomial, bare or corrected, that takes the bare parameters and derives the rest.

    Parameters
    ----------
    form
        ``"posynomial"`` or ``"corrected"``.
    dataset
        Gives the parameters, their roles and what is derived from them.
    random_state
        Seed.
    """

    def __init__(self, form: str, dataset: Dataset, random_state: int = 0) -> None:
        self.model, self.columns = make_posynomial(form, dataset, random_state=random_state)
        self.features: Features | None = features_of(dataset)

    def fit(self, X: pd.DataFrame, y: Any, groups: Any = None) -> Self:
        """Fit to parameters and times in seconds; rows of one group are held out together."""
        self.model.fit(self._widened(X), y, groups=groups)
        return self

    def predict(self, X: pd.DataFrame) -> Array:
        """Return the time in seconds of every row of parameters."""
        return self.model.predict(self._widened(X))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return how the form is set, and where its further columns come from."""
        params = dict(self.model.get_params(deep=deep))
        del params["extrinsic"], params["categorical"]
        params.pop("hidden", None)
        return params | ({} if self.features is None else {"features": str(self.features)})

    def _widened(self, X: pd.DataFrame) -> pd.DataFrame:
        wide = X if self.features is None else X.join(self.features.derive(X))
        return wide[self.columns]
