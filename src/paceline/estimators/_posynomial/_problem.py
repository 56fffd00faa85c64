"""What the fit of a posynomial minimises, with its gradient and Gauss-Newton Hessian.

In logarithms a posynomial is the log-sum-exp of affine functions. The cost is the weighted mean
of a smoothed ``|log predicted - log measured|`` plus ridges on powers and level factors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from paceline.estimators._columns import Array, Index
from paceline.estimators._expected import expected_powers
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
        Of the logarithms of level factors.
    price
        What a constant must gain to be kept, as a multiple of Akaike's limit.
    """

    power: float
    level: float
    price: float = 1.0


NEUTRAL = Strengths(power=0.0, level=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Powers that the first term is drawn to, and how many times as strongly as to 0."""

    powers: Array
    firmness: Array

    @classmethod
    def by_names(cls, names: Iterable[str], firmness: float) -> Expected | None:
        """Return what names of parameters let one expect, held so firmly; None: nothing."""
        names = list(names)
        known = expected_powers(names)
        if not known:
            return None
        return cls(
            powers=np.array([known.get(name, 0.0) for name in names]),
            firmness=np.array([firmness if name in known else 1.0 for name in names]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The constants of K terms in logarithms.

    Parameters
    ----------
    base
        log c_k (K).
    powers
        p_ki (K, numeric).
    levels
        Log-factors of the marks (K, marks).
    """

    base: Array
    powers: Array
    levels: Array

    def flat(self) -> Array:
        """Return all constants in one vector."""
        return np.concatenate([self.base, self.powers.ravel(), self.levels.ravel()])

    def like(self, x: Array) -> Constants:
        """Return constants of this shape with the values of a vector."""
        k = len(self.base)
        end = k + self.powers.size
        return Constants(
            base=x[:k],
            powers=x[k:end].reshape(self.powers.shape),
            levels=x[end:].reshape(self.levels.shape),
        )

    def with_term(self, base: float, powers: Array, levels: Array) -> Constants:
        """Return the constants with one more term."""
        return Constants(
            base=np.append(self.base, base),
            powers=np.vstack([self.powers, powers]),
            levels=np.vstack([self.levels, levels]),
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
    expected
        What is known of the powers of the first term before anything was measured.
    limits
        The least and the greatest power of every numeric parameter.
    """

    rows: Rows
    target: Array
    weights: Array
    strengths: Strengths
    independence: float = 1.0
    expected: Expected | None = None
    limits: tuple[Array | float, Array | float] = (-MAX_POWER, MAX_POWER)

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
        factors = np.concatenate([c.base[:, None], c.powers, c.levels], axis=1)
        return np.asarray(factors @ self.rows.features + self.rows.collectives.T[list(kinds)])

    def residuals(self, c: Constants, kinds: Kinds) -> Array:
        """Return log predicted - log measured."""
        return _log_total(self._logs(c, kinds)) - self.target

    def cost(self, c: Constants, kinds: Kinds, smoothing: float) -> float:
        """Return the smoothed cost with the ridges."""
        r = self.residuals(c, kinds)
        fit = self.weights @ (np.sqrt(r * r + smoothing * smoothing) - smoothing)
        over = self._beyond(c.powers)
        ridge = self.stiffness(c) @ (c.flat() - self.means(c)) ** 2
        return float(fit + ridge + _WALL * (over * over).sum())

    def moves(self, c: Constants, slots: Index) -> Moves:
        """Return which constants move, and together with which.

        A slot is a number that one constant has, or that several share; -1 marks constants that
        do not move.
        """
        terms, features = _origins(*c.powers.shape, c.levels.shape[1])
        places = np.flatnonzero(slots >= 0)
        places = places[np.lexsort((terms[places], slots[places]))]
        pairs = slots[places] * len(c.base) + terms[places]
        firsts = _firsts(pairs)
        return Moves(
            places=places,
            slots=_firsts(slots[places]),
            terms=terms[places][firsts],
            features=_add_up(self.rows.features[features[places]], firsts),
            pairs=_firsts(slots[places][firsts]),
        )

    def expand(
        self, c: Constants, kinds: Kinds, smoothing: float, moves: Moves
    ) -> tuple[float, Array, Array]:
        """Return the cost, its gradient and its Gauss-Newton Hessian by every slot."""
        logs = self._logs(c, kinds)
        total = _log_total(logs)
        r = total - self.target
        size = np.sqrt(r * r + smoothing * smoothing)
        x, stiffness, over = c.flat() - self.means(c), self.stiffness(c), self._beyond(c.powers)
        cost = self.weights @ (size - smoothing) + stiffness @ x**2 + _WALL * (over * over).sum()
        slope, bend = 2.0 * stiffness * x, 2.0 * stiffness + 1e-9
        wall = slice(len(c.base), len(c.base) + c.powers.size)
        slope[wall] += 2.0 * _WALL * over.ravel()
        bend[wall] += 2.0 * _WALL * (over != 0).ravel()
        jacobian = moves.jacobian(np.exp(logs - total))
        gradient = jacobian @ (self.weights * r / size) + moves.add_up(slope)
        jacobian *= np.sqrt(self.weights / size)
        hessian = jacobian @ jacobian.T  # of one array with itself: half the work
        hessian.flat[:: len(hessian) + 1] += moves.add_up(bend)
        return float(cost), gradient, hessian

    def _beyond(self, powers: Array) -> Array:
        """Return by how much every power is beyond its limit, with its sign."""
        return powers - np.clip(powers, *self.limits)

    def stiffness(self, c: Constants) -> Array:
        """Return how strongly each constant is pulled to its mean."""
        s, n = self.strengths, self.n_draws
        k, n_powers = c.powers.shape
        found = np.full(k + c.powers.size + c.levels.size, s.level / n)
        found[:k] = 0.0
        found[k : k + c.powers.size] = s.power / n
        if self.expected is not None:
            found[k : k + n_powers] *= self.expected.firmness
        return found

    def means(self, c: Constants) -> Array:
        """Return what each constant is pulled to: 0, or the expected power of the first term."""
        k, n_powers = c.powers.shape
        found = np.zeros(k + c.powers.size + c.levels.size)
        if self.expected is not None:
            found[k : k + n_powers] = self.expected.powers
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Which constants of a problem move together; prepared once for many steps.

    Parameters
    ----------
    places
        Moving constants by slot, and by term within one.
    slots
        Where in them every slot begins.
    terms, features
        For every slot in every term that it occurs in: the term, and the sum of what its
        constants multiply there (rows of the problem are columns).
    pairs
        Where in those every slot begins.
    """

    places: Index
    slots: Index
    terms: Index
    features: Array
    pairs: Index

    @property
    def n_terms(self) -> Array:
        """In how many terms every slot occurs."""
        return np.diff(np.append(self.pairs, len(self.terms))).astype(float)

    def jacobian(self, shares: Array) -> Array:
        """Return the derivative of log t by every slot, given the shares of the terms."""
        return _add_up(shares[self.terms] * self.features, self.pairs)

    def add_up(self, values: Array) -> Array:
        """Return the sums over the constants of every slot."""
        return _add_up(values[self.places], self.slots)


def _firsts(numbers: Index) -> Index:
    """Return where in a sorted array every number begins."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))


def _add_up(rows: Array, firsts: Index) -> Array:
    """Return sums of neighbouring rows."""
    return rows if len(firsts) == len(rows) else np.add.reduceat(rows, firsts, axis=0)


@lru_cache(maxsize=64)
def _origins(k: int, n_powers: int, n_marks: int) -> tuple[Index, Index]:
    """Return for every constant its term and the feature it multiplies."""
    terms = np.arange(k)
    powers, marks = 1 + np.arange(n_powers), 1 + n_powers + np.arange(n_marks)
    of_term = [terms, np.repeat(terms, n_powers), np.repeat(terms, n_marks)]
    of_feature = [np.zeros(k, dtype=np.intp), np.tile(powers, k), np.tile(marks, k)]
    return np.concatenate(of_term), np.concatenate(of_feature)


def _log_total(logs: Array) -> Array:
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))


def log_sum(logs: Array) -> Array:
    """Return the logarithm of the sum of exponentials over the columns."""
    return _log_total(logs.T)
