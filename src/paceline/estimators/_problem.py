"""The cost that a fit of the generic expression minimises (thesis, eq. 4.9 to 4.12).

    f(x) = mean_k |t_k - t^_k(x)| + lambda * sum |x|     (L1)   or   lambda * sum x^2   (L2)

over the constants x = (a, p, levels, q, C); C is not penalised. The printed sums of the
penalty run over the samples, a slip: here they run over the components of x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from paceline.estimators._columns import Array, Encoded, Index

# a table of 0 and 1 is quick to multiply with, as long as it stays in the cache
_MAX_ONE_HOT_ROWS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Penalty:
    """L1 or L2 with one strength for coefficients and one for powers."""

    kind: str = "none"
    strength: float = 0.0
    power_strength: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One dataset and one cost, with residuals, Jacobian and gradient.

    Parameters
    ----------
    rows
        The encoded parameters.
    times
        Measured times, in the units in which the constants are wanted.
    weights
        Weight of every row; the cost is ``sum_k weights_k * |residual_k|``.
    lower, upper
        Limits of the constants, in the order (a, p, levels, q, C).
    """

    rows: Encoded
    times: Array
    weights: Array
    penalty: Penalty
    lower: Array
    upper: Array

    @cached_property
    def slices(self) -> tuple[slice, slice, slice, slice]:
        """Where a, p, levels and q lie in x; C is the last component."""
        n_terms, n_extrinsic = self.rows.log_terms.shape[1], self.rows.log_extrinsic.shape[1]
        ends = np.cumsum([0, n_terms, n_terms, self.rows.n_levels, n_extrinsic])
        a, p, levels, q = (slice(int(i), int(j)) for i, j in pairwise(ends))
        return a, p, levels, q

    @cached_property
    def strengths(self) -> Array:
        """The penalty's strength for every component of x."""
        a, p, levels, q = self.slices
        strengths = np.zeros(len(self.lower))
        if self.penalty.kind != "none":
            strengths[a] = strengths[levels] = self.penalty.strength
            strengths[p] = strengths[q] = self.penalty.power_strength
        return strengths

    @cached_property
    def one_hot(self) -> Array:
        """One column of 0 and 1 per level."""
        table = np.zeros((len(self.rows), self.rows.n_levels))
        for column in self.rows.levels.T:
            table[np.arange(len(table)), column] = 1.0
        return table

    def take(self, chosen: Array) -> Problem:
        """Return the same problem on some of the rows."""
        weights = self.weights[chosen]
        return replace(
            self,
            rows=self.rows.take(chosen),
            times=self.times[chosen],
            weights=weights * (self.weights.sum() / weights.sum()),
        )

    def reweighted(self, factors: Array) -> Problem:
        """Return the same problem with the rows counted so many times (a bootstrap resample)."""
        kept = np.flatnonzero(factors)
        weights = self.weights[kept] * factors[kept]
        weights *= self.weights.sum() / weights.sum()
        return replace(self, rows=self.rows.take(kept), times=self.times[kept], weights=weights)

    def cost(self, x: Array) -> float:
        """Return the cost of eq. 4.9 to 4.12."""
        return float(self.weights @ np.abs(self.residuals(x))) + self.penalty_of(x)

    def penalty_of(self, x: Array) -> float:
        """Return the penalty alone."""
        if self.penalty.kind == "l1":
            return float(self.strengths @ np.abs(x))
        return float(self.strengths @ (x * x))

    def residuals(self, x: Array) -> Array:
        """Return predicted minus measured time."""
        _, brackets, factor = self._parts(x)
        return brackets * factor + (x[-1] - self.times)

    def jacobian(self, x: Array) -> Array:
        """Return the derivatives of the residuals, one column per constant."""
        a, p, levels, q = self.slices
        powers, brackets, factor = self._parts(x)
        scaled = powers * factor[:, None]
        result = np.empty((len(factor), len(x)))
        result[:, a] = scaled
        result[:, p] = scaled * self.rows.log_terms * x[a]
        result[:, levels] = self.one_hot * factor[:, None]
        result[:, q] = self.rows.log_extrinsic * (brackets * factor)[:, None]
        result[:, -1] = 1.0
        return result

    def smooth_cost(self, x: Array, smoothing: float) -> tuple[float, Array]:
        """Return the cost with ``sqrt(r^2 + smoothing^2)`` for ``|r|``, and its gradient."""
        a, p, levels, q = self.slices
        powers, brackets, factor = self._parts(x)
        residuals = brackets * factor + (x[-1] - self.times)
        size = np.hypot(residuals, smoothing)
        slopes = self.weights * residuals / size
        scaled = slopes * factor
        gradient = np.empty(len(x))
        gradient[a] = scaled @ powers
        gradient[p] = x[a] * np.einsum("i,ij,ij->j", scaled, powers, self.rows.log_terms)
        gradient[levels] = self._sum_by_level(scaled)
        gradient[q] = (scaled * brackets) @ self.rows.log_extrinsic
        gradient[-1] = slopes.sum()
        bent = self.strengths * (np.sign(x) if self.penalty.kind == "l1" else 2 * x)
        return float(self.weights @ size) + self.penalty_of(x), gradient + bent

    def _parts(self, x: Array) -> tuple[Array, Array, Array]:
        """Return I^p (rows, terms), the sum in the brackets and the extrinsic factor."""
        a, _, levels, q = self.slices
        powers = self._powers(x)
        brackets = powers @ x[a]
        if len(brackets) <= _MAX_ONE_HOT_ROWS:
            brackets += self.one_hot @ x[levels]
        else:
            for column in self.rows.levels.T:
                brackets += x[levels][column]
        return powers, brackets, np.exp(self.rows.log_extrinsic @ x[q])

    def _powers(self, x: Array) -> Array:
        """Return I^p; one exponential per distinct value where the values repeat."""
        p = x[self.slices[1]]
        if self._distinct is None:
            powers = np.exp(self.rows.log_terms * p)
        else:
            logs, columns, places = self._distinct
            powers = np.exp(logs * p[columns]).take(places)
        return powers if self.rows.present is None else powers * self.rows.present

    @cached_property
    def _distinct(self) -> tuple[Array, Index, Index] | None:
        """Distinct logarithms of all terms, their columns, and where each cell finds its own."""
        logs, places, n_logs = [], [], 0
        for column in self.rows.log_terms.T:
            distinct, place = np.unique(column, return_inverse=True)
            if len(distinct) > len(column) // 4:
                return None
            logs.append(distinct)
            places.append(place + n_logs)
            n_logs += len(distinct)
        if not logs:
            return None
        columns = np.repeat(np.arange(len(logs)), [len(distinct) for distinct in logs])
        return np.concatenate(logs), columns, np.ascontiguousarray(np.column_stack(places))

    def _sum_by_level(self, values: Array) -> Array:
        total = np.zeros(self.rows.n_levels)
        for column in self.rows.levels.T:
            total += np.bincount(column, weights=values, minlength=len(total))
        return total
