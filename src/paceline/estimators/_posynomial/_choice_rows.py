"""Which rows choose among expressions, and which of them are held out together.

How many depends on the work: a fit without some rows is a worse fit, and few rows choose worse,
but a fit of many columns takes long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._folds import Fold, folds_of

MIN_ROWS = 12  # with fewer, held-out errors choose nothing but noise
MIN_GROUPS = 3
_MIN_FOLDS, _MAX_FOLDS = 5, 20
_FOLDED_WORK = 170_000  # rows times columns, in all folds together
_MIN_CHOICE_ROWS, _MAX_CHOICE_ROWS = 800, 1_600  # none alike; the final fit takes all
_CHOICE_WORK = 34_000  # rows times columns
_MAX_GROUPED_ROWS = 2_400


def choice_folds(labels: Any, n_columns: int, random_state: int) -> tuple[Any, list[Fold]]:
    """Return the rows to choose with and folds of them; no folds when there are too few rows.

    All rows, or some when there are many; folds keep equal labels together. The columns are those
    that are fitted: numbers and levels.
    """
    some, most = np.arange(len(labels)), _most_rows(labels, n_columns)
    if len(labels) > most:
        rng = np.random.default_rng(random_state)
        some = np.sort(rng.choice(len(labels), most, replace=False))
    if len(labels) < MIN_ROWS or len(np.unique(labels)) < MIN_GROUPS:
        return some, []
    n_folds = np.clip(_FOLDED_WORK // (n_columns * len(some)), _MIN_FOLDS, _MAX_FOLDS)
    return some, folds_of(labels[some], int(n_folds), random_state)


def _most_rows(labels: Any, n_columns: int) -> int:
    """Return how many rows choose: more where rows of one label err together."""
    per_label = len(labels) / len(np.unique(labels))
    most = np.clip(_CHOICE_WORK // n_columns, _MIN_CHOICE_ROWS, _MAX_CHOICE_ROWS)
    return int(min(most * per_label, _MAX_GROUPED_ROWS))


def labels_of(frame: pd.DataFrame, groups: Any) -> Any:
    """Return a number per row: rows of one group, or equal rows, have the same."""
    if groups is None:
        return frame.groupby(list(frame.columns), sort=False, dropna=False).ngroup().to_numpy()
    labels = np.asarray(groups)
    if len(labels) != len(frame):
        raise InvalidInputError(
            f"`len(groups) == len(X)` must hold, but got {len(labels)} != {len(frame)}."
        )
    return np.unique(labels, return_inverse=True)[1].ravel()
