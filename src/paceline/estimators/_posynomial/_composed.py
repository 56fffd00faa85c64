"""Levels that follow from other parameters: two levels together, and numbers beyond a limit.

What a device does to the time may depend on the network, and an exchange that leaves a node is
another exchange: no product of a factor for each parameter says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import level_name
from paceline.estimators._columns import Array
from paceline.estimators._marks import level_marks

BETWEEN = " x "  # the two levels of a pair, neither of which has it
_BEYOND = ("no", "yes")


@dataclass(frozen=True, slots=True)
class Pair:
    """The levels of two categorical parameters, taken together."""

    first: str
    second: str

    @property
    def name(self) -> str:
        """What it is called among the parameters."""
        return f"{self.first}{BETWEEN}{self.second}"

    @property
    def parents(self) -> tuple[str, ...]:
        """The parameters that it follows from."""
        return (self.first, self.second)

    def levels(self, X: pd.DataFrame) -> pd.Series[Any]:
        """Return the level of every row."""
        codes, distinct = zip(
            *(pd.factorize(X[n], use_na_sentinel=False) for n in self.parents), strict=True
        )
        names = [[level_name(value) for value in known] for known in distinct]
        table = np.array([[f"{a}{BETWEEN}{b}" for b in names[1]] for a in names[0]], dtype=object)
        return pd.Series(table[codes[0], codes[1]], index=X.index, name=self.name)

    def to_python(self, words: Mapping[str, str]) -> str:
        """Return the level in Python, given the variables of the parents."""
        return f'f"{{{words[self.first]}}} x {{{words[self.second]}}}"'

    def known(self, X: pd.DataFrame) -> tuple[str, ...]:
        """Return the pairs that occur."""
        return tuple(sorted(self.levels(X).unique()))

    def split(self, level: str) -> tuple[str, str]:
        """Return the two levels that one is made of."""
        first, _, second = level.partition(BETWEEN)
        return first, second

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"first": self.first, "second": self.second}


@dataclass(frozen=True, slots=True)
class Beyond:
    """Whether a number of devices is beyond a limit, such as what one node has."""

    parameter: str
    limit: float

    @property
    def name(self) -> str:
        """What it is called among the parameters."""
        return f"{self.parameter} > {self.limit:.15g}"

    @property
    def parents(self) -> tuple[str, ...]:
        """The parameter that it follows from."""
        return (self.parameter,)

    def levels(self, X: pd.DataFrame) -> pd.Series[Any]:
        """Return the level of every row."""
        is_beyond = X[self.parameter].to_numpy(dtype=float) > self.limit
        names = np.array(_BEYOND, dtype=object)[is_beyond.astype(int)]
        return pd.Series(names, index=X.index, name=self.name)

    def to_python(self, words: Mapping[str, str]) -> str:
        """Return the level in Python, given the variables of the parents."""
        no, yes = _BEYOND
        return f"{yes!r} if {words[self.parameter]} > {float(self.limit)!r} else {no!r}"

    def known(self, X: pd.DataFrame) -> tuple[str, ...]:
        """Return both levels."""
        return _BEYOND

    def is_beyond(self, level: str) -> bool:
        """Return which of the two levels one is."""
        return level == _BEYOND[1]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"parameter": self.parameter, "limit": self.limit}


Composed = Pair | Beyond


def read_composed(data: Iterable[Mapping[str, Any]]) -> tuple[Composed, ...]:
    """Return what `to_dict` wrote of each."""
    return tuple(
        Pair(str(d["first"]), str(d["second"]))
        if "first" in d
        else Beyond(str(d["parameter"]), float(d["limit"]))
        for d in data
    )


def with_composed(X: pd.DataFrame, composed: Iterable[Composed]) -> pd.DataFrame:
    """Return the rows with a column for every composed parameter."""
    columns = {c.name: c.levels(X) for c in composed}
    return X.assign(**columns) if columns else X


def unmeasured(
    X: pd.DataFrame, composed: Iterable[Composed], known: Mapping[str, Iterable[str]]
) -> dict[str, Array]:
    """Return 1 for rows whose levels are known, but not together, of every composed parameter."""
    found = {}
    for d in composed:
        is_known = level_marks(d.levels(X), tuple(known[d.name])).any(axis=1)
        for name in d.parents:
            if name in known:  # of an unseen level no pair can be known
                is_known |= ~level_marks(X[name], tuple(known[name])).any(axis=1)
        found[d.name] = (~is_known).astype(float)
    return found
