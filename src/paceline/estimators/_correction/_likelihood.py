"""How probable residuals are under a covariance, with its gradient.

Tables hold every pair of rows once, below the diagonal: half the work of whole matrices.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from paceline.estimators._columns import Array, Index
from paceline.estimators._correction._kernel import Kernel, Places, shape_of, slope_of

_SHAPE = "matern"
_REACH = (-2.5, 0.0)  # where the logarithms of the scales begin: far, local
_PRIOR_SD = 2.0
_JITTER = 1e-8


class Likelihood:
    """The probability of residuals as a function of the logarithms of all scales.

    Parameters
    ----------
    places
        Where the rows lie.
    residuals
        What an expression leaves unexplained there.
    """

    def __init__(self, places: Places, residuals: Array) -> None:
        n = len(residuals)
        self.residuals = residuals
        self.noise: Array = np.ones(n)
        self.variance = float(residuals @ residuals / n) + 1e-12
        self._rows, self._columns = np.tril_indices(n, -1)
        self._below = self._rows + n * self._columns  # in the order that LAPACK wants
        spread = places.logs.var(axis=0)
        self._unit = 1.0 / np.where(spread > 1e-12, spread, 1.0)
        logs, codes = places.logs * np.sqrt(self._unit), places.codes
        self._squares = _pairs(logs, self._rows, self._columns) ** 2
        self._differ = (_pairs(codes, self._rows, self._columns) != 0).astype(float)
        self._n_scales = len(self._squares) + len(self._differ)

    def start(self) -> Array:
        """Return where to begin: a kernel that reaches far and a local one, of equal size."""
        parts = [
            [*np.full(self._n_scales, reach), np.log(0.35 * self.variance)] for reach in _REACH
        ]
        return np.concatenate([*parts, [np.log(0.2 * self.variance)]])

    def maximise(self, x: Array, n_iterations: int) -> Array:
        """Return more probable scales."""
        middle = np.log(self.variance)
        part = [(-8.0, 4.0)] * self._n_scales + [(middle - 9.0, middle + 4.0)]
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

    def parts(self, x: Array) -> tuple[tuple[Kernel, ...], tuple[float, ...], float]:
        """Return the kernels, their variances and the noise."""
        kernels, variances = [], []
        for part in self._split(x):
            scales, levels = np.split(np.exp(part[:-1]), [len(self._squares)])
            kernels.append(Kernel(shape=_SHAPE, scales=scales * self._unit, levels=levels))
            variances.append(float(np.exp(part[-1])))
        return tuple(kernels), tuple(variances), float(np.exp(x[-1]))

    def cost(self, x: Array) -> tuple[float, Array]:
        """Return minus the log probability with a weak prior on the scales, and its gradient."""
        tables = [self._tables(part) for part in self._split(x)]
        size = sum(float(np.exp(part[-1])) for part in self._split(x))
        noise = np.exp(x[-1]) * self.noise
        below = tables[0][0] + tables[1][0]
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
            self._gradient(part, table, slope, float(own.sum()))
            for part, table in zip(self._split(x), tables, strict=True)
        ]
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
        return [x[i * n : (i + 1) * n] for i in range(len(_REACH))]

    def _tables(self, part: Array) -> tuple[Array, Array]:
        """Return the covariances of one kernel, and what their derivatives by a distance are."""
        scales, levels = np.split(np.exp(part[:-1]), [len(self._squares)])
        squares = scales @ self._squares
        alike = np.exp(part[-1] - levels @ self._differ)
        return shape_of(_SHAPE, squares) * alike, slope_of(_SHAPE, squares) * alike

    def _gradient(
        self, part: Array, tables: tuple[Array, Array], slope: Array, own: float
    ) -> Array:
        scales, levels = np.split(np.exp(part[:-1]), [len(self._squares)])
        whole, steep = slope * tables[0], slope * tables[1]
        by_scale = -scales * (self._squares @ steep)
        by_level = -levels * (self._differ @ whole)
        return np.concatenate([by_scale, by_level, [whole.sum() + own * np.exp(part[-1])]])

    def _prior(self, x: Array) -> tuple[float, Array]:
        pull = np.zeros_like(x)
        n = self._n_scales + 1
        for i, reach in enumerate(_REACH):
            own = slice(i * n, i * n + self._n_scales)
            pull[own] = (x[own] - reach) / _PRIOR_SD**2
        return 0.5 * _PRIOR_SD**2 * float(pull @ pull), pull


def _pairs(values: Array | Index, rows: Index, columns: Index) -> Array:
    """Return the difference of every pair (columns, pairs)."""
    table = [v[rows] - v[columns] for v in values.T]
    return np.array(table, dtype=float).reshape(values.shape[1], len(rows))
