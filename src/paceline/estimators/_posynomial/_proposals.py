"""Which composed parameters are worth a try, and which of them promises most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from paceline.dataset import counts_what
from paceline.estimators._columns import Array
from paceline.estimators._posynomial._composed import Beyond, Composed, Pair
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._rows import Layout

_MAX_PARENTS = 4  # categorical parameters that pairs are made of
_MAX_PAIRS = 60  # levels of a pair
_ROWS_PER_PAIR = 4
_MAX_LIMITS = 6
_MIN_VALUES = 2  # measured numbers of devices on either side of a limit


def propose(
    layout: Layout, X: pd.DataFrame, power_law: PosynomialExpression
) -> Iterator[Composed]:
    """Yield limits of numbers of devices, and pairs of the levels that matter most."""
    for name in layout.stand_ins:
        if counts_what(name) == "devices":
            yield from (Beyond(name, float(limit)) for limit in _limits(X[name]))
    strongest = sorted(layout.levels, key=lambda name: -_spread(power_law.factors[name]))
    for first, second in combinations(strongest[:_MAX_PARENTS], 2):
        pair = Pair(*(name for name in layout.levels if name in (first, second)))
        if pair.name not in X and _is_crossed(pair, layout, X):
            yield pair


def _limits(values: pd.Series[float]) -> Array:
    """Return limits with some measured numbers on either side."""
    known = np.unique(values.to_numpy(dtype=float))
    inner = known[_MIN_VALUES - 1 : -_MIN_VALUES]
    some = np.linspace(0, max(len(inner) - 1, 0), min(len(inner), _MAX_LIMITS)).round()
    return np.asarray(inner[some.astype(int)])


def _spread(factors: Mapping[str, float]) -> float:
    return float(np.std(np.log(list(factors.values()))))


def _is_crossed(pair: Pair, layout: Layout, X: pd.DataFrame) -> bool:
    """Return whether no parent tells the other, and there are rows enough for every pair."""
    n_pairs = len(pair.known(X))
    most = min(_MAX_PAIRS, len(X) // _ROWS_PER_PAIR)
    return max(len(layout.levels[name]) for name in pair.parents) < n_pairs <= most
