"""The generic performance model as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from paceline.errors import BoundWarning, ConvergenceWarning, InvalidInputError, UnknownNameError
from paceline.estimators._base import BaseTimeRegressor
from paceline.estimators._columns import Array, columns_of
from paceline.estimators._evolution import solve_evolution
from paceline.estimators._expression import GenericExpression
from paceline.estimators._fast import solve_fast, solve_quick
from paceline.estimators._scaling import BOUNDS, build_problem, merge_rows, scaling_of
from paceline.estimators._stability import Stability, study_stability
from paceline.estimators._threads import one_thread

CHOICES = {
    "penalty": ("none", "l1", "l2"),
    "cost": ("absolute", "relative"),
    "units": ("scaled", "thesis"),
    "solver": ("fast", "quick", "de"),
}
_SOLVERS = {"fast": solve_fast, "quick": solve_quick, "de": solve_evolution}


class GenericRegressor(BaseTimeRegressor):
    """Fit ``t = (sum_i a_i I_i^p_i + levels) * prod_j E_j^q_j + C`` (thesis, eq. 4.4).

    Parameters
    ----------
    extrinsic
        Columns (names or positions) that scale the run: devices, batches. All others are
        intrinsic.
    categorical
        Columns of numbers that are labels; text columns are categorical anyway.
    penalty
        ``"none"``, ``"l1"`` or ``"l2"`` (eq. 4.11, 4.12); C is never penalised.
    strength
        lambda of the coefficients.
    power_strength
        lambda of the powers; None means the same as `strength`.
    cost
        ``"absolute"``: mean absolute error (eq. 4.9); ``"relative"``: mean absolute
        percentage error.
    bounds
        None (those of `units`), a name of `BOUNDS`, or a mapping with any of the keys
        ``"coefficients"``, ``"powers"``, ``"constant"`` to pairs.
    units
        ``"scaled"``: times are divided by their median and parameters by their geometric mean
        before fitting, so bounds and strengths mean the same for every dataset;
        ``"thesis"``: as printed, with the thesis' bounds and its redundant constants.
    solver
        ``"fast"``, ``"quick"`` for half its work where only predictions count, or ``"de"``
        for SciPy's differential evolution with its defaults.
    random_state
        Seed of the solver.

    Attributes
    ----------
    expression_
        The fitted `GenericExpression`, in seconds.
    cost_
        The minimised cost, in the units of `units`.
    stability_
        Spread of every constant, computed at first use.
    at_bounds_
        Names of the constants that sit at a limit other than 0.

    Notes
    -----
    A numeric intrinsic parameter may be 0: its term then costs nothing, whatever its power.
    Negative values, and zeros of an extrinsic parameter, are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"layers": [1.0, 2, 4, 8] * 2, "n_devices": [1.0] * 4 + [2.0] * 4})
    >>> y = 3.0 * X["layers"] / X["n_devices"] + 0.5
    >>> model = GenericRegressor(extrinsic=["n_devices"]).fit(X, y)
    >>> round(model.expression_.powers["n_devices"], 2)
    -1.0
    """

    def __init__(
        self,
        extrinsic: Sequence[Any] | None = None,
        categorical: Sequence[Any] | None = None,
        penalty: str = "none",
        strength: float = 0.001,
        power_strength: float | None = None,
        cost: str = "absolute",
        bounds: str | Mapping[str, tuple[float, float]] | None = None,
        units: str = "scaled",
        solver: str = "fast",
        random_state: int = 0,
    ) -> None:
        self.extrinsic = extrinsic
        self.categorical = categorical
        self.penalty = penalty
        self.strength = strength
        self.power_strength = power_strength
        self.cost = cost
        self.bounds = bounds
        self.units = units
        self.solver = solver
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the constants to measured times `y` in seconds."""
        self.check_choices()
        frame, times, weights = self._read_fit(X, y, sample_weight)
        self.columns_ = columns_of(frame, self.extrinsic, self.categorical)
        rows, times, weights = merge_rows(self.columns_.encode(frame), times, weights)
        self.row_weights_ = weights
        self._warn_if_underdetermined(len(times))
        self.scaling_ = scaling_of(rows, times, weights, self.units)
        self.problem_ = build_problem(rows, times, weights, self.scaling_, self)
        self._adopt(self.solve(self.random_state))
        return self

    def predict(self, X: Any) -> Array:
        """Return the time in seconds of every row of `X`."""
        frame = self._read_predict(X)
        return self.expression_.evaluate(frame)

    def solve(self, random_state: int) -> Array:
        """Return the constants that the solver finds with this seed, in the problem's units."""
        seed = int(np.random.default_rng(random_state).integers(2**31))
        solve = _SOLVERS[self.solver]
        with one_thread():
            return solve(self.problem_, seed)

    def _adopt(self, x: Array) -> None:
        self.x_ = x
        self._stability: Stability | None = None
        self.cost_ = self.problem_.cost(x)
        self.expression_ = self.express(x)
        self.at_bounds_ = self._constants_at_bounds(x)
        if self.at_bounds_:
            warnings.warn(
                f"Constants at their bound: {', '.join(self.at_bounds_)}.",
                BoundWarning,
                stacklevel=3,
            )

    @property
    def stability_(self) -> Stability:
        """Both spreads of every constant: over ten seeds, and over 50 bootstrap resamples."""
        check_is_fitted(self)
        if self._stability is None:
            self._stability = study_stability(self)
        return self._stability

    def express(self, x: Array) -> GenericExpression:
        """Return the expression, in seconds, of a vector of constants of this problem."""
        expression = self.scaling_.express(x, self.columns_, self.problem_.slices)
        return expression if self.units == "thesis" else expression.canonical()

    def _constants_at_bounds(self, x: Array) -> tuple[str, ...]:
        width = self.problem_.upper - self.problem_.lower
        low = (x - self.problem_.lower < 1e-6 * width) & (self.problem_.lower != 0)
        high = self.problem_.upper - x < 1e-6 * width
        names = list(self.express(x).constants())
        if not self.columns_.is_bare:
            names.remove("base")
        return tuple(n for n, at in zip(names, low | high, strict=True) if at)

    def _warn_if_underdetermined(self, n_rows: int) -> None:
        if n_rows < self.columns_.n_constants:
            warnings.warn(
                f"{self.columns_.n_constants} constants cannot be determined by {n_rows} "
                f"different rows; penalise them, or drop parameters.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def check_choices(self) -> None:
        """Refuse settings that do not exist or cannot be."""
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise UnknownNameError(name, str(getattr(self, name)), allowed)
        if isinstance(self.bounds, str) and self.bounds not in BOUNDS:
            raise UnknownNameError("set of bounds", self.bounds, BOUNDS)
        for name in ("strength", "power_strength"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1e12:
                raise InvalidInputError(f"`0 <= {name} <= 1e12` must hold, but got {value!r}.")
