"""What the fit of a posynomial minimises, with its gradient and Gauss-Newton Hessian.

In logarithms a posynomial is the log-sum-exp of affine functions. The cost is the weighted mean
of a smoothed ``|log predicted - log measured|`` plus ridges on powers and level factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from paceline.estimators._columns import Array, Index
from paceline.estimators._posynomial._rows import Rows

MAX_POWER = 4.0
_WALL = 10.0  # how steeply a power beyond the limit is punished

Kinds = tuple[int, ...]  # for every term, the column of `Rows.collectives` that it carries


@dataclass(frozen=True, slots=True, kw_only=True)
class Strengths:
    """How strongly constants are pulled to 0, relative to the weight of one independent row.

    Parameters
    ----------
    power
        Of the powers.
    level
        Of the logarithms of the factors that all terms share.
    own_level
        Of those that a term has for itself; None when levels are shared by all terms.
    price
        What a constant must gain to be kept, as a multiple of Akaike's limit.
    """

    power: float
    level: float
    own_level: float | None
    price: float = 1.0


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
    independence
        Number of independent draws per row: rows of one group err together, so many of them
        count as one.
    firmness
        How many times as strong the ridge on the powers of each parameter is; None: 1.
    """

    rows: Rows
    target: Array
    weights: Array
    strengths: Strengths
    independence: float = 1.0
    firmness: Array | None = None

    @property
    def n_draws(self) -> float:
        """How many independent rows these are worth."""
        return max(self.independence * len(self.rows), 1.0)

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
        return np.asarray(self._logs(c, kinds).T)

    def _logs(self, c: Constants, kinds: Kinds) -> Array:
        """Return the logarithm of every term (terms, rows)."""
        marks = c.shared + c.own if c.own.size else np.tile(c.shared, (len(c.base), 1))
        factors = np.concatenate([c.base[:, None], c.powers, marks], axis=1)
        return np.asarray(factors @ self.rows.features + self.rows.collectives.T[list(kinds)])

    def residuals(self, c: Constants, kinds: Kinds) -> Array:
        """Return log predicted - log measured."""
        return _log_total(self._logs(c, kinds)) - self.target

    def cost(self, c: Constants, kinds: Kinds, smoothing: float) -> float:
        """Return the smoothed cost with the ridges."""
        r = self.residuals(c, kinds)
        fit = self.weights @ (np.sqrt(r * r + smoothing * smoothing) - smoothing)
        over = _beyond(c.powers)
        return float(fit + self.stiffness(c) @ c.flat() ** 2 + _WALL * (over * over).sum())

    def expand(
        self, c: Constants, kinds: Kinds, smoothing: float, slots: Any = None
    ) -> tuple[float, Array, Array]:
        """Return the cost, its gradient and its Gauss-Newton Hessian by every slot.

        A slot is a number that one constant has, or that several share; -1 marks constants that
        do not move. None: every constant has its own.
        """
        logs = self._logs(c, kinds)
        total = _log_total(logs)
        r = total - self.target
        size = np.sqrt(r * r + smoothing * smoothing)
        x, stiffness, over = c.flat(), self.stiffness(c), _beyond(c.powers)
        cost = self.weights @ (size - smoothing) + stiffness @ x**2 + _WALL * (over * over).sum()
        slope, bend = 2.0 * stiffness * x, 2.0 * stiffness + 1e-9
        wall = slice(len(c.base), len(c.base) + c.powers.size)
        slope[wall] += 2.0 * _WALL * over.ravel()
        bend[wall] += 2.0 * _WALL * (over != 0).ravel()
        places, firsts = _order(np.arange(len(x)) if slots is None else slots)
        jacobian = _add_up(self._jacobian(np.exp(logs - total), c, places), firsts)
        gradient = jacobian @ (self.weights * r / size) + _add_up(slope[places], firsts)
        jacobian *= np.sqrt(self.weights / size)
        hessian = jacobian @ jacobian.T  # of one array with itself: half the work
        hessian.flat[:: len(hessian) + 1] += _add_up(bend[places], firsts)
        return float(cost), gradient, hessian

    def stiffness(self, c: Constants) -> Array:
        """Return how strongly each constant is pulled to 0."""
        s, n = self.strengths, self.n_draws
        firmness = np.ones(c.powers.shape[1]) if self.firmness is None else self.firmness
        parts = [
            np.zeros(len(c.base)),
            np.tile(firmness * s.power / n, len(c.base)),
            np.full(len(c.shared), s.level / n),
            np.full(c.own.size, (s.own_level or 0.0) / n),
        ]
        return np.concatenate(parts)

    def _jacobian(self, shares: Array, c: Constants, places: Any) -> Array:
        """Return the derivative of log t by the constants at `places`, one row each."""
        terms, features = _origins(*c.powers.shape, len(c.shared), bool(c.own.size))
        whole = np.concatenate([shares, np.ones((1, shares.shape[1]))])
        return np.asarray(whole[terms[places]] * self.rows.features[features[places]])


def _order(slots: Index) -> tuple[Index, Index]:
    """Return the places of moving constants by slot, and where in them every slot begins."""
    places = np.flatnonzero(slots >= 0)
    places = places[np.argsort(slots[places], kind="stable")]
    return places, np.flatnonzero(np.diff(slots[places], prepend=-1))


def _add_up(rows: Array, firsts: Index) -> Array:
    """Return the sums over the constants of every slot."""
    return rows if len(firsts) == len(rows) else np.add.reduceat(rows, firsts, axis=0)


@lru_cache(maxsize=64)
def _origins(k: int, n_powers: int, n_marks: int, owns: bool) -> tuple[Index, Index]:
    """Return for every constant its term (the last: all of them) and the feature it multiplies."""
    terms, marks = np.arange(k), 1 + n_powers + np.arange(n_marks)
    n_own = n_marks if owns else 0
    of_term = [terms, np.repeat(terms, n_powers), np.full(n_marks, k), np.repeat(terms, n_own)]
    of_feature = [np.zeros(k, dtype=np.intp), np.tile(1 + np.arange(n_powers), k), marks]
    of_feature += [np.tile(marks, k if n_own else 0)]
    return np.concatenate(of_term), np.concatenate(of_feature)


def _beyond(powers: Array) -> Array:
    """Return by how much every power is beyond its limit, with its sign."""
    return powers - np.clip(powers, -MAX_POWER, MAX_POWER)


def _log_total(logs: Array) -> Array:
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))


def log_sum(logs: Array) -> Array:
    """Return the logarithm of the sum of exponentials over the columns."""
    return _log_total(logs.T)
