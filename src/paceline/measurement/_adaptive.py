"""Which trials to measure next: those that shrink the uncertainty most per second.

The logarithm of the time is modelled as a Gaussian process whose covariance is a weighted sum over
parameters and over pairs of them (an analysis of variance). The weights are learned, so that
parameters without effect draw no measurements. What is shrunk is the variance summed over
all candidates (Cohn's criterion, active learning with statistical models, 1996), which
also keeps a batch from holding the same trial twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from paceline.space import Space

Array = npt.NDArray[np.float64]

_MAX_ITERATIONS = 40
_SMALLEST, _LARGEST = np.log(1e-6), np.log(1e2)  # of weights, in units of the times' variance
_JITTER = 1e-8
# of the seconds that a gain is divided by; with 1 the dearest trials are hardly ever seen, and
# other models err there
_COST_POWER = 0.5
# two levels of a categorical parameter are as far apart as numbers one deviation apart
_CURVATURE = 0.25  # how much a bend costs beside a slope


@dataclass(frozen=True, slots=True, kw_only=True)
class Surrogate:
    """A model of the time with its uncertainty, for the choice of trials only.

    Parameters
    ----------
    weights
        Share of every parameter, then that of pairs, then of the noise; as variances.
    coordinates
        The rows that it was fitted to.
    solution
        Covariance solved for the centred logarithms of the times.
    centre, scale
        Of the logarithms.
    """

    weights: Array
    coordinates: tuple[Array, ...]
    factor: Any
    solution: Array
    centre: float
    scale: float

    def predict_log(self, rows: tuple[Array, ...]) -> Array:
        """Return the expected logarithm of the time of some rows."""
        cross = _covariance(_parts(rows, self.coordinates), self.weights)
        return self.centre + self.scale * (cross @ self.solution)

    def covariance(self, rows: tuple[Array, ...]) -> Array:
        """Return what is uncertain about some rows, noise aside."""
        cross = _covariance(_parts(self.coordinates, rows), self.weights)
        prior = _covariance(_parts(rows, rows), self.weights)
        return prior - cross.T @ cho_solve(self.factor, cross)


def choose_next(
    space: Space,
    measured: Sequence[Any],
    times_s: Sequence[float],
    candidates: Sequence[Any],
    n: int,
    *,
    n_steps: float = 1.0,
    overhead_s: float = 0.0,
) -> list[int]:
    """Return the positions of the candidates to measure next.

    Parameters
    ----------
    space
        Gives the parameters.
    measured, times_s
        Trials with the times of their steps, in seconds.
    candidates
        Trials to choose from; they also stand for the trials that are to be predicted.
    n
        How many to choose.
    n_steps, overhead_s
        A trial costs so many steps and so many seconds beside them.
    """
    coordinates = Coordinates(space, [*candidates, *measured])
    logs = np.log(np.asarray(times_s, dtype=float))
    with threadpool_limits(1):  # small matrices; more threads only disturb each other
        surrogate = fit_surrogate(coordinates.of(measured), logs)
        rows = coordinates.of(candidates)
        costs_s = overhead_s + n_steps * np.exp(surrogate.predict_log(rows))
        prices = costs_s**_COST_POWER
        return _choose(surrogate.covariance(rows), float(surrogate.weights[-1]), prices, n)


class Coordinates:
    """Trials as numbers: logarithms less their mean, in deviations, and positions of levels."""

    def __init__(self, space: Space, trials: Sequence[Any]) -> None:
        self._parameters = [p for p in space.parameters if len(p.values) > 1]
        self._logs = {
            p.name: min(p.values) > 0  # type: ignore[operator]
            for p in self._parameters
            if p.kind == "numeric"
        }
        self._scales = {name: self._scale(name, trials) for name in self._logs}

    def of(self, trials: Sequence[Any]) -> tuple[Array, ...]:
        """Return one array of features per parameter: a slope and a bend, or marks of levels."""
        return tuple(
            self._numbers(p.name, trials) if p.kind == "numeric" else _marks(p, trials)
            for p in self._parameters
        )

    def _raw(self, name: str, trials: Sequence[Any]) -> Array:
        values = np.array([float(trial[name]) for trial in trials])
        return np.log(values) if self._logs[name] else values

    def _scale(self, name: str, trials: Sequence[Any]) -> tuple[float, float]:
        raw = self._raw(name, trials)
        return float(raw.mean()), float(raw.std()) or 1.0

    def _numbers(self, name: str, trials: Sequence[Any]) -> Array:
        mean, width = self._scales[name]
        slope = (self._raw(name, trials) - mean) / width
        return np.column_stack([slope, np.sqrt(_CURVATURE) * (slope**2 - 1)])


def fit_surrogate(rows: tuple[Array, ...], logs: Array) -> Surrogate:
    """Return the surrogate whose weights make the measured logarithms likeliest."""
    centre, scale = float(logs.mean()), float(logs.std()) or 1.0
    target, parts = (logs - centre) / scale, _parts(rows, rows)
    n_groups = len(parts)
    start = np.log([*[0.5 / max(n_groups, 1)] * n_groups, 0.3, 0.05])
    found = minimize(
        _unlikelihood,
        start,
        args=(parts, target),
        jac=True,
        method="L-BFGS-B",
        bounds=[(_SMALLEST, _LARGEST)] * len(start),
        options={"maxiter": _MAX_ITERATIONS},
    )
    weights = np.exp(found.x)
    factor = cho_factor(_noisy(_covariance(parts, weights), weights[-1]))
    return Surrogate(
        weights=weights,
        coordinates=rows,
        factor=factor,
        solution=cho_solve(factor, target),
        centre=centre,
        scale=scale,
    )


def _choose(covariance: Array, noise: float, prices: Array, n: int) -> list[int]:
    """Choose greedily; each choice counts as measured for those after it."""
    chosen: list[int] = []
    left = np.ones(len(prices), dtype=bool)
    for _ in range(min(n, len(prices))):
        spread = np.diag(covariance).clip(min=0.0) + noise + _JITTER
        gains = np.sum(covariance**2, axis=0) / spread / prices
        best = int(np.argmax(np.where(left, gains, -np.inf)))
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / spread[best]
        left[best] = False
        chosen.append(best)
    return chosen


def _unlikelihood(logs: Array, parts: Sequence[Array], target: Array) -> tuple[float, Array]:
    """Return the negative log marginal likelihood and its gradient by log weights."""
    weights = np.exp(logs)
    factor = cho_factor(_noisy(_covariance(parts, weights), weights[-1]))
    solution = cho_solve(factor, target)
    inverse = cho_solve(factor, np.eye(len(target)))
    outer = np.outer(solution, solution) - inverse
    total, squares = _sums(parts, weights)
    slopes = [
        np.sum(outer * part * (1 + weights[-2] * (total - w * part)))
        for part, w in zip(parts, weights, strict=False)
    ]
    slopes += [np.sum(outer * (total**2 - squares) / 2), np.trace(outer)]
    value = 0.5 * target @ solution + np.sum(np.log(np.diag(factor[0])))
    return float(value), -0.5 * np.array(slopes) * weights


def _covariance(parts: Sequence[Array], weights: Array) -> Array:
    """Return constant, parameters and pairs of parameters, summed."""
    total, squares = _sums(parts, weights)
    result: Array = 1.0 + total + weights[-2] * (total**2 - squares) / 2
    return result


def _sums(parts: Sequence[Array], weights: Array) -> tuple[Array, Array]:
    shape = parts[0].shape if parts else (1, 1)
    total, squares = np.zeros(shape), np.zeros(shape)
    for part, weight in zip(parts, weights, strict=False):
        total += weight * part
        squares += (weight * part) ** 2
    return total, squares


def _parts(left: tuple[Array, ...], right: tuple[Array, ...]) -> list[Array]:
    return [a @ b.T for a, b in zip(left, right, strict=True)]


def _noisy(covariance: Array, noise: float) -> Array:
    result: Array = covariance + (noise + _JITTER) * np.eye(len(covariance))
    return result


def _marks(parameter: Any, trials: Sequence[Any]) -> Array:
    """Return marks of levels less their mean share."""
    levels = {value: i for i, value in enumerate(parameter.values)}
    marks = np.full((len(trials), len(levels)), -1.0 / len(levels))
    for row, trial in enumerate(trials):
        marks[row, levels[trial[parameter.name]]] += 1.0
    return marks
