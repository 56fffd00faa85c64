"""What a model is made of: shares of its terms, the front, paths against strength, spreads."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, PacelineWarning
from paceline.estimators import FitResult, Stability, score
from paceline.explainers import Explanation, PosynomialExplanation

STRENGTHS = tuple(float(s) for s in np.logspace(-3, 0, 7))
_PATH_ROWS = 300  # a path over more rows looks the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The share of the time that one summand has, over the measured rows and at the point."""

    name: str
    label: str
    mean: float | None
    at_point: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPoint:
    """One expression that was tried; `error` is None when nothing was held out."""

    n_terms: int
    n_constants: int
    error: float | None
    standard_error: float | None
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthPath:
    """What a growing penalty does to the fit.

    Parameters
    ----------
    penalty
        ``l1`` or ``l2``.
    strengths
        Values of lambda, on scaled times.
    r2, mape
        Of the fitted rows.
    constants
        Every constant, one value per strength; coefficients in seconds.
    shares
        Mean share of the time of every summand, one value per strength.
    chosen
        The model's own strength; None when it has no penalty of this kind.
    n_rows
        Rows fitted.
    """

    penalty: str
    strengths: tuple[float, ...]
    r2: tuple[float, ...]
    mape: tuple[float, ...]
    constants: dict[str, tuple[float, ...]]
    shares: dict[str, tuple[float, ...]]
    chosen: float | None
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data."""
        return asdict(self)


def view_shares(explanation: Explanation | PosynomialExplanation) -> tuple[Share, ...]:
    """Return the share of every summand that is ever there, the largest first."""
    if isinstance(explanation, PosynomialExplanation):
        found = [
            Share(name=t.name, label=t.label, mean=t.mean_share, at_point=t.point_share)
            for t in explanation.terms
        ]
    else:
        means, here = explanation.shares, explanation.point_shares
        found = [
            Share(name=n, label=_summand(n), mean=means.get(n), at_point=here.get(n))
            for n in dict.fromkeys((*means, *here))
        ]
    there = [share for share in found if (share.mean or 0.0) + (share.at_point or 0.0) > 0]
    return tuple(sorted(there, key=lambda share: -(share.mean or share.at_point or 0.0)))


def _summand(name: str) -> str:
    words = {"C": "the floor that does not scale", "base": "what all levels have in common"}
    return words.get(name, name)


def view_front(fit: FitResult) -> tuple[FrontPoint, ...]:
    """Return the expressions that were tried, fewest constants first; empty without a front."""
    front = getattr(fit.estimator, "front_", None)
    if front is None:
        return ()
    return tuple(
        FrontPoint(**member.to_dict(), is_chosen=i == front.chosen)
        for i, member in enumerate(front.members)
    )


def view_stability(fit: FitResult) -> Stability | None:
    """Return the spread of every constant over seeds and over the data; None when not studied."""
    return fit.stability


def view_path(
    dataset: Dataset,
    fit: FitResult,
    *,
    penalty: str | None = None,
    strengths: Sequence[float] = STRENGTHS,
) -> StrengthPath:
    """Return constants and R² against the strength of the penalty, for the generic form.

    Parameters
    ----------
    dataset, fit
        What was measured, and a fit of the generic form, whose settings are kept.
    penalty
        ``l1`` or ``l2``; None: the fit's own, else ``l2``.
    strengths
        Values of lambda.

    Raises
    ------
    InvalidInputError
        When the model has another form.

    Notes
    -----
    No folds are held out here; `regularization_path` does that, and takes longer.
    """
    if fit.form != "generic":
        raise InvalidInputError(f"A path is of the generic form, but the form is {fit.form!r}.")
    own = fit.estimator.penalty
    penalty = penalty or (own if own != "none" else "l2")
    part = _thinned(dataset)
    X, y = fit.measured.read(part.X), part.y
    settings = clone(fit.estimator).set_params(
        penalty=penalty, power_strength=None, solver="quick"
    )
    rows = [_fitted(settings.set_params(strength=strength), X, y) for strength in strengths]
    return StrengthPath(
        penalty=penalty,
        strengths=tuple(strengths),
        r2=tuple(row["r2"] for row in rows),
        mape=tuple(row["mape"] for row in rows),
        constants=_by_name(rows, "constants"),
        shares=_by_name(rows, "shares"),
        chosen=fit.estimator.strength if own == penalty else None,
        n_rows=part.n_rows,
    )


def _thinned(dataset: Dataset) -> Dataset:
    if dataset.n_rows <= _PATH_ROWS:
        return dataset
    rng = np.random.default_rng(0)
    return dataset.take(np.sort(rng.choice(dataset.n_rows, _PATH_ROWS, replace=False)))


def _fitted(settings: Any, X: Any, y: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        model = clone(settings).fit(X, y)
    found, parts = score(y, model.predict(X)), model.expression_.components(X)
    means = parts.div(parts.sum(axis=1), axis=0).mean()
    constants = model.expression_.constants()
    shares = {str(name): float(share) for name, share in means.items()}
    return {"r2": found.r2, "mape": found.mape, "constants": constants, "shares": shares}


def _by_name(rows: Sequence[dict[str, Any]], what: str) -> dict[str, tuple[float, ...]]:
    """Return one value per strength of everything that has one; 0 where it is gone."""
    names = dict.fromkeys(name for row in rows for name in row[what])
    return {name: tuple(float(row[what].get(name, 0.0)) for row in rows) for name in names}
