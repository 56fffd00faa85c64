"""A Gaussian process on the residuals of an expression, with two ranges and robust noise.

One kernel reaches far, the other is local; lengths, sizes and noise are those that make the
residuals most probable (Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006,
eq. 2.30 and 5.9). Rows whose leave-one-out error (eq. 5.12) is large are given more noise, as
Student's t would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from paceline.estimators._columns import Array
from paceline.estimators._correction._kernel import (
    Kernel,
    KernelSum,
    Places,
    shape_of,
    slope_of,
)

N_LEARN_ROWS = 300
MAX_ROWS = 2_000

_SHAPE = "matern"
_REACH = (-2.5, 0.0)  # where the logarithms of the scales begin: far, local
_PRIOR_SD = 2.0
_N_ITERATIONS = 30
_N_MORE = 15  # once outliers are known
_DOF = 4.0
_JITTER = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The learnt covariance: two kernels with their variances, and the noise."""

    kernels: tuple[Kernel, ...]
    variances: tuple[float, ...]
    noise: float

    def condition(self, places: Places, residuals: Array, noise: Array) -> tuple[Array, Any]:
        """Return the weight of every row and the factor of the covariance."""
        covariance = np.zeros((len(places), len(places)))
        for kernel, variance in zip(self.kernels, self.variances, strict=True):
            covariance += variance * kernel.between(places, places)
        covariance[np.diag_indices_from(covariance)] += noise + _JITTER * sum(self.variances)
        factor = cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        return cho_solve(factor, residuals, check_finite=False), factor

    def fit(self, places: Places, residuals: Array) -> KernelSum:
        """Return the posterior mean as a sum of kernels; outliers are given more noise."""
        noise = np.full(len(residuals), self.noise)
        weights, factor = self.condition(places, residuals, noise)
        noisier = noise * outlier_noise(weights, factor)
        weights, _ = self.condition(places, residuals, noisier)
        return KernelSum(
            places=places,
            kernels=self.kernels,
            weights=np.outer(self.variances, weights),
        )


def outlier_noise(weights: Array, factor: Any) -> Array:
    """Return by how much the noise of every row is larger, from leave-one-out errors."""
    precision = cho_solve(factor, np.eye(len(weights)), check_finite=False)
    left_out = weights / np.diag(precision)
    scale = np.median(np.abs(left_out)) / 0.6745 + 1e-9
    return np.asarray((_DOF + (left_out / scale) ** 2) / (_DOF + 1.0))


def learn_process(places: Places, residuals: Array, random_state: int) -> Process:
    """Return the covariance that makes the residuals most probable, outliers discounted."""
    rng = np.random.default_rng(random_state)
    rows = np.sort(rng.permutation(len(residuals))[:N_LEARN_ROWS])
    likelihood = _Likelihood(places.take(rows), residuals[rows])
    x = likelihood.maximise(likelihood.start(), _N_ITERATIONS)
    process = likelihood.process(x)
    weights, factor = process.condition(
        places.take(rows), residuals[rows], np.full(len(rows), process.noise)
    )
    likelihood.noise = outlier_noise(weights, factor)
    return likelihood.process(likelihood.maximise(x, _N_MORE))


