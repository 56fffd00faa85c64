"""Scenarios that put the same work on a layer, found once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    code, n_codes = np.zeros(len(arrays[0]), dtype=np.int64), 1
    for array in arrays:
        if len(array) and (array == array[0]).all():
            continue
        place, n_places = _numbered(array)
        if n_codes * n_places > _room(array):  # leave out the numbers that do not occur
            code, n_codes = _dense(code, n_codes)
            place, n_places = _dense(place, n_places)
        code, n_codes = code * n_places + place, n_codes * n_places
    return _found(code, n_codes)


def _room(array: NDArray[Any]) -> int:
    """Return how many numbers a table by number may have without being slower than sorting."""
    return max(8 * len(array), 2**16)


def _numbered(array: NDArray[Any]) -> tuple[Integers, int]:
    """Return every value as a number below the second one; whole numbers keep their order."""
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        if high - low < _room(array):
            return array.astype(np.int64) - low, high - low + 1
    values, place = np.unique(array, return_inverse=True)
    return place, len(values)


def _dense(code: Integers, n_codes: int) -> tuple[Integers, int]:
    keys = _found(code, n_codes)
    return keys.which, len(keys)


def _found(code: Integers, n_codes: int) -> Keys:
    """Return the distinct numbers, by a table where they are few and by sorting where not."""
    if n_codes > _room(code):
        _, first, which = np.unique(code, return_index=True, return_inverse=True)
        return Keys(first, which)
    at = np.full(n_codes, -1, dtype=np.int64)
    at[code[::-1]] = np.arange(len(code) - 1, -1, -1)  # the first row is written last
    occurs = np.flatnonzero(at >= 0)
    place = np.zeros(n_codes, dtype=np.int64)
    place[occurs] = np.arange(len(occurs))
    return Keys(at[occurs], place[code])
