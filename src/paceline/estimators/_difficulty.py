"""Where predictions are hard: how large errors were near a place.

An interval of one width for all rows is too wide where times are easy to predict and too narrow
where they are not. The expected size of the error is a weighted mean of the held-out errors
nearby, drawn towards the mean of all; conformal scores are errors in that unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._columns import Array
from paceline.estimators._correction import Kernel, Places, places_of
from paceline.estimators._posynomial import Layout

_MAX_ROWS = 400
_REACH = 0.5  # of a neighbourhood, in standard deviations
_LEVEL = 1.0  # a different level makes a row count exp(-1)
_PRIOR_ROWS = 10.0  # as many rows with the mean error does every place have


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """Sizes of held-out errors at some places.

    Parameters
    ----------
    layout
        How rows become places.
    kernel
        How near two places are.
    places, sizes
        Where errors are known, and their sizes in logarithms.
    typical
        Mean size over all rows.
    """

    layout: Layout
    kernel: Kernel
    places: Places
    sizes: Array
    typical: float

    def at(self, X: pd.DataFrame) -> Array:
        """Return the expected size of the error of every row, in logarithms."""
        return self._expected(self.kernel.between(places_of(self.layout, X), self.places))

    def _expected(self, near: Array) -> Array:
        total = near @ self.sizes + _PRIOR_ROWS * self.typical
        return np.asarray(total / (near.sum(axis=1) + _PRIOR_ROWS))

    def scores(self, X: pd.DataFrame, sizes: Array, groups: Any, known: Any) -> Array:
        """Return errors in units of what others nearby lead one to expect.

        Rows of the same group do not count: they would not be there when asked.
        """
        near = self.kernel.between(places_of(self.layout, X), self.places)
        near = np.where(np.asarray(groups)[:, None] == np.asarray(groups)[known], 0.0, near)
        return np.asarray(sizes / self._expected(near))

    def to_dict(self) -> dict[str, Any]:
        """Return the difficulty as plain data."""
        return {
            "layout": self.layout.to_dict(),
            "kernel": self.kernel.to_dict(),
            "logs": self.places.logs.tolist(),
            "codes": self.places.codes.tolist(),
            "sizes": self.sizes.tolist(),
            "typical": self.typical,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Difficulty:
        """Return the difficulty that `to_dict` wrote, checked."""
        layout, kernel = Layout.from_dict(data["layout"]), Kernel.from_dict(data["kernel"])
        sizes = np.asarray(data["sizes"], dtype=float)
        places = Places.from_dict(data, len(sizes))
        numbers = [*sizes, float(data["typical"])]
        if not np.isfinite(numbers).all() or min(numbers) < 0:
            raise InvalidInputError("sizes of errors must be finite and not negative.")
        if not (places.fits(layout) and kernel.fits(places)):
            raise InvalidInputError("the difficulty must have one place per parameter.")
        return cls(
            layout=layout,
            kernel=kernel,
            places=places,
            sizes=sizes,
            typical=float(data["typical"]),
        )


def learn_difficulty(
    layout: Layout, X: pd.DataFrame, sizes: Array, groups: Any, random_state: int
) -> tuple[Difficulty, Array]:
    """Return where errors are large, and the conformal score of every row."""
    rng = np.random.default_rng(random_state)
    known = np.sort(rng.permutation(len(sizes))[:_MAX_ROWS])
    places = places_of(layout, X.iloc[known])
    width = places.logs.std(axis=0)
    width[width < 1e-9] = 1.0
    difficulty = Difficulty(
        layout=layout,
        kernel=Kernel(
            shape="gauss",
            scales=0.5 / (_REACH * width) ** 2,
            levels=np.full(places.codes.shape[1], _LEVEL),
        ),
        places=places,
        sizes=sizes[known],
        typical=float(sizes.mean()) or 1e-12,
    )
    return difficulty, difficulty.scores(X, sizes, groups, known)
