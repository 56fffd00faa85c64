"""A Gaussian process on the residuals of an expression, with three kernels and robust noise.

One kernel reaches far, also along a few directions across the parameters, one is local, one
knows kinks. Lengths, directions, sizes and noise are those that make the residuals most probable
(Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006, eq. 2.30 and 5.9). Rows
whose leave-one-out error (eq. 5.12) is large are given more noise, as Student's t would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from paceline.estimators._columns import Array
from paceline.estimators._correction._kernel import Kernel, KernelSum, Places
from paceline.estimators._correction._likelihood import Likelihood

MAX_ROWS = 4_000

_N_ACROSS = 2  # directions across parameters, along which the far kernel falls too
_N_FIRST_ROWS = 400  # to find lengths with; then they settle on more rows
_MAX_LEARN_ROWS = 1_000
_LEARN_WORK = 8_000_000  # rows squared times columns
_N_ITERATIONS = 25
_N_MORE = 25  # with more rows, once outliers are known
_DOF = 4.0
_ROWS_AT_ONCE = 500  # of a covariance: what it is made of is several times as large
_JITTER = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The learnt covariance: kernels with their variances, and the noise."""

    kernels: tuple[Kernel, ...]
    variances: tuple[float, ...]
    noise: float

    def fit(self, places: Places, residuals: Array) -> KernelSum:
        """Return the posterior mean as a sum of kernels; outliers are given more noise."""
        covariance = self.covariance(places)
        noise = self._robust_noise(covariance, residuals)
        weights = _Conditioned(covariance, noise).weights(residuals)
        return KernelSum(
            places=places,
            kernels=self.kernels,
            weights=np.outer(self.variances, weights),
        )

    def covariance(self, places: Places) -> Array:
        """Return the covariance of all pairs without noise."""
        covariance = np.zeros((len(places), len(places)))
        for i in range(0, len(places), _ROWS_AT_ONCE):
            rows = slice(i, i + _ROWS_AT_ONCE)
            for kernel, variance in zip(self.kernels, self.variances, strict=True):
                covariance[rows] += variance * kernel.between(places.take(rows), places)
        covariance.flat[:: len(places) + 1] += _JITTER * sum(self.variances)
        return covariance

    def _robust_noise(self, covariance: Array, residuals: Array) -> Array:
        noise = np.full(len(residuals), self.noise)
        return noise * _Conditioned(covariance, noise).outlier_noise(residuals)


class _Conditioned:
    """A covariance with noise, factored."""

    def __init__(self, covariance: Array, noise: Array) -> None:
        noisy = covariance.copy()
        noisy.flat[:: len(noisy) + 1] += noise
        # symmetric: the transpose is the same matrix in the order that LAPACK wants
        self._factor, problem = dpotrf(noisy.T, lower=1, overwrite_a=1)
        if problem:
            raise np.linalg.LinAlgError("a covariance with noise is positive definite")

    def weights(self, residuals: Array) -> Array:
        return np.asarray(dpotrs(self._factor, residuals, lower=1)[0])

    def outlier_noise(self, residuals: Array) -> Array:
        """Return by how much the noise of every row is larger, from leave-one-out errors."""
        precision = np.diag(dpotri(self._factor, lower=1)[0])
        left_out = self.weights(residuals) / precision
        scale = np.median(np.abs(left_out)) / 0.6745 + 1e-9
        return np.asarray((_DOF + (left_out / scale) ** 2) / (_DOF + 1.0))


def learn_process(places: Places, residuals: Array, random_state: int) -> Process:
    """Return the covariance that makes the residuals most probable, outliers discounted."""
    order = np.random.default_rng(random_state).permutation(len(residuals))
    first = np.sort(order[:_N_FIRST_ROWS])
    likelihood = Likelihood(places.take(first), residuals[first], _N_ACROSS)
    x = likelihood.maximise(likelihood.start(random_state), _N_ITERATIONS)
    process = _process(likelihood, x)
    rows = np.sort(order[: _n_learn_rows(places)])
    some, values = places.take(rows), residuals[rows]
    likelihood = Likelihood(some, values, _N_ACROSS)
    noise = np.full(len(rows), process.noise)
    likelihood.noise = _Conditioned(process.covariance(some), noise).outlier_noise(values)
    return _process(likelihood, likelihood.maximise(x, _N_MORE))


def _n_learn_rows(places: Places) -> int:
    """Return how many rows lengths settle on: as many as the work allows."""
    n_columns = max(places.logs.shape[1] + places.codes.shape[1], 1)
    return min(int(np.sqrt(_LEARN_WORK / n_columns)), _MAX_LEARN_ROWS)


def _process(likelihood: Likelihood, x: Array) -> Process:
    kernels, variances, noise = likelihood.parts(x)
    return Process(kernels=kernels, variances=variances, noise=noise)
