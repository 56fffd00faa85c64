"""Who corrects the residuals of an expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._correction._gaussian import (
    MAX_ROWS,
    Process,
    learn_process,
)
from paceline.estimators._correction._kernel import Kernel, KernelSum, Places

POWER_LAW, FORMULA = "power law", "formula"
MEMBERS = {"process": POWER_LAW, "rough": FORMULA}  # whose residuals

_C = 10.0
_APART = 4.0  # two levels, in standard deviations
_EPSILON = 0.05
_MAX_SUPPORT_ROWS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Places with what an expression says and leaves unexplained there, in logarithms."""

    places: Places
    base: Array
    values: Array

    def take(self, rows: Any) -> Residuals:
        """Return the given rows."""
        return Residuals(
            places=self.places.take(rows), base=self.base[rows], values=self.values[rows]
        )

    def some(self, n_rows: int, random_state: int) -> Residuals:
        """Return at most `n_rows` rows, drawn at random."""
        if len(self.values) <= n_rows:
            return self
        rng = np.random.default_rng(random_state)
        return self.take(np.sort(rng.choice(len(self.values), n_rows, replace=False)))


def learn(residuals: Residuals, random_state: int) -> Process:
    """Return what all fits of the process share: its lengths, its directions and its noise."""
    some = residuals.some(MAX_ROWS, random_state)
    return learn_process(known_to("process", some.places, some.base), some.values, random_state)


def known_to(name: str, places: Places, base: Array) -> Places:
    """Return the places as a member sees them: a process is told what the expression says.

    It learns how much that matters. A support vector machine, with one length for all
    parameters, would only be led astray.
    """
    return places.along(base) if name == "process" else places


def fit_member(name: str, residuals: Residuals, process: Process, random_state: int) -> KernelSum:
    """Return the correction that a member makes of residuals."""
    if name == "process":
        some = residuals.some(MAX_ROWS, random_state)
        return process.fit(known_to(name, some.places, some.base), some.values)
    return _support(residuals.some(_MAX_SUPPORT_ROWS, random_state))


def _support(residuals: Residuals) -> KernelSum:
    """Return a support vector machine: absolute errors beyond a margin, so robust."""
    from sklearn.svm import SVR  # slow to import, and not always wanted

    kernel = _rough_kernel(residuals.places)
    size = float(residuals.values.std()) or 1.0
    machine = SVR(C=_C, epsilon=_EPSILON, kernel="precomputed", cache_size=500)
    machine.fit(kernel.between(residuals.places, residuals.places), residuals.values / size)
    return KernelSum(
        places=residuals.places.take(machine.support_),
        kernels=(kernel,),
        weights=size * machine.dual_coef_,
        offset=size * float(machine.intercept_[0]),
    )


def _rough_kernel(places: Places) -> Kernel:
    """Return one length for all parameters, in standard deviations."""
    n_columns = max(places.logs.shape[1] + places.codes.shape[1], 1)
    width = places.logs.std(axis=0)
    width[width < 1e-9] = 1.0
    return Kernel(
        shape="rough",
        scales=1.0 / width / n_columns,
        levels=np.full(places.codes.shape[1], _APART / n_columns),
    )
