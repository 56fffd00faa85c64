"""`CorrectedRegressor`: a formula, and what smooth black boxes add to it within its range."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd

from paceline.estimators._base import BaseTimeRegressor
from paceline.estimators._columns import Array
from paceline.estimators._correction import (
    FORMULA,
    MEMBERS,
    POWER_LAW,
    Blend,
    Law,
    Reach,
    Residuals,
    fit_member,
    known_to,
    learn,
    lowerings,
    places_of,
    spread,
    stack_weights,
    trust,
)
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial import (
    MAX_POWER,
    Layout,
    PosynomialRegressor,
    labels_of,
    layout_of,
)
from paceline.estimators._threads import one_thread

_N_THREADS = 2  # more fits at once need more memory than they save time
_FEW_ROWS = 400  # a process is learnt anew for every fold
MIN_ROWS = 32  # fewer cannot tell a correction from noise


class CorrectedRegressor(BaseTimeRegressor):
    """Fit a posynomial, and corrections to its logarithm that fade outside the measured range.

    Corrections are learnt on the residuals of a power law, drawn to the powers that the names of
    parameters let one expect, by a Gaussian process, and on those of the most accurate posynomial
    by a support vector machine with a rough kernel. Held-out errors decide how much each counts
    beside the posynomial.

    Parameters
    ----------
    extrinsic
        Columns (names or positions) that scale the run.
    categorical
        Columns of numbers that are labels; text columns are categorical anyway.
    n_terms
        Number of terms of the posynomial; None chooses.
    random_state
        Seed.
    hidden
        Columns that the formula does without and only the corrections see.

    Attributes
    ----------
    expression_
        The posynomial, which is the whole prediction far from what was measured.
    blend_
        The corrections with their weights.
    formula_share_
        Weight of the posynomial within the measured range, from 0 to 1.
    formula_error_
        Held-out error of the posynomial alone; None when nothing was held out.
    held_out_
        Prediction of every fitted row, in seconds, by fits without it; NaN where none was.

    Examples
    --------
    >>> X = pd.DataFrame({"layers": np.tile([1.0, 2, 4, 8], 12), "batch": np.arange(1.0, 49)})
    >>> model = CorrectedRegressor().fit(X, 0.01 * X["layers"] * X["batch"] + 0.5)
    >>> round(float(model.predict(X[:1])[0]), 2)
    0.51
    """

    def __init__(
        self,
        extrinsic: Sequence[Any] | None = None,
        categorical: Sequence[Any] | None = None,
        n_terms: int | None = None,
        random_state: int = 0,
        hidden: Sequence[Any] | None = None,
    ) -> None:
        self.extrinsic = extrinsic
        self.categorical = categorical
        self.n_terms = n_terms
        self.random_state = random_state
        self.hidden = hidden

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit formula and corrections to measured times `y` in seconds.

        Rows of one label in `groups` are held out together; None: equal rows.
        """
        frame, times, _ = self._read_fit(X, y, None)
        labels = labels_of(frame, groups)
        hidden = list(self.hidden or ())
        self.posynomial_ = PosynomialRegressor(
            [c for c in self.extrinsic or () if c not in hidden],
            [c for c in self.categorical or () if c not in hidden],
            self.n_terms,
            random_state=self.random_state,
        ).fit(frame.drop(columns=hidden), times, groups=labels)
        self.expression_ = self.posynomial_.expression_
        self.front_ = self.posynomial_.front_
        self.held_out_ = self.posynomial_.held_out_
        error = self.front_.members[self.front_.chosen].error
        self.formula_error_ = None if np.isnan(error) else error
        self._correct(frame, times, labels)
        return self

    def predict(self, X: Any) -> Array:
        """Return the time in seconds of every row of `X`."""
        frame = self._read_predict(X)
        formula = self.expression_.evaluate(frame)
        return formula if self.blend_ is None else self.blend_.apply(formula, frame)

    @property
    def formula_share_(self) -> float:
        """Weight of the formula within the measured range."""
        return 1.0 if self.blend_ is None else self.blend_.formula_share

    def _correct(self, frame: pd.DataFrame, times: Array, labels: Any) -> None:
        self.blend_: Blend | None = None
        seed = self.random_state
        rows, folds = self.posynomial_.choice_
        if len(times) < MIN_ROWS or not folds:
            return
        with one_thread():
            layout = layout_of(frame, self.extrinsic, self.categorical)
            makings = _Makings(self.posynomial_, layout, frame.iloc[rows], times[rows], seed)
            logs = makings.held_out(folds)
            n_draws = len(np.unique(labels[rows]))
            weights = stack_weights(logs, makings.target, n_draws)
            used = {n: float(w) for n, w in zip(MEMBERS, weights[1:], strict=True) if w > 0}
            lower, apart = 0.0, 0.0
            if used:
                found = lowerings(logs, weights, makings.target)
                lower, apart = (trust(n_draws) * part for part in found)
                self.blend_ = makings.blend(used, (lower, apart), frame, times)
            logs = makings.honest(logs, folds)
        self.held_out_ = np.full_like(self.held_out_, np.nan)
        self.held_out_[rows] = np.exp(weights @ logs - lower - apart * spread(logs, weights))


