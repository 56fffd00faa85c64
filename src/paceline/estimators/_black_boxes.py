"""Black boxes that predict well and explain nothing: what an expression must stand beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators._base import BaseTimeRegressor
from paceline.estimators._columns import Array, columns_of
from paceline.estimators._marks import level_marks
from paceline.estimators._recipes import (
    GRIDS,
    MAX_BAG_ROWS,
    MAX_EXACT_ROWS,
    MAX_KERNEL_ROWS,
    MIN_ROWS,
    N_TREES,
    Recipe,
    choose_recipe,
)


class BlackBoxRegressor(BaseTimeRegressor):
    """Fit a forest, a support vector machine or boosted trees, each given a fair chance.

    Numeric parameters enter as logarithms, those with a 0 or a negative value as they are, levels
    as marks of 0 and 1 (an unseen level has none). Whether the time or its logarithm is
    fitted, and a few settings of the member, are chosen by the mean absolute percentage error
    over 3 inner folds that keep rows of the same configuration together.

    Parameters
    ----------
    member
        ``"forest"``, ``"svr"``, ``"boosting"`` or ``"hist-boosting"`` (values in bins).
    categorical
        Columns of numbers that are labels; text columns are categorical anyway.
    n_trees
        Trees of the forest (None: 300), or rounds of boosting (None: 500).
    random_state
        Seed of the folds and of the member.

    Attributes
    ----------
    settings_
        What was chosen, in words.

    Notes
    -----
    Predictions are at least a thousandth of the shortest fitted time. A 0 that is met only after
    fitting counts as the smallest value fitted. With fewer than 9 rows nothing is chosen and
    the logarithm is fitted.

    Examples
    --------
    >>> X = pd.DataFrame({"layers": [1.0, 2, 4, 8], "n_devices": [1.0, 4, 1, 4]})
    >>> model = BlackBoxRegressor("forest", n_trees=10).fit(X, X["layers"] / X["n_devices"])
    >>> model.settings_["target"]
    'log time'
    """

    def __init__(
        self,
        member: str = "forest",
        categorical: Sequence[Any] | None = None,
        n_trees: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.member = member
        self.categorical = categorical
        self.n_trees = n_trees
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit the black box to measured times `y` in seconds.

        Rows of one label in `groups` are held out together when settings are chosen; None:
        equal rows.
        """
        self._check_choices()
        frame, times, _ = self._read_fit(X, y, None)
        self.features_ = _features_of(frame, self.categorical, self.member == "svr")
        Z = self.features_.numbers(frame)
        seed = int(np.random.default_rng(self.random_state).integers(2**31))
        n_trees = N_TREES[self.member] if self.n_trees is None else self.n_trees
        with _one_thread():
            recipe = choose_recipe(self.member, Z, times, n_trees, seed, groups)
            self.fitted_ = recipe.fit(Z, times, n_trees, seed)
        self.settings_ = _describe(recipe, n_trees, len(times))
        return self

    def predict(self, X: Any) -> Array:
        """Return the time in seconds of every row of `X`."""
        frame = self._read_predict(X)
        with _one_thread():
            return self.fitted_.predict(self.features_.numbers(frame))

    def _check_choices(self) -> None:
        if self.member not in GRIDS:
            raise UnknownNameError("member", str(self.member), GRIDS)
        if self.n_trees is not None and self.n_trees < 1:
            raise InvalidInputError(f"`n_trees >= 1` must hold, but got {self.n_trees}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feature:
    """A numeric column, perhaps as logarithms, perhaps standardised."""

    smallest: float | None  # of the fitted values when logarithms are taken, else None
    middle: float = 0.0
    width: float = 1.0

    def numbers(self, values: pd.Series[Any]) -> Array:
        """Return the column as the member sees it."""
        x = values.to_numpy(dtype=float)
        if self.smallest is not None:
            x = np.log(np.where(x > 0, x, self.smallest))
        return (x - self.middle) / self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class _Features:
    """The columns of numbers that a black box is given."""

    numeric: Mapping[str, _Feature]
    levels: Mapping[str, tuple[str, ...]]

    def numbers(self, X: pd.DataFrame) -> Array:
        """Return the rows of `X` as numbers."""
        columns = [feature.numbers(X[name]) for name, feature in self.numeric.items()]
        marks = [level_marks(X[name], known) for name, known in self.levels.items()]
        return np.column_stack([np.empty((len(X), 0)), *columns, *marks])


def _one_thread() -> Any:
    """Return a context without OpenMP threads, which wait for each other on a busy machine."""
    return threadpool_limits(limits=1, user_api="openmp")


def _features_of(
    frame: pd.DataFrame, categorical: Sequence[Any] | None, standardise: bool
) -> _Features:
    levels = columns_of(frame, None, categorical).levels
    numeric = {
        str(name): _feature_of(frame[name], standardise)
        for name in frame.columns
        if str(name) not in levels
    }
    return _Features(numeric=numeric, levels=levels)


def _feature_of(values: pd.Series[Any], standardise: bool) -> _Feature:
    smallest = float(values.min())
    feature = _Feature(smallest=smallest if smallest > 0 else None)
    if not standardise:
        return feature
    x = feature.numbers(values)
    width = float(x.std())
    is_constant = width <= 1e-9 * max(1.0, abs(float(x.mean())))
    return _Feature(
        smallest=feature.smallest, middle=float(x.mean()), width=1.0 if is_constant else width
    )


def _describe(recipe: Recipe, n_trees: int, n_rows: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"target": recipe.target}
    if recipe.member != "svr":
        settings["n_trees"] = n_trees
    settings |= recipe.options
    if n_rows < MIN_ROWS:
        settings["note"] = f"nothing chosen: fewer than {MIN_ROWS} rows"
    if recipe.member == "forest" and n_rows > MAX_BAG_ROWS:
        settings["note"] = f"{MAX_BAG_ROWS} rows drawn for each tree"
    if recipe.member == "boosting" and n_rows > MAX_EXACT_ROWS:
        settings["note"] = "values counted in bins"
    if recipe.member == "svr" and n_rows > MAX_KERNEL_ROWS:
        settings["note"] = f"fitted to {MAX_KERNEL_ROWS} rows drawn at random"
    return settings