class _Likelihood:
    """The probability of residuals as a function of the logarithms of all scales."""

    def __init__(self, places: Places, residuals: Array) -> None:
        self.residuals = residuals
        self.noise: Array = np.ones(len(residuals))
        self.variance = float(residuals @ residuals / len(residuals)) + 1e-12
        logs, codes = places.logs, places.codes
        self.squares = np.array([(c[:, None] - c) ** 2 for c in logs.T]).reshape(
            logs.shape[1], len(logs), len(logs)
        )
        self.differ = np.array([c[:, None] != c for c in codes.T], dtype=float).reshape(
            codes.shape[1], len(logs), len(logs)
        )
        spread = self.squares.mean(axis=(1, 2)) / 2.0
        self.unit = 1.0 / np.where(spread > 1e-12, spread, 1.0)  # one over the variance
        self.n_scales = len(self.squares) + len(self.differ)

    def start(self) -> Array:
        parts = [
            [*np.full(self.n_scales, reach), np.log(0.35 * self.variance)] for reach in _REACH
        ]
        return np.concatenate([*parts, [np.log(0.2 * self.variance)]])

    def maximise(self, x: Array, n_iterations: int) -> Array:
        middle = np.log(self.variance)
        part = [(-8.0, 4.0)] * self.n_scales + [(middle - 9.0, middle + 4.0)]
        bounds = [*part * len(_REACH), (middle - 10.0, middle + 1.0)]
        found = minimize(
            self.cost,
            x,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": n_iterations},
        )
        return np.asarray(found.x)

    def process(self, x: Array) -> Process:
        kernels, variances = [], []
        for part in self._parts(x):
            scales, levels = np.split(np.exp(part[:-1]), [len(self.squares)])
            kernels.append(Kernel(shape=_SHAPE, scales=scales * self.unit, levels=levels))
            variances.append(float(np.exp(part[-1])))
        return Process(
            kernels=tuple(kernels), variances=tuple(variances), noise=float(np.exp(x[-1]))
        )

    def cost(self, x: Array) -> tuple[float, Array]:
        """Return minus the log probability with a weak prior on the scales, and its gradient."""
        tables = [self._tables(part) for part in self._parts(x)]
        noise = np.exp(x[-1]) * self.noise
        covariance = sum((t[0] for t in tables), np.diag(noise + _JITTER * self.variance))
        try:
            factor = cho_factor(covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(x)
        weights = cho_solve(factor, self.residuals, check_finite=False)
        inverse = cho_solve(factor, np.eye(len(weights)), check_finite=False)
        slope = 0.5 * (inverse - np.outer(weights, weights))
        value = 0.5 * self.residuals @ weights + np.log(np.diag(factor[0])).sum()
        gradient = [self._gradient(part, t, slope) for part, t in
                    zip(self._parts(x), tables, strict=True)]  # fmt: skip
        gradient.append(np.array([np.diag(slope) @ noise]))
        prior, pull = self._prior(x)
        return float(value + prior), np.concatenate(gradient) + pull

    def _parts(self, x: Array) -> list[Array]:
        n = self.n_scales + 1
        return [x[i * n : (i + 1) * n] for i in range(len(_REACH))]

    def _tables(self, part: Array) -> tuple[Array, Array]:
        """Return the covariance of one kernel, and what its derivative by a distance is."""
        scales, levels = np.split(np.exp(part[:-1]), [len(self.squares)])
        squares = np.tensordot(scales * self.unit, self.squares, 1)
        alike = np.exp(part[-1] - np.tensordot(levels, self.differ, 1))
        return shape_of(_SHAPE, squares) * alike, slope_of(_SHAPE, squares) * alike

    def _gradient(self, part: Array, tables: tuple[Array, Array], slope: Array) -> Array:
        scales, levels = np.split(np.exp(part[:-1]), [len(self.squares)])
        whole, steep = slope * tables[0], slope * tables[1]
        by_scale = -scales * self.unit * np.tensordot(self.squares, steep, ([1, 2], [0, 1]))
        by_level = -levels * np.tensordot(self.differ, whole, ([1, 2], [0, 1]))
        return np.concatenate([by_scale, by_level, [whole.sum()]])

    def _prior(self, x: Array) -> tuple[float, Array]:
        pull = np.zeros_like(x)
        n = self.n_scales + 1
        for i, reach in enumerate(_REACH):
            own = slice(i * n, i * n + self.n_scales)
            pull[own] = (x[own] - reach) / _PRIOR_SD**2
        return 0.5 * _PRIOR_SD**2 * float(pull @ pull), pull