class _Makings:
    """What the corrections are made of: places, and the residuals of a power law and a formula."""

    def __init__(
        self,
        posynomial: PosynomialRegressor,
        layout: Layout,
        frame: pd.DataFrame,
        times: Array,
        seed: int,
    ) -> None:
        self.layout, self.seed, self.target = layout, seed, np.log(times)
        candidates, best = posynomial.candidates_, posynomial.best_allowed_
        self.formula_logs = candidates.held_out_logs(posynomial.front_.chosen)
        problem = replace(  # the layout may have numbers that the formula does without
            candidates.power_law()[0], rows=layout.encode(frame), limits=(-MAX_POWER, MAX_POWER)
        )
        self.law = Law(
            problem=problem,
            layout=layout,
            seed=seed,
            believes_names=posynomial.believes_names_,
        )
        self.baselines = {
            POWER_LAW: self.law.expression(),
            FORMULA: candidates.expression(best),
        }
        self.best_logs = candidates.fold_logs(best)
        self.places = places_of(layout, frame)
        self.process = learn(self._residuals(POWER_LAW, frame, times), seed)

    def _residuals(self, baseline: str, frame: pd.DataFrame, times: Array) -> Residuals:
        base = np.log(self.baselines[baseline].evaluate(frame))
        places = places_of(self.layout, frame)
        return Residuals(places=places, base=base, values=np.log(times) - base)

    def honest(self, logs: Array, folds: Sequence[Fold]) -> Array:
        """Return held-out log predictions by processes that learnt nothing from those rows.

        Of few rows, those held out show in a process' lengths and directions: its errors there
        weigh it well beside others, but are too small to tell the errors to come. Of many rows
        they hardly do, and learning takes long.
        """
        return logs if len(self.target) > _FEW_ROWS else self.held_out(folds, learns_anew=True)

    def held_out(self, folds: Sequence[Fold], learns_anew: bool = False) -> Array:
        """Return held-out log predictions: of the formula, then of every member."""
        fold_of = partial(self._held_out_fold, learns_anew)
        logs = np.empty((1 + len(MEMBERS), len(self.target)))
        logs[0] = self.formula_logs
        with ThreadPoolExecutor(_N_THREADS) as pool:  # LAPACK and libsvm run side by side
            parts = pool.map(fold_of, folds, self.law.fold_logs(folds), self.best_logs)
            for (_, test), part in zip(folds, parts, strict=True):
                logs[1:, test] = part
        return logs

    def _held_out_fold(
        self, learns_anew: bool, fold: Fold, power_law: Array, formula: Array
    ) -> Array:
        """Return what every member says of the rows that a fold holds out."""
        train, test = fold
        process, found = self.process, []
        if learns_anew:
            left = Residuals(places=self.places, base=power_law, values=self.target - power_law)
            process = learn(left.take(train), self.seed)
        for name, baseline in MEMBERS.items():
            base = formula if baseline == FORMULA else power_law
            rows = Residuals(places=self.places, base=base, values=self.target - base)
            member = fit_member(name, rows.take(train), process, self.seed)
            seen = known_to(name, self.places, base).take(test)
            found.append(base[test] + member.evaluate(seen))
        return np.array(found)

    def blend(
        self,
        weights: dict[str, float],
        lower: tuple[float, float],
        frame: pd.DataFrame,
        times: Array,
    ) -> Blend:
        """Return the corrections that count, fitted to all rows."""
        rows = {name: self._residuals(MEMBERS[name], frame, times) for name in weights}
        return Blend(
            layout=self.layout,
            reach=Reach.of(places_of(self.layout, frame)),
            baselines={name: self.baselines[MEMBERS[name]] for name in weights},
            members={
                name: fit_member(name, rows[name], self.process, self.seed) for name in weights
            },
            weights=weights,
            lower=lower[0],
            lower_apart=lower[1],
        )
