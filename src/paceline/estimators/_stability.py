"""How far every constant can be trusted: its spread over seeds and over the data.

The thesis' tables give the spread over ten seeds, which is the solver's: a solver that
converges has none, and that says nothing about the data. The bootstrap gives the data's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paceline.estimators._columns import Array
from paceline.estimators._fast import refine
from paceline.estimators._threads import one_thread

if TYPE_CHECKING:
    from paceline.estimators._generic import GenericRegressor

Progress = Callable[[int, int, str], None]

# resampling more rows than this costs much and tells little; the spread is scaled instead
_MAX_BOOTSTRAP_ROWS = 5_000
_COVERAGE = 0.9
_IDENTIFIED_WIDTH = 0.5
_FLAT = 1e-7  # relative singular value below which a direction is flat


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One constant with both of its spreads."""

    value: float
    seed_mean: float
    seed_sd: float
    low: float
    high: float
    problem: str = ""  # why the interval means nothing: "confounded" or "at its bound"

    @property
    def is_identified(self) -> bool:
        """Whether the data's 90 % interval is narrower than half the constant."""
        narrow = self.high - self.low < _IDENTIFIED_WIDTH * abs(self.value)
        return narrow and not self.problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """Both spreads of every constant of a fitted expression."""

    spreads: Mapping[str, Spread]
    n_seeds: int
    n_bootstrap: int

    @property
    def identified(self) -> tuple[str, ...]:
        """Constants that the data determine."""
        return tuple(name for name, spread in self.spreads.items() if spread.is_identified)

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Constants that the data do not determine, those fixed at 0 by definition left out."""
        return tuple(
            name
            for name, s in self.spreads.items()
            if not s.is_identified and not s.value == s.low == s.high == 0
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the spreads as plain data."""
        return {
            "n_seeds": self.n_seeds,
            "n_bootstrap": self.n_bootstrap,
            "spreads": {
                n: {
                    "value": s.value,
                    "seed_mean": s.seed_mean,
                    "seed_sd": s.seed_sd,
                    "low": s.low,
                    "high": s.high,
                    "problem": s.problem,
                }
                for n, s in self.spreads.items()
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Stability:
        """Return the stability that `to_dict` wrote."""
        return cls(
            spreads={
                str(name): Spread(
                    problem=str(spread["problem"]),
                    **{k: float(v) for k, v in spread.items() if k != "problem"},
                )
                for name, spread in data["spreads"].items()
            },
            n_seeds=int(data["n_seeds"]),
            n_bootstrap=int(data["n_bootstrap"]),
        )


def study_stability(
    model: GenericRegressor,
    *,
    n_seeds: int = 10,
    n_bootstrap: int = 50,
    progress: Progress | None = None,
) -> Stability:
    """Return both spreads of every constant of a fitted model.

    Parameters
    ----------
    model
        A fitted `GenericRegressor`.
    n_seeds
        Fits with different seeds of the solver.
    n_bootstrap
        Fits to resampled rows; the 90 % interval is the value ± 1.645 standard deviations.
    progress
        Called as ``progress(done, total, label)``.
    """
    total = n_seeds + n_bootstrap
    seeds, resampled = [], []
    for i in range(n_seeds):
        seeds.append(model.solve(model.random_state + i))
        _tell(progress, i + 1, total, "seeds")
    rng = np.random.default_rng(model.random_state)
    for i in range(n_bootstrap):
        resampled.append(_refit_resampled(model, rng))
        _tell(progress, n_seeds + i + 1, total, "bootstrap")
    n_rows = max(float(model.row_weights_.sum()), 1.0)
    shrink = np.sqrt(min(n_rows, _MAX_BOOTSTRAP_ROWS) / n_rows)
    return Stability(
        spreads=_spreads(model, seeds, resampled, float(shrink)),
        n_seeds=n_seeds,
        n_bootstrap=n_bootstrap,
    )


def _refit_resampled(model: GenericRegressor, rng: np.random.Generator) -> Array:
    problem = model.problem_
    n_drawn = min(round(model.row_weights_.sum()), _MAX_BOOTSTRAP_ROWS)
    chances = model.row_weights_ / model.row_weights_.sum()
    drawn = rng.multinomial(max(n_drawn, 1), chances)
    resample = problem.reweighted(drawn / model.row_weights_)
    with one_thread():
        return refine(resample, model.x_)


def _spreads(
    model: GenericRegressor, seeds: list[Array], resampled: list[Array], shrink: float
) -> dict[str, Spread]:
    value = model.expression_.constants()
    over_seeds = _table(model, seeds, value)
    over_data = _table(model, resampled, value)
    half = _half_width(over_data) * shrink
    mean, sd = over_seeds.mean(axis=0), over_seeds.std(axis=0)
    problems = dict.fromkeys(confounded_constants(model), "confounded")
    problems |= dict.fromkeys(model.at_bounds_, "at its bound")
    return {
        name: Spread(
            value=v,
            seed_mean=float(mean[i]),
            seed_sd=float(sd[i]),
            low=float(v - half[i]),
            high=float(v + half[i]),
            problem=problems.get(name, ""),
        )
        for i, (name, v) in enumerate(value.items())
    }


def confounded_constants(model: GenericRegressor) -> tuple[str, ...]:
    """Return the constants that can be changed together without changing any prediction.

    They are those that move along the null space of the Jacobian. The redundancy between level
    groups is not among them, since the canonical form has removed it, nor are terms that the
    fit has set to 0.
    """
    before = _values(model, model.x_)
    moved = np.zeros(len(before), dtype=bool)
    for direction in _flat_directions(model):
        step = 1e-4 * direction / np.abs(direction).max()
        for change in (step, -step):
            shift = np.abs(_values(model, model.x_ + change) - before)
            moved |= shift > 1e-6 * np.maximum(np.abs(before), 1e-12)
    names = model.express(model.x_).constants()
    return tuple(name for name, flag in zip(names, moved, strict=True) if flag)


def _flat_directions(model: GenericRegressor) -> Array:
    """Return the directions of constants along which no prediction changes, one per row."""
    problem = model.problem_
    n_rows = len(problem.times)
    rows = np.linspace(0, n_rows - 1, min(n_rows, _MAX_BOOTSTRAP_ROWS)).astype(int)
    coefficients, powers, _, _ = problem.slices
    active = np.ones(len(model.x_), dtype=bool)
    active[coefficients] = active[powers] = model.x_[coefficients] != 0
    jacobian = np.linalg.qr(problem.take(rows).jacobian(model.x_)[:, active], mode="r")
    size = np.linalg.norm(jacobian, axis=0)
    scale = np.where(size > 0, size, 1.0)
    _, singular, axes = np.linalg.svd(jacobian / scale, full_matrices=True)
    rank = int((singular > _FLAT * singular[0]).sum()) if len(singular) else 0
    directions = np.zeros((len(axes) - rank, len(model.x_)))
    directions[:, active] = axes[rank:] / scale
    return directions


def _values(model: GenericRegressor, x: Array) -> Array:
    return np.array(list(model.express(x).constants().values()))


def _table(model: GenericRegressor, fits: list[Array], value: Mapping[str, float]) -> Array:
    rows = [list(model.express(x).constants().values()) for x in fits] or [list(value.values())]
    return np.array(rows)


def _half_width(table: Array) -> Array:
    if len(table) < 2:
        return np.full(table.shape[1], np.inf)
    return 1.645 * table.std(axis=0, ddof=1)


def _tell(progress: Progress | None, done: int, total: int, label: str) -> None:
    if progress is not None:
        progress(done, total, label)
