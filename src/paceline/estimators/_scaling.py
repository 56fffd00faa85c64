"""Between the user's units and those in which the constants are sought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators._columns import Array, Columns, Encoded
from paceline.estimators._expression import GenericExpression, Term
from paceline.estimators._problem import Penalty, Problem

if TYPE_CHECKING:
    from paceline.estimators._generic import GenericRegressor

# (coefficients, powers, constant); the thesis' limits are printed in section 4.1.1
BOUNDS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "scaled": {"coefficients": (0.0, 1e3), "powers": (-5.0, 5.0), "constant": (0.0, 1e3)},
    "thesis": {"coefficients": (0.0, 1e3), "powers": (-5.0, 5.0), "constant": (0.0, 1e3)},
    "wide": {"coefficients": (0.0, 1e9), "powers": (-10.0, 10.0), "constant": (0.0, 1e9)},
}

# sorting a million rows would cost more than the fit gains by it
_MAX_MERGED_ROWS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The unit of time and of every parameter, as logarithms."""

    time_s: float
    log_terms: Array
    log_extrinsic: Array

    def apply(self, rows: Encoded, times: Array) -> tuple[Encoded, Array]:
        """Return rows and times in the scaled units."""
        log_terms = rows.log_terms - self.log_terms
        if rows.present is not None:
            log_terms *= rows.present
        scaled = Encoded(
            log_terms=log_terms,
            present=rows.present,
            levels=rows.levels,
            log_extrinsic=rows.log_extrinsic - self.log_extrinsic,
            level_groups=rows.level_groups,
        )
        return scaled, times / self.time_s

    def express(
        self, x: Array, columns: Columns, slices: tuple[slice, slice, slice, slice]
    ) -> GenericExpression:
        """Return the expression, in seconds and plain parameters, of scaled constants."""
        a, p, levels, q = slices
        unit_s = self.time_s * np.exp(-x[q] @ self.log_extrinsic)
        coefficients = x[a] * unit_s * np.exp(-x[p] * self.log_terms)
        costs = iter((x[levels] * unit_s).tolist())
        return GenericExpression(
            terms=tuple(
                Term(name=n, coefficient_s=float(c), power=float(power))
                for n, c, power in zip(columns.terms, coefficients, x[p], strict=True)
            ),
            levels={n: {k: next(costs) for k in known} for n, known in columns.levels.items()},
            powers={n: float(v) for n, v in zip(columns.extrinsic, x[q], strict=True)},
            base_s=next(costs) if columns.is_bare else 0.0,
            constant_s=float(x[-1] * self.time_s),
        )


def scaling_of(rows: Encoded, times: Array, weights: Array, units: str) -> Scaling:
    """Return the units of a dataset: median time and geometric mean parameters, or plain ones."""
    if units == "thesis":
        return Scaling(
            time_s=1.0,
            log_terms=np.zeros(rows.log_terms.shape[1]),
            log_extrinsic=np.zeros(rows.log_extrinsic.shape[1]),
        )
    present = np.ones_like(rows.log_terms) if rows.present is None else rows.present
    total = np.maximum(weights @ present, 1e-300)
    return Scaling(
        time_s=_weighted_median(times, weights),
        log_terms=(weights @ (rows.log_terms * present)) / total,
        log_extrinsic=(weights @ rows.log_extrinsic) / weights.sum(),
    )


def merge_rows(rows: Encoded, times: Array, weights: Array | None) -> tuple[Encoded, Array, Array]:
    """Return the rows in an order of their own, equal ones once with their summed weight.

    So neither the order of the rows nor weights in place of repeats change a fit.
    """
    weights = np.ones(len(times)) if weights is None else np.asarray(weights, dtype=float)
    if not (weights > 0).any():
        raise InvalidInputError("At least one `sample_weight` must be positive, but all are 0.")
    kept = weights > 0
    rows, times, weights = rows.take(kept), times[kept], weights[kept]
    if len(times) > _MAX_MERGED_ROWS:
        return rows, times, weights
    present = () if rows.present is None else (rows.present,)
    keys = np.column_stack([rows.levels, rows.log_terms, *present, rows.log_extrinsic, times])
    _, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return (
        rows.take(first),
        times[first],
        np.bincount(place.ravel(), weights=weights).astype(float),
    )


def build_problem(
    rows: Encoded, times: Array, weights: Array, scaling: Scaling, settings: GenericRegressor
) -> Problem:
    """Return the problem that these settings pose, in scaled units."""
    rows, times = scaling.apply(rows, times)
    lower, upper = _limits(rows, settings)
    share = weights / weights.sum()
    power_strength = settings.power_strength
    return Problem(
        rows=rows,
        times=times,
        weights=share / times if settings.cost == "relative" else share,
        penalty=Penalty(
            kind=settings.penalty,
            strength=settings.strength,
            power_strength=settings.strength if power_strength is None else power_strength,
        ),
        lower=lower,
        upper=upper,
    )


def _limits(rows: Encoded, settings: GenericRegressor) -> tuple[Array, Array]:
    chosen = settings.bounds
    limits = dict(BOUNDS[chosen if isinstance(chosen, str) else settings.units])
    if isinstance(chosen, Mapping):
        for name, pair in chosen.items():
            _check_limit(name, pair, limits)
            limits[name] = (float(pair[0]), float(pair[1]))
    n_terms, n_extrinsic = rows.log_terms.shape[1], rows.log_extrinsic.shape[1]
    order = (
        [limits["coefficients"]] * n_terms
        + [limits["powers"]] * n_terms
        + [limits["coefficients"]] * rows.n_levels
        + [limits["powers"]] * n_extrinsic
        + [limits["constant"]]
    )
    lower, upper = np.array(order).T
    return lower, upper


def _check_limit(name: str, pair: tuple[float, float], known: Mapping[str, object]) -> None:
    if name not in known:
        raise UnknownNameError("kind of bound", name, known)
    low, high = pair
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidInputError(f"`low < high` must hold for bounds, but {name!r} got {pair}.")
    if name != "powers" and low < 0:
        raise InvalidInputError(f"`low >= 0` must hold for {name!r}, but got {low}.")


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])
