"""Performance model normal form: what it is made of, and how well a hypothesis does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from paceline.estimators._columns import Array

Values = Mapping[str, Array]

MIN_SHARE = 0.0005  # a term that nowhere contributes more than this of the time is rejected
_MAX_S = 1e300
# Extra-P's default exponents: the powers j of the logarithm that go with each power i.
_LOG_POWERS = {
    "0": (1, 2),
    **dict.fromkeys(("1/4", "1/3", "1/2", "2/3", "3/4", "1", "3/2", "2", "5/2"), (0, 1, 2)),
    **dict.fromkeys(("5/4", "4/3", "3"), (0, 1)),
    **dict.fromkeys(("4/5", "5/3", "7/4", "9/4", "7/3", "8/3", "11/4"), (0,)),
}
EXPONENTS = tuple(
    sorted((Fraction(i), j) for i, log_powers in _LOG_POWERS.items() for j in log_powers)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """``p^i * log2(p)^j`` of one parameter; constant below `smallest` where it is not defined."""

    name: str
    power: Fraction
    log_power: int
    smallest: float

    def __str__(self) -> str:
        logarithm = f"log2({self.name})" if self.log_power else ""
        parts = (_with_power(self.name, self.power), _with_power(logarithm, self.log_power))
        return " * ".join(part for part in parts if part)

    def evaluate(self, x: Array) -> Array:
        """Return the factor at the values of its parameter."""
        if self.power < 0 or self.log_power:
            x = np.maximum(x, self.smallest)
        result = np.ones(len(x))
        if self.log_power:
            result = np.log2(x) ** self.log_power
        return np.minimum(result * x ** float(self.power), _MAX_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalTerm:
    """A coefficient in seconds times factors of different parameters."""

    coefficient_s: float
    factors: tuple[Factor, ...]

    def __str__(self) -> str:
        return " * ".join([f"{self.coefficient_s:.4g}", *map(str, self.factors)])


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalForm:
    """``c_0 + sum_k c_k * prod_l p_l^i_kl * log2(p_l)^j_kl``, in seconds.

    Parameters
    ----------
    constant_s
        c_0.
    terms
        The summands; none in a constant model.
    smape
        The leave-one-out symmetric mean absolute percentage error (of a constant: on the points
        themselves, as Extra-P has it).
    floor_s
        The least time that is predicted: coefficients may be negative.
    """

    constant_s: float
    terms: tuple[NormalTerm, ...] = ()
    smape: float
    floor_s: float

    def __str__(self) -> str:
        return " + ".join([f"{self.constant_s:.4g}", *map(str, self.terms)]).replace("+ -", "- ")

    def evaluate(self, values: Values, n_rows: int) -> Array:
        """Return the time in seconds of every row."""
        total = np.full(n_rows, self.constant_s)
        with np.errstate(over="ignore"):
            for term in self.terms:
                total += term.coefficient_s * product(term.factors, values)
        return np.clip(np.nan_to_num(total, nan=_MAX_S, posinf=_MAX_S), self.floor_s, _MAX_S)


@dataclass(frozen=True, slots=True)
class Trial:
    """A hypothesis fitted by least squares: coefficients, constant first, and how it predicts."""

    coefficients: Array
    left_out: Array  # the prediction of every point from the others
    shares: Array  # the largest contribution of every term to a time

    def smape(self, times: Array) -> float:
        """Return the leave-one-out error in percent; infinite when a term hardly contributes."""
        if not (self.shares >= MIN_SHARE).all():
            return np.inf
        return smape(times, self.left_out)


def fit_terms(columns: Iterable[Array], times: Array) -> Trial | None:
    """Fit ``c_0 + sum_k c_k * column_k``; None when the points do not determine it."""
    raw = np.column_stack([np.ones(len(times)), *columns])
    if not np.isfinite(raw).all() or len(times) <= raw.shape[1]:
        return None
    widths = np.abs(raw).max(axis=0)
    if not widths.all():
        return None
    q, r = np.linalg.qr(raw / widths)
    if np.abs(np.diag(r)).min() < 1e-10 * np.sqrt(len(times)):
        return None
    inverse = np.linalg.solve(r, q.T)
    coefficients = inverse @ times
    room = 1.0 - np.einsum("ij,ij->i", q, q)
    if room.min() < 1e-12:  # a point that alone determines a coefficient cannot be left out
        return None
    gaps = (times - q @ (q.T @ times)) / room
    left_out = times - gaps - _stray_constants(coefficients[0] - inverse[0] * gaps, times)
    scaled = coefficients / widths
    return Trial(scaled, left_out, np.abs(scaled * raw / times[:, None]).max(axis=0)[1:])


def smape(times: Array, predicted: Array) -> float:
    """Return the symmetric mean absolute percentage error, in percent."""
    sizes = np.abs(times) + np.abs(predicted)
    return float(200.0 * np.mean(np.abs(predicted - times) / sizes))


def product(factors: Iterable[Factor], values: Values) -> Array:
    """Return the product of factors in every row."""
    arrays = [factor.evaluate(values[factor.name]) for factor in factors]
    return np.asarray(np.prod(arrays, axis=0))


def _stray_constants(constants: Array, times: Array) -> Array:
    """Return those constants that Extra-P takes for 0: tiny beside the least of the others."""
    least, second = np.partition(times, 1)[:2]
    others = np.where(np.arange(len(times)) == np.argmin(times), second, least)
    return np.where(np.abs(constants) < MIN_SHARE * others, constants, 0.0)


def _with_power(base: str, power: Fraction | int) -> str:
    if not base or power == 0:
        return ""
    text = str(power)
    return base if power == 1 else f"{base}^{text if text.isdigit() else f'({text})'}"
