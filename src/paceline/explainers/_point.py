"""A point of a formula that can be moved along one parameter, with all that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators import Features, FitResult, PosynomialExpression

Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One row of parameters.

    Parameters
    ----------
    row
        The parameters.
    ranges
        Smallest and largest measured value of parameters and of derived columns; may be empty.
    features
        What is derived from the parameters; None when nothing is.
    """

    row: pd.DataFrame
    ranges: Ranges
    features: Features | None = None

    @classmethod
    def of(cls, fit: FitResult, at: Mapping[str, Any]) -> Point:
        """Return a point of a fit; parameters that are not given have typical values."""
        columns = {} if fit.features is None else fit.features.columns
        return cls(
            row=fit.measured.complete(at)[0],
            ranges={**fit.measured.ranges, **columns},
            features=fit.features,
        )

    @property
    def columns(self) -> pd.DataFrame:
        """The columns of the formula at the point."""
        return self._widened(self.row)

    @property
    def replaced(self) -> tuple[str, ...]:
        """Parameters that the formula has by way of derived columns only."""
        return () if self.features is None else self.features.replaces

    def vary(self, values: Mapping[str, Any]) -> pd.DataFrame:
        """Return the columns of the formula at several values of some parameters.

        What follows from a parameter moves with it; a derived column moves alone.

        Raises
        ------
        InvalidInputError
            When one of them cannot be built.
        """
        derived = {n: v for n, v in values.items() if n not in self.row}
        moved = {n: v for n, v in values.items() if n in self.row}
        n_rows = len(next(iter(values.values())))
        rows = self.row.iloc[[0] * n_rows].reset_index(drop=True).assign(**moved)
        return self._widened(rows).assign(**derived)

    def try_vary(self, values: Mapping[str, Any]) -> pd.DataFrame | None:
        """Return the same; None when one of them cannot be built."""
        try:
            return self.vary(values)
        except InvalidInputError:
            return None

    def _widened(self, rows: pd.DataFrame) -> pd.DataFrame:
        return rows if self.features is None else rows.join(self.features.derive(rows))


def in_parameters(
    expression: PosynomialExpression, features: Features | None
) -> PosynomialExpression:
    """Return the expression with the batch's own powers: what is per step grows with the batch.

    For names of terms only: derived columns keep their powers beside it.
    """
    if features is None:
        return expression
    batch = next((n for n in ("device_batch", "global_batch") if n in expression.stand_ins), None)
    if batch is None:
        return expression
    terms = []
    for term in expression.terms:
        power = sum(term.powers.get(name, 0.0) for name in features.of_batch)
        powers = {**term.powers, batch: term.powers.get(batch, 0.0) + power}
        if batch == "global_batch" and "n_devices" in expression.stand_ins:
            powers["n_devices"] = term.powers.get("n_devices", 0.0) - power
        terms.append(replace(term, powers=powers))
    return replace(expression, terms=tuple(terms))
