"""What the fit of a posynomial minimises, with its gradient and Gauss-Newton Hessian.

In logarithms a posynomial is the log-sum-exp of affine functions. The cost is the weighted mean
of a smoothed ``|log predicted - log measured|`` plus ridges on powers and level factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._posynomial._rows import Rows

MAX_POWER = 4.0
_WALL = 10.0  # how steeply a power beyond the limit is punished

Kinds = tuple[int, ...]  # for every term, the column of `Rows.collectives` that it carries


@dataclass(frozen=True, slots=True, kw_only=True)
class Strengths:
    """How strongly constants are pulled to 0, relative to one row's weight.

    Parameters
    ----------
    power
        Of the powers.
    level
        Of the logarithms of the factors that all terms share.
    own_level
        Of those that a term has for itself; None when levels are shared by all terms.
    """

    power: float
    level: float
    own_level: float | None


NEUTRAL = Strengths(power=0.0, level=0.0, own_level=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The constants of K terms in logarithms.

    Parameters
    ----------
    base
        log c_k (K).
    powers
        p_ki (K, numeric).
    shared
        Log-factors of the marks, of all terms (marks).
    own
        Log-factors of the marks, of each term for itself (K, marks); no columns when shared.
    """

    base: Array
    powers: Array
    shared: Array
    own: Array

    def flat(self) -> Array:
        """Return all constants in one vector."""
        return np.concatenate([self.base, self.powers.ravel(), self.shared, self.own.ravel()])

    def like(self, x: Array) -> Constants:
        """Return constants of this shape with the values of a vector."""
        k = len(self.base)
        end_powers = k + self.powers.size
        end_shared = end_powers + len(self.shared)
        return Constants(
            base=x[:k],
            powers=x[k:end_powers].reshape(self.powers.shape),
            shared=x[end_powers:end_shared],
            own=x[end_shared:].reshape(self.own.shape),
        )

    def with_term(self, base: float, powers: Array, own: Array) -> Constants:
        """Return the constants with one more term."""
        return replace(
            self,
            base=np.append(self.base, base),
            powers=np.vstack([self.powers, powers]),
            own=np.vstack([self.own, own]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PosynomialProblem:
    """Rows, log times and strengths.

    Parameters
    ----------
    rows
        The measured rows.
    target
        Logarithm of every measured time.
    weights
        Weight of every row; they sum to 1.
    strengths
        Of the ridges.
    """

    rows: Rows
    target: Array
    weights: Array
    strengths: Strengths

    def take(self, rows: Any) -> PosynomialProblem:
        """Return the problem of the given rows."""
        weights = self.weights[rows]
        return replace(
            self,
            rows=self.rows.take(rows),
            target=self.target[rows],
            weights=weights / weights.sum(),
        )

    def log_terms(self, c: Constants, kinds: Kinds) -> Array:
        """Return the logarithm of every term (rows, terms)."""
        logs = self.rows.logs @ c.powers.T + c.base + self.rows.collectives[:, list(kinds)]
        logs += (self.rows.marks @ c.shared)[:, None]
        return logs + self.rows.marks @ c.own.T if c.own.size else logs

    def residuals(self, c: Constants, kinds: Kinds) -> Array:
        """Return log predicted - log measured."""
        return log_sum(self.log_terms(c, kinds)) - self.target

    def cost(self, c: Constants, kinds: Kinds, smoothing: float) -> float:
        """Return the smoothed cost with the ridges."""
        r = self.residuals(c, kinds)
        fit = self.weights @ (np.sqrt(r * r + smoothing * smoothing) - smoothing)
        over = _beyond(c.powers)
        return float(fit + self.stiffness(c) @ c.flat() ** 2 + _WALL * (over * over).sum())

    def expand(self, c: Constants, kinds: Kinds, smoothing: float) -> tuple[float, Array, Array]:
        """Return the cost, its gradient and its Gauss-Newton Hessian."""
        logs = self.log_terms(c, kinds)
        total = log_sum(logs)
        r = total - self.target
        size = np.sqrt(r * r + smoothing * smoothing)
        jacobian = self._jacobian(np.exp(logs - total[:, None]), c)
        x, stiffness, over = c.flat(), self.stiffness(c), _beyond(c.powers)
        hessian = (jacobian * (self.weights / size)[:, None]).T @ jacobian
        bend = 2.0 * stiffness + 1e-9
        wall = slice(len(c.base), len(c.base) + c.powers.size)
        bend[wall] += 2.0 * _WALL * (over != 0).ravel()
        hessian.flat[:: len(x) + 1] += bend
        gradient = jacobian.T @ (self.weights * r / size) + 2.0 * stiffness * x
        gradient[wall] += 2.0 * _WALL * over.ravel()
        cost = self.weights @ (size - smoothing) + stiffness @ x**2 + _WALL * (over * over).sum()
        return float(cost), gradient, hessian

    def stiffness(self, c: Constants) -> Array:
        """Return how strongly each constant is pulled to 0."""
        s, n = self.strengths, len(self.rows)
        parts = [
            np.zeros(len(c.base)),
            np.full(c.powers.size, s.power / n),
            np.full(len(c.shared), s.level / n),
            np.full(c.own.size, (s.own_level or 0.0) / n),
        ]
        return np.concatenate(parts)

    def _jacobian(self, shares: Array, c: Constants) -> Array:
        """Return the derivative of log t by every constant; `shares` are the terms' shares."""
        n = len(shares)
        parts = [
            shares,
            (shares[:, :, None] * self.rows.logs[:, None, :]).reshape(n, -1),
            self.rows.marks,
        ]
        if c.own.size:
            parts.append((shares[:, :, None] * self.rows.marks[:, None, :]).reshape(n, -1))
        return np.concatenate(parts, axis=1)


def _beyond(powers: Array) -> Array:
    """Return by how much every power is beyond its limit, with its sign."""
    return powers - np.clip(powers, -MAX_POWER, MAX_POWER)


def log_sum(logs: Array) -> Array:
    """Return the logarithm of the sum of exponentials over the columns."""
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))
