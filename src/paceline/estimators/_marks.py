"""Levels of a categorical parameter as columns of 0 and 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import level_name
from paceline.estimators._columns import Array


def level_marks(values: pd.Series[Any], known: tuple[str, ...]) -> Array:
    """Return a column of 0 and 1 for every known level; an unseen level has no mark."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    names = np.array([level_name(value) for value in distinct], dtype=object)
    return (names[codes, None] == np.array(known, dtype=object)).astype(float)
