"""Which rows to fit and which to keep for judging the fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from paceline.errors import InvalidInputError

if TYPE_CHECKING:
    from paceline.dataset._dataset import Dataset

_Mask = npt.NDArray[np.bool_]


def choose_fit_rows(
    dataset: Dataset,
    *,
    share: float | None,
    n_fit: int | None,
    up_to: Mapping[str, float] | None,
    group: str | None,
    random_state: int,
) -> _Mask:
    """Return which rows are to be fitted; both parts have rows."""
    asked = [way for way in (share, n_fit, up_to) if way is not None]
    if len(asked) != 1 or (group is not None and share is None):
        raise InvalidInputError(
            "A split needs exactly one of `share` (with or without `group`), `n_fit` and "
            f"`up_to`, but got {share=}, {n_fit=}, {up_to=}, {group=}."
        )
    rng = np.random.default_rng(random_state)
    if up_to is not None:
        is_fit = _choose_by_scale(dataset, up_to)
    elif n_fit is not None:
        is_fit = _choose_at_random(len(dataset), _checked_count(n_fit), rng)
    else:
        is_fit = _choose_share(dataset, _checked_share(share), group, rng)
    _check_parts(is_fit)
    return is_fit


def _choose_share(
    dataset: Dataset, share: float, group: str | None, rng: np.random.Generator
) -> _Mask:
    if group is None:
        return _choose_at_random(len(dataset), round(share * len(dataset)), rng)
    codes, labels = pd.factorize(dataset.groups(group))
    return _choose_at_random(len(labels), round(share * len(labels)), rng)[codes]


def _choose_at_random(n_rows: int, n_fit: int, rng: np.random.Generator) -> _Mask:
    is_fit = np.zeros(n_rows, dtype=bool)
    is_fit[rng.permutation(n_rows)[:n_fit]] = True
    return is_fit


def _choose_by_scale(dataset: Dataset, up_to: Mapping[str, float]) -> _Mask:
    if not up_to:
        raise InvalidInputError("`up_to` must name at least one column, but got none.")
    is_fit = np.ones(len(dataset), dtype=bool)
    for name, limit in up_to.items():
        values = dataset.groups(name)
        if values.dtype.kind not in "iuf":
            raise InvalidInputError(f"`up_to` needs a numeric column, but `{name}` is text.")
        is_fit &= values <= limit
    return is_fit


def _checked_share(share: float | None) -> float:
    if share is None or not 0 < share < 1:
        raise InvalidInputError(f"`share` must lie between 0 and 1, but got {share}.")
    return share


def _checked_count(n_fit: int) -> int:
    if isinstance(n_fit, bool) or not isinstance(n_fit, int | np.integer) or n_fit < 1:
        raise InvalidInputError(f"`n_fit` must be a positive whole number, but got {n_fit!r}.")
    return int(n_fit)


def _check_parts(is_fit: _Mask) -> None:
    n_fit = int(is_fit.sum())
    if n_fit in (0, len(is_fit)):
        raise InvalidInputError(
            f"Both parts of a split must have rows, but got {n_fit} to fit and "
            f"{len(is_fit) - n_fit} left."
        )
