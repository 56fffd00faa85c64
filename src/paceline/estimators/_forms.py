"""The families of expressions that `fit` knows, each fitted with its held-out predictions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from paceline.dataset import Dataset, widen
from paceline.errors import InvalidInputError, PacelineWarning
from paceline.estimators._columns import Array, columns_of
from paceline.estimators._featured import make_posynomial
from paceline.estimators._folds import Rows, folds_of
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._intervals import MIN_RESIDUALS, held_out_predictions
from paceline.estimators._metrics import score
from paceline.estimators._posynomial import MIN_GROUPS, choice_folds

FORMS = {
    "generic": "(sum of intrinsic powers and levels) x extrinsic powers + C; the thesis, eq. 4.4",
    "posynomial": "sum of products of powers and level factors, as many terms as the data ask for",
    "corrected": "a posynomial, corrected by smooth black boxes within the measured range",
}
N_FOLDS = 5
# a simpler form is taken when its error is at most this much larger
_NOT_WORSE = 1.03
_HOPELESS = 1.5  # times the least error, on one fold
_FEW_ROWS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One form fitted to a dataset."""

    form: str
    estimator: Any
    held_out: Array  # predictions in seconds of rows not seen; NaN where there are none
    notes: tuple[str, ...]

    def error(self, dataset: Dataset) -> float:
        """Return the mean absolute percentage error of the held-out predictions."""
        known = np.isfinite(self.held_out)
        if not known.any():
            return float("inf")
        return score(dataset.y[known], self.held_out[known]).mape


def fit_form(
    form: str, settings: GenericRegressor, dataset: Dataset, groups: Any, n_terms: int | None
) -> Fitted:
    """Return one form fitted to all rows, with predictions of rows held out."""
    if form == "generic":
        return _fit_generic(settings, dataset, groups)
    model, columns = make_posynomial(form, dataset, n_terms, settings.random_state)
    model.fit(widen(dataset).X[columns], dataset.y, groups=groups)
    return Fitted(form=form, estimator=model, held_out=model.held_out_, notes=())


def choose_form(
    settings: GenericRegressor, dataset: Dataset, groups: Any, n_terms: int | None
) -> tuple[Fitted, str]:
    """Return the simplest form whose held-out error is near the least, and why.

    A power law is the posynomial of one term, so nothing worse than it is ever chosen.
    """
    corrected = fit_form("corrected", settings, dataset, groups, n_terms)
    tried = [_bare(corrected), corrected]
    errors = {f.form: f.error(dataset) for f in tried}
    if n_terms is None and _can_be_generic(dataset):
        hopeless = _HOPELESS * min(errors.values())
        errors["generic"] = _generic_error(settings, dataset, groups, hopeless)
        if errors["generic"] <= _NOT_WORSE * min(errors.values()):
            tried.append(fit_form("generic", settings, dataset, groups, None))
    least = min(errors.values())
    within = [f for f in tried if errors[f.form] <= _NOT_WORSE * least or np.isinf(least)]
    chosen = min(within, key=_n_constants)
    n_groups = len(np.unique(groups))
    few = f"{n_groups} groups" if n_groups < MIN_GROUPS else f"{dataset.n_rows} rows"
    return chosen, _reason(chosen.form, errors, few)


def _generic_error(
    settings: GenericRegressor, dataset: Dataset, groups: Any, hopeless: float
) -> float:
    """Return the held-out error of the generic form on some rows, enough to compare with.

    Where the first fold's is `hopeless`, the others are left out.
    """
    columns = columns_of(dataset.X, dataset.extrinsic, dataset.categorical)
    rows, folds = choice_folds(np.asarray(groups), columns.n_constants, settings.random_state)
    if not folds:
        return float("inf")
    some, labels = dataset.take(rows), np.asarray(groups)[rows]
    for n_folds in (1, None):
        held_out = _predict_held_out(settings, some, labels, n_folds)
        known = np.isfinite(held_out)
        if not known.any():
            return float("inf")
        error = score(some.y[known], held_out[known]).mape
        if error > hopeless:
            break
    return error


def _bare(corrected: Fitted) -> Fitted:
    """Return the posynomial within a corrected fit as a form of its own."""
    model = corrected.estimator.posynomial_
    return Fitted(form="posynomial", estimator=model, held_out=model.held_out_, notes=())


def _n_constants(fitted: Fitted) -> float:
    """Return how long a formula is; one that must be corrected is the longest."""
    if fitted.form == "generic":
        return int(fitted.estimator.columns_.n_constants)
    return int(fitted.estimator.expression_.n_constants) + (
        1e6 if fitted.form == "corrected" else 0
    )


def _reason(chosen: str, errors: Mapping[str, float], few: str) -> str:
    if np.isinf(min(errors.values())):
        return f"`{chosen}` was chosen: {few} are too few to compare forms."
    listed = ", ".join(f"{form} {100 * error:.3g} %" for form, error in errors.items())
    return (
        f"`{chosen}` was chosen: the simplest whose error on rows not seen is within 3 % of the "
        f"least ({listed})."
    )


def _can_be_generic(dataset: Dataset) -> bool:
    columns = columns_of(dataset.X, dataset.extrinsic, dataset.categorical)
    is_positive = all((dataset.X[name] > 0).all() for name in dataset.extrinsic)
    return dataset.n_rows >= max(columns.n_constants, _FEW_ROWS) and bool(is_positive)


def _fit_generic(settings: GenericRegressor, dataset: Dataset, groups: Any) -> Fitted:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PacelineWarning)
        check_enough_rows(settings, dataset)
        model = clone(settings).fit(dataset.X, dataset.y)
    notes = [str(w.message) for w in caught if issubclass(w.category, PacelineWarning)]
    held_out = _predict_held_out(settings, dataset, groups)
    return Fitted(form="generic", estimator=model, held_out=held_out, notes=tuple(notes))


def check_enough_rows(settings: GenericRegressor, dataset: Dataset) -> None:
    """Refuse fewer rows than the generic form has constants, unless they are penalised."""
    columns = columns_of(dataset.X, dataset.extrinsic, dataset.categorical)
    n_constants = columns.n_constants
    if dataset.n_rows < n_constants and settings.penalty == "none":
        raise InvalidInputError(
            f"A fit needs at least as many rows as constants, but got {dataset.n_rows} rows for "
            f"{n_constants} constants. Measure more, name fewer parameters with --intrinsic and "
            f"--extrinsic, or add --penalty l2."
        )


def _predict_held_out(
    settings: GenericRegressor, dataset: Dataset, groups: Any, n_folds: int | None = None
) -> Array:
    """Return predictions of rows by fits without them, of some folds or (None) of all."""
    if dataset.n_rows < MIN_RESIDUALS or len(np.unique(groups)) < 2:
        return np.full(dataset.n_rows, np.nan)
    settings = clone(settings)
    if settings.solver == "fast":
        settings.set_params(solver="quick")

    def fit_predict(train: Rows, test: Rows) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PacelineWarning)
            part = clone(settings).fit(dataset.X.iloc[train], dataset.y.iloc[train])
        return part.predict(dataset.X.iloc[test])

    folds = folds_of(groups, N_FOLDS, settings.random_state)
    return held_out_predictions(fit_predict, folds[:n_folds], dataset.n_rows)
