"""Which layers filter and channel parallelism deal out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._columns import Columns

_KINDS = ("conv", "linear")


def divided_maps(columns: Columns, degree: str) -> NDArray[np.bool_]:
    """Return which distinct layers a degree, ``filter`` or ``channel``, deals out.

    Convolutions and linear maps; a weight that is shared with another layer stays whole, and the
    first layer keeps its few input channels.
    """
    kinds = np.array([x.kind in _KINDS and not x.tied for x in columns.layers], dtype=bool)
    several = columns["n_filters" if degree == "filter" else "n_channels"] > 1
    found = kinds & columns.splits(degree) & several
    return found if degree == "filter" else found & ~columns.has_role("first")
