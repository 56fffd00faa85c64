"""How probable residuals are under a covariance, with its gradient.

Tables hold every pair of rows once, below the diagonal: half the work of whole matrices.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from paceline.estimators._columns import Array, Index
from paceline.estimators._correction._kernel import Kernel, Places, matern_and_slope

# shapes, and where the logarithms of their scales begin: far, local, and kinks and steps
_PARTS = (("matern", -2.5), ("matern", 0.0), ("rough", -1.0))
_EXPLAINED = 0.7  # of the variance, to begin with
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
        gaps = np.abs(_pairs(logs, self._rows, self._columns))
        self._away = {"matern": gaps**2, "rough": gaps}
        self._differ = (_pairs(codes, self._rows, self._columns) != 0).astype(float)
        self._n_logs = len(gaps)
        self._n_scales = len(gaps) + len(self._differ)

    def start(self) -> Array:
        """Return where to begin: kernels of equal size."""
        size = np.log(_EXPLAINED / len(_PARTS) * self.variance)
        parts = [[*np.full(self._n_scales, reach), size] for _, reach in _PARTS]
        return np.concatenate([*parts, [np.log(0.2 * self.variance)]])

    def maximise(self, x: Array, n_iterations: int) -> Array:
        """Return more probable scales."""
        middle = np.log(self.variance)
        part = [(-8.0, 4.0)] * self._n_scales + [(middle - 9.0, middle + 4.0)]
        bounds = [*part * len(_PARTS), (middle - 10.0, middle + 1.0)]
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
        return tuple(kernels), tuple(variances), float(np.exp(x[-1]))

    def cost(self, x: Array) -> tuple[float, Array]:
        """Return minus the log probability with a weak prior on the scales, and its gradient."""
        parts = [(s, part) for (s, _), part in zip(_PARTS, self._split(x), strict=True)]
        tables = [self._tables(shape, part) for shape, part in parts]
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

    def _tables(self, shape: str, part: Array) -> tuple[Array, Array]:
        """Return the covariances of one kernel, and what their derivatives by a distance are."""
        scales, levels = np.split(np.exp(part[:-1]), [self._n_logs])
        away, apart = scales @ self._away[shape], levels @ self._differ
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

    def _prior(self, x: Array) -> tuple[float, Array]:
        pull = np.zeros_like(x)
        n = self._n_scales + 1
        for i, (_, reach) in enumerate(_PARTS):
            own = slice(i * n, i * n + self._n_scales)
            pull[own] = (x[own] - reach) / _PRIOR_SD**2
        return 0.5 * _PRIOR_SD**2 * float(pull @ pull), pull


def _pairs(values: Array | Index, rows: Index, columns: Index) -> Array:
    """Return the difference of every pair (columns, pairs)."""
    table = [v[rows] - v[columns] for v in values.T]
    return np.array(table, dtype=float).reshape(values.shape[1], len(rows))
