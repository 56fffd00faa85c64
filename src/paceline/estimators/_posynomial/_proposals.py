"""Which composed parameters are worth a try, and which of them promises most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations, starmap

import numpy as np
import pandas as pd

from paceline.dataset import counts_what
from paceline.estimators._columns import Array
from paceline.estimators._posynomial._composed import BETWEEN, Beyond, Composed, Pair
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._rows import Layout

_MAX_PARENTS = 3  # categorical parameters that pairs are made of
_MAX_PAIRS = 60  # levels of a pair
_ROWS_PER_PAIR = 4
_CHANCE_OF_PAIRS, _CHANCE_OF_LIMITS = 0.16, 0.05
_MAX_LIMITS = 4
_MIN_VALUES = 2  # measured numbers of devices on either side of a limit


def propose(
    layout: Layout, X: pd.DataFrame, power_law: PosynomialExpression
) -> Iterator[Composed]:
    """Yield limits of numbers of devices, and pairs of the levels that matter most."""
    for name in layout.stand_ins:
        if counts_what(name) == "devices":
            limits = (Beyond(name, float(limit)) for limit in _limits(X[name]))
            yield from (beyond for beyond in limits if beyond.name not in X)
    most = min(_MAX_PAIRS, len(X) // _ROWS_PER_PAIR)
    for pair in starmap(Pair, combinations(_parents(layout, X, power_law), 2)):
        names = [level for name in pair.parents for level in layout.levels[name]]
        is_clear = pair.name not in X and not any(BETWEEN in name for name in names)
        if is_clear and len(pair.known(X)) <= most:
            yield pair


def _parents(layout: Layout, X: pd.DataFrame, power_law: PosynomialExpression) -> list[str]:
    """Return the parameters whose levels matter most, none of which tells another."""
    found: list[str] = []
    by_levels = sorted(layout.levels, key=lambda name: -len(layout.levels[name]))
    for name in by_levels:
        if not any(_tells(other, name, layout, X) for other in found):
            found.append(name)
    strongest = sorted(found, key=lambda name: -_spread(power_law.factors[name]))[:_MAX_PARENTS]
    return [name for name in layout.levels if name in strongest]


def compose(layout: Layout, composed: Composed, X: pd.DataFrame) -> Layout:
    """Return the layout with one more categorical parameter, whose levels are those of `X`.

    What a parent tells is left out: its factors and those of the parent cannot be told apart.
    """
    parents = [name for name in composed.parents if name in layout.levels]
    told = {
        name: known
        for name, known in layout.levels.items()
        if name not in parents and any(_tells(parent, name, layout, X) for parent in parents)
    }
    levels = {name: known for name, known in layout.levels.items() if name not in told}
    return replace(
        layout,
        levels={**levels, composed.name: composed.known(X)},
        composed=(*layout.composed, composed),
        told=told,
    )


def by_chance(composed: Composed) -> float:
    """Return what the logarithm of the error may fall by without any meaning.

    Of many pairs some are found that suit the rows to fit.
    """
    return _CHANCE_OF_PAIRS if isinstance(composed, Pair) else _CHANCE_OF_LIMITS


def _limits(values: pd.Series[float]) -> Array:
    """Return limits with some measured numbers on either side."""
    known = np.unique(values.to_numpy(dtype=float))
    inner = known[_MIN_VALUES - 1 : -_MIN_VALUES]
    some = np.linspace(0, max(len(inner) - 1, 0), min(len(inner), _MAX_LIMITS)).round()
    return np.asarray(inner[some.astype(int)])


def _spread(factors: Mapping[str, float]) -> float:
    return float(np.std(np.log(list(factors.values()))))


def _tells(one: str, other: str, layout: Layout, X: pd.DataFrame) -> bool:
    """Return whether every level of one parameter occurs with one level of the other only."""
    return len(Pair(one, other).known(X)) == len(layout.levels[one])
