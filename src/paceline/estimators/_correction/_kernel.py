"""Kernels over places: logarithms of numbers, and levels that are equal or not.

A sum of kernels around measured rows is all that a correction needs, whether a Gaussian process
or a support vector machine found its weights: it is saved as arrays and evaluated with NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from paceline.errors import InvalidInputError
from paceline.estimators._columns import Array, Index
from paceline.estimators._posynomial._rows import Layout

SHAPES = ("matern", "gauss", "rough")
_DECIMALS = 6  # of a logarithm: more would only make saved places longer
_MAX_CELLS = 4_000_000  # of a table of distances that is held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where rows lie: logarithms of their numbers and codes of their levels."""

    logs: Array
    codes: Index

    def __len__(self) -> int:
        return len(self.logs)

    def take(self, rows: Any) -> Places:
        """Return the given rows."""
        return Places(logs=self.logs[rows], codes=self.codes[rows])

    def along(self, logs: Array) -> Places:
        """Return the places with one more logarithm, that of a time foretold.

        What a formula says of a row tells small runs from large ones whatever makes them so.
        """
        column = np.round(logs, _DECIMALS)
        return Places(logs=np.column_stack([self.logs, column]), codes=self.codes)

    def fits(self, layout: Layout, n_more: int = 0) -> bool:
        """Return whether there is one number or code for every parameter, and `n_more` numbers."""
        n_logs, n_codes = len(layout.stand_ins) + n_more, len(layout.zeros) + len(layout.levels)
        return (self.logs.shape[1], self.codes.shape[1]) == (n_logs, n_codes)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], n_rows: int) -> Places:
        """Return places from tables called `logs` and `codes`, checked."""
        codes = _table(data["codes"], n_rows).astype(np.intp)
        return cls(logs=_table(data["logs"], n_rows), codes=codes)


