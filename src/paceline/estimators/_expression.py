"""The generic expression of the step time, with numbers in it.

    t = (base + sum_i a_i * I_i^p_i + sum_g level_g) * prod_j E_j^q_j + C

Thesis, equations 4.1 to 4.5: I_i are intrinsic numeric parameters, level_g the coefficient of
the level that categorical parameter g takes, E_j extrinsic parameters, C the floor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import level_name
from paceline.errors import InvalidInputError
from paceline.estimators._generic_export import to_latex, to_python

Vector = np.ndarray[tuple[int], np.dtype[np.float64]]

# the product of two factors clipped at exp(300) is still finite
_MAX_LOG = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One numeric intrinsic term ``coefficient_s * parameter ^ power``."""

    name: str
    coefficient_s: float
    power: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GenericExpression:
    """The thesis' expression (eq. 4.4) with its constants, in seconds.

    Parameters
    ----------
    terms
        Numeric intrinsic terms a_i, p_i.
    levels
        For every categorical parameter, the coefficient in seconds of each level.
    powers
        The power q_j of every extrinsic parameter.
    base_s
        One constant inside the brackets; 0 in the thesis' redundant form.
    constant_s
        The floor C that no scaling removes.
    """

    terms: tuple[Term, ...] = ()
    levels: Mapping[str, Mapping[str, float]]
    powers: Mapping[str, float]
    base_s: float = 0.0
    constant_s: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, terms first, then levels, then powers."""
        return (*(term.name for term in self.terms), *self.levels, *self.powers)

    def evaluate(self, X: pd.DataFrame) -> Vector:
        """Return the time in seconds of every row."""
        brackets = np.full(len(X), self.base_s)
        for part in self._bracket_parts(X).values():
            brackets += part
        return np.minimum(brackets * self.scaling(X) + self.constant_s, np.finfo(float).max)

    def components(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return what every summand contributes, in seconds; the columns sum to the time."""
        factor = self.scaling(X)
        parts = {name: part * factor for name, part in self._bracket_parts(X).items()}
        base = {"base": self.base_s * factor} if self.base_s else {}
        return pd.DataFrame({**parts, **base, "C": np.full(len(X), self.constant_s)})

    def scaling(self, X: pd.DataFrame) -> Vector:
        """Return the product of the extrinsic powers (eq. 4.3)."""
        log = np.zeros(len(X))
        for name, power in self.powers.items():
            log += power * np.log(positive(X, name))
        return np.exp(np.clip(log, -_MAX_LOG, _MAX_LOG))

    def _bracket_parts(self, X: pd.DataFrame) -> dict[str, Vector]:
        parts = {t.name: t.coefficient_s * power_of(X[t.name], t.power) for t in self.terms}
        for name, coefficients in self.levels.items():
            parts[name] = level_costs(X[name], coefficients)
        return parts

    def canonical(self) -> GenericExpression:
        """Return the identifiable form: the cheapest level of every group costs 0."""
        floors = {name: min(group.values()) for name, group in self.levels.items()}
        levels = {n: {k: v - floors[n] for k, v in g.items()} for n, g in self.levels.items()}
        return replace(self, levels=levels, base_s=self.base_s + sum(floors.values()))

    def redundant(self) -> GenericExpression:
        """Return the thesis' form: no base, its cost shared equally by the groups."""
        if not self.levels:
            return self
        share = self.base_s / len(self.levels)
        levels = {n: {k: v + share for k, v in g.items()} for n, g in self.levels.items()}
        return replace(self, levels=levels, base_s=0.0)

    def constants(self) -> dict[str, float]:
        """Return every constant by name, coefficients in seconds."""
        named = {f"a[{t.name}]": t.coefficient_s for t in self.terms}
        named |= {f"p[{t.name}]": t.power for t in self.terms}
        for name, group in self.levels.items():
            named |= {f"level[{name}={level}]": value for level, value in group.items()}
        named |= {f"q[{name}]": power for name, power in self.powers.items()}
        return {**named, "base": self.base_s, "C": self.constant_s}

    def rules(self) -> dict[str, bool]:
        """Return what must hold of the numbers of an expression, and whether it does."""
        costs = [self.base_s, self.constant_s, *(t.coefficient_s for t in self.terms)]
        costs += [cost for group in self.levels.values() for cost in group.values()]
        powers = [*self.powers.values(), *(t.power for t in self.terms)]
        return {
            "all constants must be finite": bool(np.isfinite([*costs, *powers]).all()),
            "coefficients must not be negative": min(costs) >= 0,
            "powers must be within 100": max(map(abs, powers), default=0.0) <= 100,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the expression as plain data."""
        return {
            "terms": [
                {"name": t.name, "coefficient_s": t.coefficient_s, "power": t.power}
                for t in self.terms
            ],
            "levels": {name: dict(group) for name, group in self.levels.items()},
            "powers": dict(self.powers),
            "base_s": self.base_s,
            "constant_s": self.constant_s,
        }

    def to_latex(self, digits: int = 4) -> str:
        """Return the formula in LaTeX, the costs of levels below it."""
        return to_latex(self, digits)

    def to_python(self, name: str = "time_s") -> str:
        """Return the source of a Python function of all parameters."""
        return to_python(self, name)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GenericExpression:
        """Return the expression that `to_dict` wrote."""
        return cls(
            terms=tuple(
                Term(
                    name=str(t["name"]),
                    coefficient_s=float(t["coefficient_s"]),
                    power=float(t["power"]),
                )
                for t in data["terms"]
            ),
            levels={
                str(n): {str(k): float(v) for k, v in g.items()} for n, g in data["levels"].items()
            },
            powers={str(n): float(q) for n, q in data["powers"].items()},
            base_s=float(data["base_s"]),
            constant_s=float(data["constant_s"]),
        )


def power_of(values: pd.Series[Any], power: float) -> Vector:
    """Return ``values ** power``, where zero of something costs nothing whatever the power."""
    x = not_negative(values)
    present = x > 0
    log = np.log(np.where(present, x, 1.0)) * power
    return np.where(present, np.exp(np.clip(log, -_MAX_LOG, _MAX_LOG)), 0.0)


def level_costs(values: pd.Series[Any], coefficients: Mapping[str, float]) -> Vector:
    """Return the coefficient of each row's level; an unseen one costs what an average one does."""
    average = float(np.mean(list(coefficients.values())))
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    known = np.array([coefficients.get(level_name(value), average) for value in distinct])
    return np.asarray(known[codes], dtype=float)


def not_negative(values: pd.Series[Any]) -> Vector:
    """Return the values of a power term, which may be 0 but not negative."""
    x = values.to_numpy(dtype=float)
    if (x < 0).any():
        row = int(np.argmax(x < 0))
        raise InvalidInputError(
            f"Negative values in data: `{values.name} >= 0` must hold in a power term, but row "
            f"{row + 1} has {x[row]:g}. Shift the parameter, or make it categorical."
        )
    return x


def positive(X: pd.DataFrame, name: str) -> Vector:
    """Return the values of an extrinsic parameter, which must be positive."""
    x = X[name].to_numpy(dtype=float)
    if not (x > 0).all():
        row = int(np.argmax(~(x > 0)))
        raise InvalidInputError(
            f"`{name} > 0` must hold for an extrinsic parameter, but row {row + 1} has "
            f"{x[row]:g}. Leave the row out, or make the parameter categorical."
        )
    return x
