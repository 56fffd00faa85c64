"""The posynomial with numbers in it.

    t = sum_k c_k * prod_i x_i^p_ki * prod_g factor_kg(level) [* (1 - 1/n)]

Every constant is positive but the powers, so every time is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import level_name
from paceline.estimators._expression import Vector, not_negative
from paceline.estimators._posynomial import _export
from paceline.estimators._posynomial._composed import (
    Composed,
    read_composed,
    unmeasured,
    with_composed,
)
from paceline.estimators._posynomial._export import average_factor

Factors = Mapping[str, Mapping[str, float]]

_MAX_LOG = 690.0  # exp of it is still finite, and so is the sum of a few


@dataclass(frozen=True, slots=True, kw_only=True)
class PosynomialTerm:
    """One summand.

    Parameters
    ----------
    coefficient_s
        c_k in seconds: the term where every parameter is 1 and every level has the factor 1.
    powers
        The power of every numeric parameter that the term depends on.
    factors
        Factors of levels that this term has on top of the shared ones.
    collective
        A number of devices n: the term carries ``1 - 1/n``, which vanishes on one device.
    zero_factors
        Factors of a 0 of numeric parameters that this term has on top of the shared ones.
    """

    coefficient_s: float
    powers: Mapping[str, float]
    factors: Factors = field(default_factory=dict)
    collective: str | None = None
    zero_factors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PosynomialExpression:
    """A sum of products of powers, in seconds.

    Parameters
    ----------
    terms
        The summands.
    factors
        Factors of levels that all terms share. An unseen level has the geometric mean of the
        factors of its parameter.
    stand_ins
        For every numeric parameter the value that is read in place of 0.
    zero_factors
        The factor of a 0 of a numeric parameter, on top of its stand-in.
    composed
        Which of the categorical parameters follow from others, and how.
    """

    terms: tuple[PosynomialTerm, ...]
    factors: Factors
    stand_ins: Mapping[str, float]
    zero_factors: Mapping[str, float] = field(default_factory=dict)
    composed: tuple[Composed, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters that are not composed: numeric ones, then categorical ones."""
        return (*self.stand_ins, *self.categorical)

    @property
    def categorical(self) -> tuple[str, ...]:
        """Names of the categorical parameters that are not composed of others."""
        composed = {c.name for c in self.composed}
        return tuple(name for name in self.factors if name not in composed)

    @property
    def levels(self) -> Factors:
        """Levels of every categorical parameter with what they multiply the time by."""
        return self.factors

    @property
    def n_constants(self) -> int:
        """Number of independent constants: coefficients, powers, different level factors."""
        n_zeros = sum(f != 1.0 for zeros in self._all_zeros for f in zeros.values())
        n_powers = sum(1 + len(t.powers) for t in self.terms)
        return n_powers + n_zeros + sum(map(self._n_free, self.factors))

    def _n_free(self, name: str) -> int:
        """Return how many factors other than 1 the levels of a parameter have, in all terms."""
        groups = [self.factors[name], *(term.factors.get(name, {}) for term in self.terms)]
        return len({round(np.log(f), 9) for group in groups for f in group.values()} - {0.0})

    @property
    def _all_zeros(self) -> list[Mapping[str, float]]:
        return [self.zero_factors, *(term.zero_factors for term in self.terms)]

    def evaluate(self, X: pd.DataFrame) -> Vector:
        """Return the time in seconds of every row."""
        return np.asarray(np.exp(self.log_terms(X)).sum(axis=1))

    def components(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return what every term contributes, in seconds; the columns sum to the time."""
        parts = np.exp(self.log_terms(X))
        return pd.DataFrame(parts, columns=[f"term {k + 1}" for k in range(len(self.terms))])

    def log_terms(self, X: pd.DataFrame) -> Any:
        """Return the logarithm of every term, one column each."""
        X = with_composed(X, self.composed)
        logs = {name: self._log(X[name]) for name in self.stand_ins}
        common = log_factors(self.factors, X) + _log_zeros(self.zero_factors, X)
        columns = []
        for term in self.terms:
            column = common + np.log(term.coefficient_s)
            for name, power in term.powers.items():
                column = column + power * logs[name]
            column = column + log_factors(term.factors, X) + _log_zeros(term.zero_factors, X)
            if term.collective:
                column = column + log_collective(np.exp(logs[term.collective]))
            columns.append(np.clip(column, -_MAX_LOG, _MAX_LOG))
        return np.column_stack(columns)

    def unmeasured(self, X: pd.DataFrame) -> dict[str, Any]:
        """Return 1 for rows with levels that have not been measured together, by composed name."""
        return unmeasured(X, self.composed, self.factors)

    def composed_range(self, composed: Composed) -> tuple[float, float]:
        """Return the logarithms of the least and the largest factor over that of an unseen level.

        Of factors that terms have for themselves, the extremes of any term count.
        """
        shared = self.factors[composed.name]
        own = [term.factors.get(composed.name, {}) for term in self.terms]
        groups = [{k: f * group.get(k, 1.0) for k, f in shared.items()} for group in own]
        logs = [np.log(f / average_factor(g)) for g in groups for f in g.values()]
        return min(*logs, 0.0), max(*logs, 0.0)

    def _log(self, values: pd.Series[Any]) -> Vector:
        x = not_negative(values)
        return np.log(np.where(x > 0, x, self.stand_ins[str(values.name)]))

    def constants(self) -> dict[str, float]:
        """Return every constant by name, coefficients in seconds."""
        named = {}
        for k, term in enumerate(self.terms, 1):
            named[f"c[{k}]"] = term.coefficient_s
            named |= {f"p[{k},{name}]": power for name, power in term.powers.items()}
            named |= _named_factors(term.factors, f"{k},")
            named |= {f"zero[{k},{name}]": factor for name, factor in term.zero_factors.items()}
        named |= _named_factors(self.factors, "")
        return named | {f"zero[{name}]": factor for name, factor in self.zero_factors.items()}

    def rules(self) -> dict[str, bool]:
        """Return what must hold of the numbers of an expression, and whether it does."""
        factors = [f for g in self.factors.values() for f in g.values()]
        factors += [f for t in self.terms for g in t.factors.values() for f in g.values()]
        positive = [*factors, *self.stand_ins.values(), *(t.coefficient_s for t in self.terms)]
        positive += [factor for zeros in self._all_zeros for factor in zeros.values()]
        powers = [p for t in self.terms for p in t.powers.values()]
        named = {
            n for t in self.terms for n in (*t.powers, *([t.collective] if t.collective else []))
        }
        return {
            "all constants must be finite": bool(np.isfinite([*positive, *powers]).all()),
            "coefficients and factors must be positive": min(positive, default=1.0) > 0,
            "powers must be within 100": max(map(abs, powers), default=0.0) <= 100,
            "an expression must have terms": bool(self.terms),
            "terms must be of numeric parameters": named <= set(self.stand_ins),
            "composed parameters must be of others, and have factors": all(
                set(c.parents) <= set(self.names) and c.name in self.factors for c in self.composed
            ),
            "zeros must be of numeric parameters": all(
                set(zeros) <= set(self.stand_ins) for zeros in self._all_zeros
            ),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the expression as plain data."""
        return {
            "terms": [
                {
                    "coefficient_s": t.coefficient_s,
                    "powers": dict(t.powers),
                    "factors": _plain(t.factors),
                    "collective": t.collective,
                    "zero_factors": dict(t.zero_factors),
                }
                for t in self.terms
            ],
            "factors": _plain(self.factors),
            "stand_ins": dict(self.stand_ins),
            "zero_factors": dict(self.zero_factors),
            "composed": [c.to_dict() for c in self.composed],
        }

    def to_latex(self, digits: int = 4) -> str:
        """Return the expression as LaTeX with so many significant digits."""
        return _export.to_latex(self, digits)

    def to_python(self, name: str = "time_s") -> str:
        """Return the source of a Python function of all parameters that needs only ``math``."""
        return _export.to_python(self, name)

    def to_sympy(self, levels: Mapping[str, Any] | None = None) -> Any:
        """Return a SymPy expression; levels not given become 0-or-1 symbols such as ``gpu=V100``.

        It holds for positive numbers, and for 0 of parameters that were measured there.
        """
        return _export.to_sympy(self, levels)

    def to_numpy(self) -> Callable[..., Any]:
        """Return a function of one array or scalar per parameter, by name, or of a frame."""
        return _export.to_numpy(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PosynomialExpression:
        """Return the expression that `to_dict` wrote."""
        return cls(
            terms=tuple(
                PosynomialTerm(
                    coefficient_s=float(t["coefficient_s"]),
                    powers=_numbers(t["powers"]),
                    factors=_read_factors(t["factors"]),
                    collective=None if t["collective"] is None else str(t["collective"]),
                    zero_factors=_numbers(t.get("zero_factors", {})),  # older files have none
                )
                for t in data["terms"]
            ),
            factors=_read_factors(data["factors"]),
            stand_ins=_numbers(data["stand_ins"]),
            zero_factors=_numbers(data["zero_factors"]),
            composed=read_composed(data.get("composed", ())),  # older files have none
        )


def log_collective(n: Vector) -> Vector:
    """Return ``log(1 - 1/n)``, far below everything on one device."""
    return np.log(np.maximum(1.0 - 1.0 / np.maximum(n, 1.0), 1e-300))


def log_factors(factors: Factors, X: pd.DataFrame) -> Vector:
    """Return the logarithm of the product of the factors of each row's levels."""
    total = np.zeros(len(X))
    for name, group in factors.items():
        codes, distinct = pd.factorize(X[name], use_na_sentinel=False)
        average = average_factor(group)
        known = np.array([np.log(group.get(level_name(value), average)) for value in distinct])
        total += known[codes]
    return total


def _log_zeros(zero_factors: Mapping[str, float], X: pd.DataFrame) -> Vector:
    """Return the logarithm of the product of the factors of each row's zeros."""
    total = np.zeros(len(X))
    for name, factor in zero_factors.items():
        total += np.where(X[name].to_numpy(dtype=float) == 0, np.log(factor), 0.0)
    return total


def _named_factors(factors: Factors, prefix: str) -> dict[str, float]:
    return {
        f"factor[{prefix}{name}={level}]": factor
        for name, group in factors.items()
        for level, factor in group.items()
    }


def _plain(factors: Factors) -> dict[str, dict[str, float]]:
    return {name: dict(group) for name, group in factors.items()}


def _numbers(data: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in data.items()}


def _read_factors(data: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {str(name): _numbers(group) for name, group in data.items()}
