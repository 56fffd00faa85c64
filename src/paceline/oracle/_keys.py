"""Scenarios that put the same work on a layer, found once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Keys:
    """Distinct combinations of some columns.

    Parameters
    ----------
    first
        A row of every distinct combination.
    which
        By row, the place of its combination in `first`.
    """

    first: Integers
    which: Integers

    def __len__(self) -> int:
        return len(self.first)


def distinct(columns: Sequence[ArrayLike]) -> Keys:
    """Return the distinct combinations of columns of equal length.

    Examples
    --------
    >>> keys = distinct([[1, 2, 1], [5.0, 5.0, 5.0]])
    >>> keys.first.tolist(), keys.which.tolist()
    ([0, 1], [0, 1, 0])
    """
    arrays = [np.asarray(column) for column in columns]
    code = np.zeros(len(arrays[0]), dtype=np.int64)
    n_codes = 1
    for array in arrays:
        if len(array) and (array == array[0]).all():
            continue
        values, place = np.unique(array, return_inverse=True)
        if n_codes * len(values) > 2**62:  # would overflow: number what there is so far anew
            found, code = np.unique(code, return_inverse=True)
            n_codes = len(found)
        code = code * len(values) + place
        n_codes *= len(values)
    _, first, which = np.unique(code, return_index=True, return_inverse=True)
    return Keys(first, which)
