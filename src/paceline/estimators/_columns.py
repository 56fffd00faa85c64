"""From columns of parameters to the numbers that the expressions are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import level_name
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators._expression import not_negative, positive

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Index = np.ndarray[tuple[int, ...], np.dtype[np.intp]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Rows of parameters as logarithms and level numbers."""

    log_terms: Array  # (rows, terms); 0 where the parameter is 0
    present: Array | None  # (rows, terms) of 0 and 1, or None when no parameter is ever 0
    levels: Index  # (rows, groups), over all groups
    log_extrinsic: Array  # (rows, extrinsic)
    level_groups: tuple[tuple[int, int], ...]  # first and end of every group's levels

    @property
    def n_levels(self) -> int:
        """Number of levels over all groups."""
        return self.level_groups[-1][1] if self.level_groups else 0

    def __len__(self) -> int:
        return len(self.log_terms)

    def take(self, rows: Any) -> Encoded:
        """Return the given rows."""
        return Encoded(
            log_terms=self.log_terms[rows],
            present=None if self.present is None else self.present[rows],
            levels=self.levels[rows],
            log_extrinsic=self.log_extrinsic[rows],
            level_groups=self.level_groups,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which column is a numeric term, a group of levels, an extrinsic factor."""

    terms: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    extrinsic: tuple[str, ...]

    @property
    def n_constants(self) -> int:
        """Number of independent constants of the generic expression on these columns."""
        n_free_levels = sum(len(names) - 1 for names in self.levels.values())
        n_base = int(bool(self.levels) or self.is_bare)
        return 2 * len(self.terms) + n_free_levels + n_base + len(self.extrinsic) + 1

    def encode(self, X: pd.DataFrame) -> Encoded:
        """Return the rows of `X` as logarithms and level numbers."""
        terms = _stack([not_negative(X[name]) for name in self.terms], len(X))
        present = terms > 0
        return Encoded(
            log_terms=np.log(np.where(present, terms, 1.0)),
            present=None if present.all() else present.astype(float),
            levels=self._level_numbers(X),
            log_extrinsic=np.log(_stack([positive(X, name) for name in self.extrinsic], len(X))),
            level_groups=self._level_groups(),
        )

    @property
    def is_bare(self) -> bool:
        """Whether there is nothing intrinsic, so that the brackets hold one constant only."""
        return not self.terms and not self.levels

    def _level_groups(self) -> tuple[tuple[int, int], ...]:
        if self.is_bare:
            return ((0, 1),)
        ends = list(accumulate((len(known) for known in self.levels.values()), initial=0))
        return tuple(pairwise(ends))

    def _level_numbers(self, X: pd.DataFrame) -> Index:
        groups = self._level_groups()
        numbers = np.zeros((len(X), len(groups)), dtype=np.intp)
        for column, ((name, known), (first, _)) in enumerate(
            zip(self.levels.items(), groups, strict=False)
        ):
            place = {level: first + i for i, level in enumerate(known)}
            codes, distinct = pd.factorize(X[name], use_na_sentinel=False)
            numbers[:, column] = np.array([place[level_name(v)] for v in distinct])[codes]
        return numbers


def columns_of(
    X: pd.DataFrame, extrinsic: Sequence[Any] | None, categorical: Sequence[Any] | None
) -> Columns:
    """Return what each column of `X` is: named extrinsic, categorical (text too), or a term."""
    names = [str(name) for name in X.columns]
    scaled = _resolve(extrinsic, names, "extrinsic")
    labels = _resolve(categorical, names, "categorical")
    is_text = [not pd.api.types.is_numeric_dtype(X.iloc[:, i]) for i in range(len(names))]
    text = [name for name, flag in zip(names, is_text, strict=True) if flag]
    both = [name for name in scaled if name in labels or name in text]
    if both:
        raise InvalidInputError(
            f"An extrinsic parameter must be numeric, but `{both[0]}` is categorical. "
            f"Take it out of `extrinsic`."
        )
    grouped = [name for name in names if name in labels or name in text]
    return Columns(
        terms=tuple(name for name in names if name not in grouped and name not in scaled),
        levels={n: tuple(sorted({level_name(v) for v in pd.unique(X[n])})) for n in grouped},
        extrinsic=tuple(scaled),
    )


def _resolve(chosen: Sequence[Any] | None, names: list[str], role: str) -> list[str]:
    """Return the chosen columns by name; a number means a position."""
    resolved = []
    for item in chosen or ():
        if isinstance(item, (int, np.integer)) and str(item) not in names:
            if not 0 <= int(item) < len(names):
                raise InvalidInputError(
                    f"`{role}` positions must be below {len(names)}, but got {item}."
                )
            resolved.append(names[int(item)])
        elif str(item) in names:
            resolved.append(str(item))
        else:
            raise UnknownNameError("column", str(item), names)
    return resolved


def _stack(columns: list[Array], n_rows: int) -> Array:
    return np.column_stack(columns) if columns else np.empty((n_rows, 0))
