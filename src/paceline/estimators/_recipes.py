"""The black boxes that an expression is compared with, and how their settings are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._folds import Fold, folds_of
from paceline.estimators._metrics import score

Shape = tuple[int, ...]

N_TREES = {"forest": 300, "boosting": 500, "hist-boosting": 300, "svr": 0}
TARGETS = ("log time", "time")
MIN_ROWS = 9  # with fewer, held-out errors choose nothing but noise
MAX_KERNEL_ROWS = 10_000  # the kernel of a support vector machine grows with the square
MAX_EXACT_ROWS = 5_000  # beyond, boosting counts values in bins
MAX_BAG_ROWS = 20_000  # that each tree of a forest sees

_N_FOLDS = 3
_FLOOR = 1e-3  # of the shortest measured time


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A regressor of numbers, what it predicts and how it is set."""

    member: str
    target: str
    options: Mapping[str, Any]

    def fit(self, Z: Array, times: Array, n_trees: int, seed: int) -> Fitted:
        """Return the regressor fitted to rows `Z` of numbers."""
        unit_s = float(np.median(times))
        target = np.log(times / unit_s) if self.target == "log time" else times / unit_s
        middle, width = float(target.mean()), float(target.std()) or 1.0
        most = MAX_KERNEL_ROWS if self.member == "svr" else len(times)
        rows = _some_rows(len(times), most, seed)
        regressor = _BUILDERS[self.member](Z.shape, n_trees, seed, self.options)
        return Fitted(
            regressor=regressor.fit(Z[rows], ((target - middle) / width)[rows]),
            is_log=self.target == "log time",
            middle=middle,
            width=width,
            unit_s=unit_s,
            floor_s=_FLOOR * float(times.min()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A fitted regressor with the way back to seconds."""

    regressor: Any
    is_log: bool
    middle: float
    width: float
    unit_s: float
    floor_s: float

    def predict(self, Z: Array) -> Array:
        """Return times in seconds, never quite 0."""
        target = self.regressor.predict(Z) * self.width + self.middle
        times = np.exp(np.clip(target, -300.0, 300.0)) if self.is_log else target
        return np.maximum(times * self.unit_s, self.floor_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What is tried: with both targets the `first` options, then with the best the `second`."""

    first: Sequence[Mapping[str, Any]]
    second: Sequence[Mapping[str, Any]]
    max_rows: int  # to choose with; the final fit takes all
    tree_share: float = 1.0  # of the trees of the final fit


GRIDS: Mapping[str, Grid] = {
    "forest": Grid(
        first=({"max_features": 1.0},),
        second=({"max_features": 0.6},),
        max_rows=2_000,
        tree_share=0.1,
    ),
    "svr": Grid(
        first=tuple(
            {"C": C, "gamma": gamma, "epsilon": 0.1}
            for C, gamma in product((1.0, 10.0, 100.0), (0.1, 0.3, 1.0))
        ),
        second=({"epsilon": 0.03}, {"epsilon": 0.01}),
        max_rows=1_000,
    ),
    "boosting": Grid(
        first=({"learning_rate": 0.1, "max_depth": 3},),
        second=(
            {"learning_rate": 0.1, "max_depth": 2},
            {"learning_rate": 0.05, "max_depth": 5},
        ),
        max_rows=2_000,
        tree_share=0.3,
    ),
    "hist-boosting": Grid(
        first=({"learning_rate": 0.1, "min_samples_leaf": 5},),
        second=(
            {"learning_rate": 0.1, "min_samples_leaf": 20},
            {"learning_rate": 0.05, "min_samples_leaf": 2},
        ),
        max_rows=2_000,
        tree_share=0.5,
    ),
}


def choose_recipe(
    member: str, Z: Array, times: Array, n_trees: int, seed: int, groups: Any = None
) -> Recipe:
    """Return the recipe with the least mean absolute percentage error on inner held-out rows.

    The folds keep rows of one group together, else rows of the same configuration.
    """
    grid = GRIDS[member]
    middle = grid.first[len(grid.first) // 2]
    plain = Recipe(member=member, target=TARGETS[0], options=middle)
    rows = _some_rows(len(times), grid.max_rows, seed)
    Z, times = Z[rows], times[rows]
    if groups is None:
        labels = np.unique(Z, axis=0, return_inverse=True)[1].ravel()
    else:
        labels = np.unique(np.asarray(groups)[rows], return_inverse=True)[1].ravel()
    if len(times) < MIN_ROWS or labels.max() < 1:
        return plain
    folds = folds_of(labels, _N_FOLDS, seed)
    n_tried = max(1, round(grid.tree_share * n_trees))

    def error(recipe: Recipe) -> float:
        return _held_out_error(recipe, Z, times, folds, n_tried, seed)

    first = (replace(plain, target=t, options=o) for t, o in product(TARGETS, grid.first))
    best, least = _best(first, error)
    second = [replace(best, options={**best.options, **o}) for o in grid.second]
    finer, finest = _best(second, error)
    return finer if finest < least else best


def _best(recipes: Iterable[Recipe], error: Callable[[Recipe], float]) -> tuple[Recipe, float]:
    tried = [(recipe, error(recipe)) for recipe in recipes]
    return min(tried, key=lambda pair: pair[1])


def _held_out_error(
    recipe: Recipe, Z: Array, times: Array, folds: Sequence[Fold], n_trees: int, seed: int
) -> float:
    predicted = np.empty(len(times))
    for train, test in folds:
        predicted[test] = recipe.fit(Z[train], times[train], n_trees, seed).predict(Z[test])
    return score(times, predicted).mape


def _some_rows(n_rows: int, max_rows: int, seed: int) -> Any:
    if n_rows <= max_rows:
        return slice(None)
    return np.sort(np.random.default_rng(seed).choice(n_rows, max_rows, replace=False))


def _forest(shape: Shape, n_trees: int, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import RandomForestRegressor  # slow to import, and rarely wanted

    return RandomForestRegressor(
        n_estimators=n_trees,
        max_samples=MAX_BAG_ROWS if shape[0] > MAX_BAG_ROWS else None,
        random_state=seed,
        n_jobs=1,
        **options,
    )


def _boosting(shape: Shape, n_trees: int, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

    if shape[0] > MAX_EXACT_ROWS:
        return HistGradientBoostingRegressor(
            max_iter=n_trees,
            max_leaf_nodes=None,
            early_stopping=False,
            random_state=seed,
            **options,
        )
    return GradientBoostingRegressor(
        n_estimators=n_trees, subsample=0.7, random_state=seed, **options
    )


def _hist_boosting(shape: Shape, n_trees: int, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=n_trees, early_stopping=False, random_state=seed, **options
    )


def _svr(shape: Shape, n_trees: int, seed: int, options: Mapping[str, Any]) -> Any:
    from sklearn.svm import SVR

    gamma = options["gamma"] / shape[1]  # the square of a distance grows with the columns
    return SVR(kernel="rbf", cache_size=500, **{**options, "gamma": gamma})


_BUILDERS: Mapping[str, Callable[[Shape, int, int, Mapping[str, Any]], Any]] = {
    "forest": _forest,
    "svr": _svr,
    "boosting": _boosting,
    "hist-boosting": _hist_boosting,
}
