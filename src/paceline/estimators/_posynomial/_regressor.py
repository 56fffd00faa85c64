"""`PosynomialRegressor`: a sum of products of powers, as long as the data ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from paceline.dataset import counts_what
from paceline.errors import InvalidInputError
from paceline.estimators._base import BaseTimeRegressor
from paceline.estimators._columns import Array, Index
from paceline.estimators._folds import Fold
from paceline.estimators._posynomial._candidates import CLEARLY, Candidates, believes_names
from paceline.estimators._posynomial._choice_rows import choice_folds, labels_of
from paceline.estimators._posynomial._composed import Composed
from paceline.estimators._posynomial._expression import PosynomialExpression
from paceline.estimators._posynomial._front import (
    CLOSE,
    Front,
    choose,
    most_accurate,
    standard_error,
)
from paceline.estimators._posynomial._problem import (
    MAX_POWER,
    NEUTRAL,
    Expected,
    PosynomialProblem,
)
from paceline.estimators._posynomial._proposals import by_chance, compose, propose
from paceline.estimators._posynomial._rows import Layout, layout_of
from paceline.estimators._posynomial._simplify import express, tidy
from paceline.estimators._threads import one_thread

_N_ROWS_PER_TERM = 8
_FIRST_FOLDS = 0.34  # may be enough to see which of two is better
_N_PROMISING, _FEW_TERMS, _MANY_TERMS = 3, 2, 4  # fewer say little of what more will need
_FIRMNESS = 20.0  # of an expected power, in strengths of the ridge on one that is not known
_STEEP, _IN_TURN = -12.0, 1.0
_MANY_VALUES = 4  # of a number of devices: enough to tell a jump from how it goes on
_N_DRAWS_PER_CONSTANT = 2  # of more than one term; held-out errors of few groups flatter terms


class PosynomialRegressor(BaseTimeRegressor):
    """Fit ``t = sum_k c_k * prod_i x_i^p_ki`` with levels as positive factors.

    Parameters
    ----------
    extrinsic
        Columns (names or positions) that scale the run. They are powers like all other
        numbers; the names are only checked.
    categorical
        Columns of numbers that are labels; text columns are categorical anyway.
    n_terms
        Number of terms; None chooses the fewest that predict unseen rows as well as the best do,
        within what their number leaves in doubt.
    max_terms
        Most terms that are tried.
    max_constants
        Most constants of more than one term. Unless `n_terms` is given, there are also at most
        half as many as configurations, or as groups where rows are grouped, beside powers that
        names of parameters let one expect.
    strength
        Of the ridge on powers, in units of the weight of one row, or of one group of rows.
    compose
        Whether factors of pairs of levels, and of numbers of devices beyond a limit, are tried.
    random_state
        Seed of the folds and of the starts.

    Attributes
    ----------
    expression_
        The `PosynomialExpression`, in seconds.
    front_
        All expressions tried, with complexity and held-out error.
    best_allowed_
        Place in the front of the least held-out error with no more constants than allowed.
    believes_names_
        Whether powers were drawn to those that names let one expect: not where a power law
        without them is clearly better on unseen rows.
    choice_
        The rows that chose, and how they were held out.
    held_out_
        Prediction of every fitted row, in seconds, by the chosen kind of expression grown
        without the row; NaN where nothing was held out.

    Notes
    -----
    A parameter that counts devices may enter a term as ``1 - 1/n``. A 0 of a numeric parameter
    has a factor of its own. Negative numbers are refused. Terms share the factors of levels but
    where the data ask for more, and levels that do not differ have one factor. Powers of the
    first term are drawn to those that names let one expect, as if by two rows. Of times that
    scatter, the expression is what has the least mean percentage error, which is below the median.

    Examples
    --------
    >>> batch = np.repeat([1.0, 4, 16, 64, 256], 4)
    >>> X = pd.DataFrame({"layers": [1.0, 2, 4, 8] * 5, "batch": batch})
    >>> model = PosynomialRegressor().fit(X, 0.01 * X["layers"] * X["batch"] + 0.5)
    >>> len(model.expression_.terms)
    2
    """

    def __init__(
        self,
        extrinsic: Sequence[Any] | None = None,
        categorical: Sequence[Any] | None = None,
        n_terms: int | None = None,
        max_terms: int = 5,
        max_constants: int = 40,
        strength: float = 0.1,
        compose: bool = True,
        random_state: int = 0,
    ) -> None:
        self.extrinsic = extrinsic
        self.categorical = categorical
        self.n_terms = n_terms
        self.max_terms = max_terms
        self.max_constants = max_constants
        self.strength = strength
        self.compose = compose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Fit the constants to measured times `y` in seconds.

        Parameters
        ----------
        X, y
            As scikit-learn has them.
        groups
            One label per row; rows of one label are held out together. None: equal rows.
        """
        self._check_choices()
        frame, times, _ = self._read_fit(X, y, None)
        self.layout_ = layout_of(frame, self.extrinsic, self.categorical)
        labels = labels_of(frame, groups)
        self.held_out_ = np.full(len(times), np.nan)
        with one_thread():
            rows, logs = self._grow(frame, times, labels)
        self.held_out_[rows] = np.exp(logs)
        return self

    def predict(self, X: Any) -> Array:
        """Return the time in seconds of every row of `X`."""
        frame = self._read_predict(X)
        return self.expression_.evaluate(frame)

    def regrow(self, X: pd.DataFrame, y: Any, groups: Any) -> PosynomialExpression:
        """Return an expression of the chosen kind, grown from other rows, as it comes."""
        times, labels = np.asarray(y, dtype=float), labels_of(X, groups)
        independence = _independence(X, labels)
        problem = _problem(self.layout_, X, times, independence, self.believes_names_)
        return express(self.candidates_.regrow(problem, self.front_.chosen), self.layout_)

    def _grow(self, frame: pd.DataFrame, times: Array, labels: Any) -> tuple[Any, Array]:
        """Grow and choose; return the rows that were held out and what was predicted there."""
        rows, folds = choice_folds(labels, self.layout_.n_columns, self.random_state)
        self.choice_ = rows, folds
        measured = _Measured(frame, times, labels, rows, folds, _independence(frame, labels))
        problem = measured.choice(self.layout_)
        self.believes_names_ = believes_names(
            problem, self.layout_, folds, self.strength, self.random_state
        )
        measured = replace(measured, expects=self.believes_names_)
        tried = self._choose(measured, self._rivals(measured))
        self.layout_, self.candidates_ = tried.layout, tried.candidates
        self.front_, self.best_allowed_ = tried.front(), tried.top
        chosen, candidates, whole = tried.chosen, tried.candidates, measured.problem(tried.layout)
        solution = candidates.solution(chosen, whole)
        whole = candidates.with_strengths(whole)
        tidied = tidy(whole, solution, self.layout_, candidates.lower(chosen))
        self.expression_ = express(tidied, self.layout_)
        return rows, candidates.held_out_logs(chosen)

    def _candidates(self, measured: _Measured, layout: Layout) -> Candidates:
        """Return the expressions of one layout."""
        problem = measured.choice(layout)
        n_terms = self._n_tried(len(measured.times)) if measured.folds else self.n_terms or 1
        n_known = int(np.count_nonzero(problem.expected.powers)) if problem.expected else 0
        n_draws = problem.independence * len(measured.times)
        return Candidates(
            problem,
            layout,
            measured.labels[measured.rows],
            measured.folds,
            n_terms,
            self._most_constants(n_terms, n_draws, n_known),
            self.strength,
            self.random_state,
            must_grow=self.n_terms is not None,
        )

    def _rivals(self, measured: _Measured) -> list[_Rival]:
        """Return expressions without composed parameters, and with the most promising one.

        Of two, the first folds may show that one of them is not worth the others.
        """
        plain = _Rival(self.layout_, self._candidates(measured, self.layout_))
        if not (measured.folds and self.compose):
            return [plain]
        proposals = list(propose(plain.layout, measured.frame, plain.candidates.power_law()[1]))
        promising = _most_promising(measured, plain, proposals)
        if promising is None:
            return [plain]
        layout = compose(plain.layout, promising, measured.frame)
        composed = _Rival(layout, self._candidates(measured, layout))
        rows = plain.candidates.hold_out(_FIRST_FOLDS)
        composed.candidates.hold_out(_FIRST_FOLDS)
        before, after = (r.least_errors(rows, self.n_terms) for r in (plain, composed))
        if after.mean() >= before.mean():
            return [plain]
        labels = measured.labels[measured.rows][rows]
        return [composed] if _is_better(after, before, labels) else [plain, composed]

    def _choose(self, measured: _Measured, rivals: Sequence[_Rival]) -> _Tried:
        """Return the choice among the expressions of every rival, and the better of two."""
        labels = measured.labels[measured.rows]
        tried = [rival.choose(labels, self.n_terms) for rival in rivals]
        return tried[-1] if tried[-1].is_preferable(tried[0], labels) else tried[0]

    def _n_tried(self, n_rows: int) -> int:
        if self.n_terms is not None:
            return self.n_terms
        return int(np.clip(n_rows // _N_ROWS_PER_TERM, 1, self.max_terms))

    def _most_constants(self, n_terms: int, n_draws: float, n_known: int) -> int:
        if self.n_terms is not None:
            return self.max_constants
        enough = max(int(n_draws / _N_DRAWS_PER_CONSTANT), 2 * n_terms) + n_known
        return min(self.max_constants, enough)

    def _check_choices(self) -> None:
        for name in ("n_terms", "max_terms", "max_constants"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInputError(f"`{name} >= 1` must hold, but got {value}.")


@dataclass(frozen=True, slots=True)
class _Measured:
    """What was measured, rows to choose with and their folds, and whether names are believed."""

    frame: pd.DataFrame
    times: Array
    labels: Any
    rows: Any
    folds: Sequence[Fold]
    independence: float
    expects: bool = True

    def problem(self, layout: Layout) -> PosynomialProblem:
        """Return the problem of all rows."""
        return _problem(layout, self.frame, self.times, self.independence, self.expects)

    def choice(self, layout: Layout) -> PosynomialProblem:
        """Return the problem of the rows to choose with."""
        some, times = self.frame.iloc[self.rows], self.times[self.rows]
        return _problem(layout, some, times, self.independence, self.expects)


@dataclass(frozen=True, slots=True)
class _Rival:
    """A layout and its expressions, not all of whose folds may be known."""

    layout: Layout
    candidates: Candidates

    def least_errors(self, rows: Index, n_terms: int | None) -> Array:
        """Return the errors of some rows by the length that is best there."""
        places = range(len(self.candidates.members)) if n_terms is None else [n_terms - 1]
        errors = [self.candidates.errors(place)[rows] for place in places]
        return min(errors, key=np.mean)

    def choose(self, labels: Any, n_terms: int | None) -> _Tried:
        """Return the choice by all folds."""
        self.candidates.hold_out()
        members = self.candidates.members
        errors = [self.candidates.errors(place) for place in range(len(members))]
        most = self.candidates.max_constants
        chosen, top = choose(members, errors, labels, most, n_terms)
        return _Tried(self.layout, self.candidates, chosen, top, errors[top])


@dataclass(frozen=True, slots=True)
class _Tried:
    """The expressions of one layout, the chosen one, and the best with its errors."""

    layout: Layout
    candidates: Candidates
    chosen: int
    top: int
    errors: Array

    def front(self) -> Front:
        """Return what was tried as people see it."""
        members = self.candidates.members
        return Front(members=members, chosen=self.chosen, most_accurate=most_accurate(members))

    def is_preferable(self, other: _Tried, labels: Any) -> bool:
        """Return whether unseen rows say so, or it says as much in fewer terms."""
        own, its = (t.candidates.members[t.chosen] for t in (self, other))
        is_shorter = own.n_terms < its.n_terms and own.error <= its.error
        return _is_better(self.errors, other.errors, labels) or is_shorter


def _is_better(errors: Array, before: Array, labels: Any) -> bool:
    """Return whether errors are much less, and by more than chance makes them."""
    gain = before - errors
    is_much = bool(errors.mean() < CLEARLY * before.mean())
    return is_much and bool(gain.mean() > CLOSE * standard_error(gain, labels))


def _most_promising(
    measured: _Measured, plain: _Rival, proposals: Sequence[Composed]
) -> Composed | None:
    """Return the proposal that promises most, if that is more than chance does.

    Of many, those that promise most with few terms are tried with more.
    """
    if len(proposals) > _N_PROMISING:
        gains = _gains(measured, plain, proposals, _FEW_TERMS)
        proposals = sorted(proposals, key=lambda c: -gains[c])[:_N_PROMISING]
    if not proposals:
        return None
    gains = _gains(measured, plain, proposals, _MANY_TERMS)
    best = max(proposals, key=lambda c: gains[c])
    return best if gains[best] >= 0 else None


def _gains(
    measured: _Measured, plain: _Rival, proposals: Sequence[Composed], n_terms: int
) -> dict[Composed, float]:
    """Return what the logarithm of the error falls by with so many terms, less what is chance."""

    def promise(layout: Layout) -> float:
        return plain.candidates.promise(measured.choice(layout), layout, n_terms)

    before = promise(plain.layout)
    return {
        c: before - promise(compose(plain.layout, c, measured.frame)) - by_chance(c)
        for c in proposals
    }


def _problem(
    layout: Layout, frame: pd.DataFrame, times: Array, independence: float, expects: bool
) -> PosynomialProblem:
    return PosynomialProblem(
        rows=layout.encode(frame),
        target=np.log(times),
        weights=np.full(len(times), 1.0 / len(times)),
        strengths=NEUTRAL,
        independence=independence,
        expected=Expected.by_names(layout.stand_ins if expects else (), _FIRMNESS),
        limits=_limits(layout, frame),
    )


def _limits(layout: Layout, frame: pd.DataFrame) -> tuple[Array, Array]:
    """Return the least and the greatest power of every number.

    Of two values, a term may be of the smaller one alone; it may not explode at a third. Where few
    numbers of devices were measured, nothing grows faster with them than if they took turns.
    """
    n_values = {name: frame[name].nunique() for name in layout.stand_ins}
    least = [_STEEP if n == 2 else -MAX_POWER for n in n_values.values()]
    most = [
        _IN_TURN if n < _MANY_VALUES and counts_what(name) == "devices" else MAX_POWER
        for name, n in n_values.items()
    ]
    return np.array(least), np.array(most)


def _independence(frame: pd.DataFrame, labels: Any) -> float:
    """Return how many groups there are for every configuration, at most 1.

    Rows of one group err together: of a network that is not like the others, all of them do.
    Repeats of one configuration are no reason to trust constants less.
    """
    return float(min(1.0, len(np.unique(labels)) / len(np.unique(labels_of(frame, None)))))
