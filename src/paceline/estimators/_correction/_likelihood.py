"""How probable residuals are under a covariance, with its gradient.

Tables hold every pair of rows once, below the diagonal: half the work of whole matrices.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from paceline.estimators._columns import Array, Index
from paceline.estimators._correction._kernel import Kernel, Places, matern_and_slope

# shapes, and where the logarithms of their scales begin: far, local, and kinks and steps
_PARTS = (("matern", -2.5), ("matern", 0.0), ("rough", -1.0))
_EXPLAINED = 0.7  # of the variance, to begin with
_PRIOR_SD = 2.0
_PRIOR_ACROSS = 0.5
_START_ACROSS = 0.1
_JITTER = 1e-8


class Likelihood:
    """The probability of residuals as a function of the logarithms of all scales.

    Parameters
    ----------
    places
        Where the rows lie.
    residuals
        What an expression leaves unexplained there.
    n_across
        Number of directions across parameters that the far kernel has.
    """

    def __init__(self, places: Places, residuals: Array, n_across: int = 0) -> None:
        n = len(residuals)
        self.residuals = residuals
        self.noise: Array = np.ones(n)
        self.variance = float(residuals @ residuals / n) + 1e-12
        self._rows, self._columns = np.tril_indices(n, -1)
        self._below = self._rows + n * self._columns  # in the order that LAPACK wants
        spread = places.logs.var(axis=0)
        self._unit = 1.0 / np.where(spread > 1e-12, spread, 1.0)
        self._logs, codes = places.logs * np.sqrt(self._unit), places.codes
        gaps = np.abs(_pairs(self._logs, self._rows, self._columns))
        self._away = {"matern": gaps**2, "rough": gaps}
        self._differ = (_pairs(codes, self._rows, self._columns) != 0).astype(float)
        self._n_logs = len(gaps)
        self._n_scales = len(gaps) + len(self._differ)
        self._n_across = n_across

    def start(self, random_state: int = 0) -> Array:
        """Return where to begin: kernels of equal size, and short directions at random."""
        size = np.log(_EXPLAINED / len(_PARTS) * self.variance)
        parts = [[*np.full(self._n_scales, reach), size] for _, reach in _PARTS]
        rng = np.random.default_rng(random_state)
        across = rng.normal(0.0, _START_ACROSS, self._n_across * self._n_logs)
        return np.concatenate([*parts, across, [np.log(0.2 * self.variance)]])

    def maximise(self, x: Array, n_iterations: int) -> Array:
        """Return more probable scales."""
        middle = np.log(self.variance)
        part = [(-8.0, 4.0)] * self._n_scales + [(middle - 9.0, middle + 4.0)]
        across = [(-4.0, 4.0)] * (self._n_across * self._n_logs)
        bounds = [*part * len(_PARTS), *across, (middle - 10.0, middle + 1.0)]
        found = minimize(
            self.cost,
            x,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": n_iterations},
        )
        return np.asarray(found.x)

    def parts(self, x: Array) -> tuple[tuple[Kernel, ...], tuple[float, ...], float]:
        """Return the kernels, their variances and the noise."""
        kernels, variances = [], []
        for (shape, _), part in zip(_PARTS, self._split(x), strict=True):
            scales, levels = np.split(np.exp(part[:-1]), [self._n_logs])
            unit = np.sqrt(self._unit) if shape == "rough" else self._unit
            kernels.append(Kernel(shape=shape, scales=scales * unit, levels=levels))
            variances.append(float(np.exp(part[-1])))
        if self._n_across:
            kernels[0] = replace(kernels[0], across=self._across(x) * np.sqrt(self._unit))
        return tuple(kernels), tuple(variances), float(np.exp(x[-1]))

    def cost(self, x: Array) -> tuple[float, Array]:
        """Return minus the log probability with a weak prior on the scales, and its gradient."""
        parts = [(s, part) for (s, _), part in zip(_PARTS, self._split(x), strict=True)]
        gaps = _pairs(self._logs @ self._across(x).T, self._rows, self._columns)
        further = [(gaps**2).sum(axis=0), 0.0, 0.0]  # only the far kernel looks across
        tables = [self._tables(*part, more) for part, more in zip(parts, further, strict=True)]
        size = sum(float(np.exp(part[-1])) for part in self._split(x))
        noise = np.exp(x[-1]) * self.noise
        below = np.sum([whole for whole, _ in tables], axis=0)
        factor, problem = dpotrf(self._matrix(below, size + noise), lower=1, overwrite_a=1)
        if problem:
            return 1e10, np.zeros_like(x)
        weights = dpotrs(factor, self.residuals, lower=1)[0]
        value = 0.5 * self.residuals @ weights + np.log(np.diag(factor)).sum()
        inverse = dpotri(factor, lower=1, overwrite_c=1)[0]
        slope = inverse.ravel(order="F")[self._below]
        slope -= weights[self._rows] * weights[self._columns]
        own = 0.5 * (np.diag(inverse) - weights**2)
        gradient = [
            self._gradient(*part, table, slope, float(own.sum()))
            for part, table in zip(parts, tables, strict=True)
        ]
        gradient.append(self._gradient_across(gaps, slope * tables[0][1]))
        prior, pull = self._prior(x)
        return float(value + prior), np.concatenate([*gradient, [own @ noise]]) + pull

    def _matrix(self, below: Array, diagonal: Array) -> Array:
        n = len(self.residuals)
        flat = np.zeros(n * n)
        flat[self._below] = below
        flat[:: n + 1] = diagonal + _JITTER * self.variance
        return flat.reshape((n, n), order="F")

    def _split(self, x: Array) -> list[Array]:
        n = self._n_scales + 1
        return [x[i * n : (i + 1) * n] for i in range(len(_PARTS))]

    def _across(self, x: Array) -> Array:
        """Return the directions (directions, logarithms)."""
        return x[len(_PARTS) * (self._n_scales + 1) : -1].reshape(self._n_across, self._n_logs)

    def _tables(self, shape: str, part: Array, further: Array | float) -> tuple[Array, Array]:
        """Return the covariances of one kernel, and what their derivatives by a distance are."""
        scales, levels = np.split(np.exp(part[:-1]), [self._n_logs])
        away, apart = scales @ self._away[shape] + further, levels @ self._differ
        if shape == "rough":
            whole = np.exp(part[-1] - apart - away)
            return whole, whole
        alike = np.exp(part[-1] - apart)
        whole, steep = matern_and_slope(away)
        return whole * alike, steep * alike

    def _gradient(
        self, shape: str, part: Array, tables: tuple[Array, Array], slope: Array, own: float
    ) -> Array:
        scales, levels = np.split(np.exp(part[:-1]), [self._n_logs])
        whole = slope * tables[0]
        steep = whole if shape == "rough" else slope * tables[1]
        by_scale = -scales * (self._away[shape] @ steep)
        by_level = -levels * (self._differ @ whole)
        return np.concatenate([by_scale, by_level, [whole.sum() + own * np.exp(part[-1])]])

    def _gradient_across(self, gaps: Array, steep: Array) -> Array:
        """Return the gradient by every direction: pairs pull on the rows that they are of."""
        n = len(self.residuals)
        pulls = [
            np.bincount(self._rows, pull, n) - np.bincount(self._columns, pull, n)
            for pull in -2.0 * steep * gaps
        ]
        return (np.array(pulls).reshape(self._n_across, n) @ self._logs).ravel()

    def _prior(self, x: Array) -> tuple[float, Array]:
        pull = np.zeros_like(x)
        n = self._n_scales + 1
        for i, (_, reach) in enumerate(_PARTS):
            own = slice(i * n, i * n + self._n_scales)
            pull[own] = (x[own] - reach) / _PRIOR_SD**2
        value = 0.5 * _PRIOR_SD**2 * float(pull @ pull)
        across = self._across(x).ravel()
        pull[len(_PARTS) * n : -1] = across / _PRIOR_ACROSS**2
        return value + 0.5 * float(across @ across) / _PRIOR_ACROSS**2, pull


def _pairs(values: Array | Index, rows: Index, columns: Index) -> Array:
    """Return the difference of every pair (columns, pairs)."""
    table = [v[rows] - v[columns] for v in values.T]
    return np.array(table, dtype=float).reshape(values.shape[1], len(rows))
