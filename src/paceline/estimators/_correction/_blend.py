"""A formula and its corrections in one prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.errors import InvalidInputError
from paceline.estimators._columns import Array
from paceline.estimators._correction._kernel import KernelSum, Places, places_of
from paceline.estimators._correction._stack import spread
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._rows import Layout

_MAX_LOG = 690.0
_LEAST_SPAN = np.log(2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far the measured rows reach, in centred logarithms."""

    low: Array
    high: Array

    @classmethod
    def of(cls, places: Places) -> Reach:
        """Return the reach of measured rows."""
        return cls(low=places.logs.min(axis=0), high=places.logs.max(axis=0))

    def fade(self, places: Places) -> Array:
        """Return 1 inside, and ``exp(-d^2)`` at a distance d outside.

        One span of a parameter's logarithms is a distance of 1, and so is an unseen level.
        """
        span = np.maximum(self.high - self.low, _LEAST_SPAN)
        out = np.maximum(self.low - places.logs, places.logs - self.high) / span
        distance = np.sqrt(
            (np.maximum(out, 0.0) ** 2).sum(axis=1) + (places.codes < 0).sum(axis=1)
        )
        return np.asarray(np.exp(-(distance**2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """Corrections of simpler expressions, weighted beside a formula.

    Parameters
    ----------
    layout
        How rows become places.
    reach
        The measured range, outside of which the corrections fade.
    baselines
        For every member, the expression whose residuals it corrects.
    members
        The corrections by name. One with a place more than there are parameters is told what
        its baseline says, too.
    weights
        Of every member; what is missing to 1 is the formula's.
    lower
        What the logarithm of the weighted mean is lowered by for the least percentage error.
    lower_apart
        And by how much more for every unit of the spread of formula and members.
    """

    layout: Layout
    reach: Reach
    baselines: Mapping[str, PosynomialExpression]
    members: Mapping[str, KernelSum]
    weights: Mapping[str, float]
    lower: float = 0.0
    lower_apart: float = 0.0

    @property
    def formula_share(self) -> float:
        """Weight of the formula inside the measured range."""
        return 1.0 - sum(self.weights.values())

    def apply(self, formula_s: Array, X: pd.DataFrame) -> Array:
        """Return the corrected times of rows with the formula's times."""
        places = places_of(self.layout, X)
        logs = np.array([_log(formula_s), *(self._member(n, X, places) for n in self.weights)])
        weights = np.array([max(self.formula_share, 0.0), *self.weights.values()])
        lower = self.lower + self.lower_apart * spread(logs, weights)
        change = weights @ logs / weights.sum() - lower - logs[0]
        corrected = logs[0] + self.reach.fade(places) * change
        return np.asarray(np.exp(np.clip(corrected, -_MAX_LOG, _MAX_LOG)))

    def _member(self, name: str, X: pd.DataFrame, places: Places) -> Array:
        """Return what a member makes of its baseline, in logarithms."""
        member, base = self.members[name], _log(self.baselines[name].evaluate(X))
        known = places if member.places.fits(self.layout) else places.along(base)
        return base + member.evaluate(known)

    def to_dict(self) -> dict[str, Any]:
        """Return the blend as plain data."""
        return {
            "layout": self.layout.to_dict(),
            "reach": {"low": self.reach.low.tolist(), "high": self.reach.high.tolist()},
            "baselines": {name: base.to_dict() for name, base in self.baselines.items()},
            "members": {name: member.to_dict() for name, member in self.members.items()},
            "weights": dict(self.weights),
            "lower": self.lower,
            "lower_apart": self.lower_apart,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Blend:
        """Return the blend that `to_dict` wrote, checked."""
        blend = cls(
            layout=Layout.from_dict(data["layout"]),
            reach=Reach(
                low=np.asarray(data["reach"]["low"], dtype=float),
                high=np.asarray(data["reach"]["high"], dtype=float),
            ),
            baselines={
                str(n): PosynomialExpression.from_dict(b) for n, b in _baselines(data).items()
            },
            members={str(n): KernelSum.from_dict(m) for n, m in data["members"].items()},
            weights={str(n): float(w) for n, w in data["weights"].items()},
            lower=float(data.get("lower", 0.0)),
            lower_apart=float(data.get("lower_apart", 0.0)),
        )
        blend.check()
        return blend

    def check(self) -> None:
        """Refuse parts that do not fit together."""
        places = [member.places for member in self.members.values()]
        if not all(p.fits(self.layout) or p.fits(self.layout, n_more=1) for p in places):
            raise InvalidInputError("corrections must have one place per parameter.")
        n_numbers = len(self.layout.stand_ins)
        if self.reach.low.shape != (n_numbers,) or self.reach.high.shape != (n_numbers,):
            raise InvalidInputError("the reach must name every numeric parameter.")
        if set(self.members) != set(self.weights) or not 0 <= self.formula_share <= 1 + 1e-9:
            raise InvalidInputError("weights must be those of the members and at most 1.")
        if set(self.members) != set(self.baselines):
            raise InvalidInputError("every correction must have a baseline.")
        if not np.isfinite([self.lower, self.lower_apart]).all():
            raise InvalidInputError("corrections must be lowered by finite numbers.")


def _baselines(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the baseline of every member; older files have one for all."""
    if "baselines" in data:
        return dict(data["baselines"])
    return dict.fromkeys(data["members"], data["baseline"])


def _log(times_s: Array) -> Array:
    return np.asarray(np.log(np.maximum(times_s, np.finfo(float).tiny)))