def places_of(layout: Layout, X: Any) -> Places:
    """Return where the rows of `X` lie; an unseen level is at -1, equal to none."""
    rows = layout.encode(X)
    zeros = [rows.marks[:, i].astype(np.intp) for i in range(len(layout.zeros))]
    codes = [
        np.where(rows.marks[:, c].any(axis=1), rows.marks[:, c].argmax(axis=1), -1)
        for _, c in layout.groups
    ]
    empty = np.empty((len(rows), 0), dtype=np.intp)
    logs = np.round(rows.logs, _DECIMALS)
    return Places(logs=logs, codes=np.column_stack([empty, *zeros, *codes]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """How alike the times at two places are.

    Parameters
    ----------
    shape
        ``"matern"`` (5/2), ``"gauss"`` (smoother) or ``"rough"``, which falls exponentially with
        the sum of the differences: kinks and steps are no surprise to it.
    scales
        For every logarithm, one over its squared length; of a rough kernel, one over its length.
    levels
        For every categorical parameter, the logarithm of what different levels keep in common.
    across
        Directions across the logarithms (directions, logarithms), along which places are further
        apart: two parameters may matter by their product or their ratio. Not of a rough kernel.
    """

    shape: str
    scales: Array
    levels: Array
    across: Array | None = None

    def fits(self, places: Places) -> bool:
        """Return whether there is one scale for every parameter."""
        n_logs, n_codes = places.logs.shape[1], places.codes.shape[1]
        is_across = self.across is None or self.across.shape[1] == n_logs
        return (len(self.scales), len(self.levels)) == (n_logs, n_codes) and is_across

    def to_dict(self) -> dict[str, Any]:
        """Return the kernel as plain data."""
        return {
            "shape": self.shape,
            "scales": self.scales.tolist(),
            "levels": self.levels.tolist(),
            **({} if self.across is None else {"across": self.across.tolist()}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Kernel:
        """Return the kernel that `to_dict` wrote, checked."""
        scales, levels = (np.asarray(data[name], dtype=float) for name in ("scales", "levels"))
        if data["shape"] not in SHAPES:
            raise InvalidInputError(f"a kernel must be one of {', '.join(SHAPES)}.")
        if not (np.isfinite(scales).all() and np.isfinite(levels).all()):
            raise InvalidInputError("all scales of a kernel must be finite.")
        across = _table(data["across"], len(data["across"])) if "across" in data else None
        return cls(
            shape=str(data["shape"]),
            scales=np.abs(scales),
            levels=np.abs(levels),
            across=across,
        )

    def between(self, a: Places, b: Places) -> Array:
        """Return the kernel of every pair, 1 at equal places."""
        away = self._gaps if self.shape == "rough" else self._squares
        return shape_of(self.shape, away(a.logs, b.logs)) * self._alike(a, b)

    def _gaps(self, a: Array, b: Array) -> Array:
        if not len(self.scales):
            return np.zeros((len(a), len(b)))
        return np.asarray(cdist(a * self.scales, b * self.scales, "cityblock"))

    def _squares(self, a: Array, b: Array) -> Array:
        a, b = self._scaled(a), self._scaled(b)
        squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T
        return np.maximum(squares, 0.0)

    def _scaled(self, logs: Array) -> Array:
        scaled = logs * np.sqrt(self.scales)
        return scaled if self.across is None else np.hstack([scaled, logs @ self.across.T])

    def _alike(self, a: Places, b: Places) -> Array:
        """Return what the levels of every pair keep in common; unseen ones are equal to none."""
        if not len(self.levels):
            return np.ones((1, 1))
        n_levels = 1 + np.maximum(a.codes.max(axis=0, initial=-1), b.codes.max(axis=0, initial=-1))
        weights = np.repeat(self.levels, n_levels)
        same = (_marks(a.codes, n_levels) * weights) @ _marks(b.codes, n_levels).T
        return np.asarray(np.exp(np.minimum(same - self.levels.sum(), 0.0)))


def _marks(codes: Index, n_levels: Index) -> Array:
    """Return a column for every level of every parameter, 1 where a row has it."""
    columns = zip(codes.T, n_levels, strict=True)
    return np.hstack([np.equal.outer(own, np.arange(n)) for own, n in columns]).astype(float)


def shape_of(shape: str, squares: Array) -> Array:
    """Return the kernel of squared distances; of a rough kernel, of sums of differences."""
    if shape != "matern":
        return np.exp(-squares)
    r = np.sqrt(5.0 * squares)
    return (1.0 + r + r * r / 3.0) * np.exp(-r)


def matern_and_slope(squares: Array) -> tuple[Array, Array]:
    """Return the kernel of squared distances, and minus its derivative by them."""
    r = np.sqrt(5.0 * squares)
    falling = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * falling, (5.0 / 6.0) * (1.0 + r) * falling


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSum:
    """``offset + sum_i sum_j weight_ij * kernel_j(x, place_i)``."""

    places: Places
    kernels: tuple[Kernel, ...]
    weights: Array  # (kernels, places)
    offset: float = 0.0

    def evaluate(self, places: Places) -> Array:
        """Return the sum at every place."""
        step = max(1, _MAX_CELLS // max(len(self.places), 1))
        parts = [
            self._evaluate(places.take(slice(i, i + step))) for i in range(0, len(places), step)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def _evaluate(self, places: Places) -> Array:
        total = np.full(len(places), self.offset)
        for kernel, weights in zip(self.kernels, self.weights, strict=True):
            total += kernel.between(places, self.places) @ weights
        return total

    def to_dict(self) -> dict[str, Any]:
        """Return the sum as plain data."""
        return {
            "logs": self.places.logs.tolist(),
            "codes": self.places.codes.tolist(),
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "weights": self.weights.tolist(),
            "offset": self.offset,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KernelSum:
        """Return the sum that `to_dict` wrote, with every shape checked."""
        n_rows = len(data["codes"])
        kernels = tuple(Kernel.from_dict(kernel) for kernel in data["kernels"])
        places = Places.from_dict(data, n_rows)
        weights = _table(data["weights"], len(kernels))
        if weights.shape != (len(kernels), n_rows):
            raise InvalidInputError("a correction must have one weight per kernel and place.")
        if not all(kernel.fits(places) for kernel in kernels):
            raise InvalidInputError("a kernel must have one scale per parameter.")
        return cls(
            places=places,
            kernels=kernels,
            weights=weights,
            offset=float(data["offset"]),
        )


def _table(rows: Sequence[Sequence[float]], n_rows: int) -> Array:
    table = np.asarray(rows, dtype=float).reshape(n_rows, -1)
    if not np.isfinite(table).all():
        raise InvalidInputError("all numbers of a correction must be finite.")
    return table
