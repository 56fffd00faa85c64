"""Which rows are fitted and which are held out."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError

Rows = np.ndarray[tuple[int, ...], np.dtype[np.intp]]
Fold = tuple[Rows, Rows]


def folds_of(
    dataset_or_groups: Dataset | Any, n_folds: int = 5, random_state: int = 0
) -> list[Fold]:
    """Return pairs of (rows to fit, rows to test) that keep whole groups together.

    Every row is tested once. The largest groups are dealt first, each to the fold with the
    fewest rows so far, so no two folds differ by more rows than the largest group has
    (scikit-learn's shuffled `GroupKFold` balances the number of groups, not of rows).

    Parameters
    ----------
    dataset_or_groups
        One label per row; of a dataset, its configurations.
    n_folds
        Number of folds; fewer when there are fewer groups.
    random_state
        Seed of the shuffling.

    Raises
    ------
    InvalidInputError
        When fewer than two groups, or fewer than two folds, are given.

    Examples
    --------
    >>> [test.tolist() for _, test in folds_of(["a", "a", "b", "c"], n_folds=2)]
    [[0, 1], [2, 3]]
    """
    if n_folds < 2:
        raise InvalidInputError(f"`n_folds >= 2` must hold, but got {n_folds}.")
    codes, sizes = _group_codes(dataset_or_groups)
    order = np.random.default_rng(random_state).permutation(len(sizes))
    fold_of_row = _deal(sizes, order, min(n_folds, len(sizes)))[codes]
    return [_pair(fold_of_row == fold) for fold in range(min(n_folds, len(sizes)))]


def holdout_of(dataset_or_groups: Dataset | Any, share: float, random_state: int = 0) -> Fold:
    """Return (rows to fit, rows to test) with about `share` of the rows, in whole groups, to test.

    Examples
    --------
    >>> train, test = holdout_of(range(10), 0.3)
    >>> len(train), len(test)
    (7, 3)
    """
    if not 0 < share < 1:
        raise InvalidInputError(f"`0 < holdout < 1` must hold for a share, but got {share}.")
    codes, sizes = _group_codes(dataset_or_groups)
    order = np.random.default_rng(random_state).permutation(len(sizes))
    reached = np.cumsum(sizes[order])[:-1]  # at least one group stays to be fitted
    n_groups = int(np.argmin(np.abs(reached - share * len(codes)))) + 1
    return _pair(np.isin(codes, order[:n_groups]))


def _group_codes(dataset_or_groups: Dataset | Any) -> tuple[Rows, Rows]:
    is_dataset = isinstance(dataset_or_groups, Dataset)
    labels = dataset_or_groups.groups() if is_dataset else dataset_or_groups
    codes, distinct = pd.factorize(np.asarray(labels), use_na_sentinel=False)
    if len(distinct) < 2:
        raise InvalidInputError(
            f"At least 2 groups of rows are needed to hold one out, but got {len(distinct)}. "
            f"Group by a column with more values, or measure more configurations."
        )
    return codes, np.bincount(codes)


def _deal(sizes: Rows, order: Rows, n_folds: int) -> Rows:
    """Return the fold of every group: largest first, each to the fold with the fewest rows."""
    fold_of_group = np.empty(len(sizes), dtype=np.intp)
    loads = [(0, fold) for fold in range(n_folds)]
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        load, fold = loads[0]
        fold_of_group[group] = fold
        heapq.heapreplace(loads, (load + int(sizes[group]), fold))
    return fold_of_group


def _pair(is_test: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Fold:
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)
