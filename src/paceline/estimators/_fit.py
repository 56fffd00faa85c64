"""The verb `fit`: from a dataset to a result that predicts and explains itself."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, PacelineWarning, UnknownNameError
from paceline.estimators._columns import Array, columns_of
from paceline.estimators._folds import Rows, folds_of
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._intervals import MIN_RESIDUALS, held_out_predictions, log_residuals
from paceline.estimators._measured import MeasuredRange
from paceline.estimators._metrics import score
from paceline.estimators._result import FitResult
from paceline.estimators._stability import Progress, Stability, study_stability

FORMS = {
    "generic": "(sum of intrinsic powers and levels) x extrinsic powers + C; the thesis, eq. 4.4",
}
_N_FOLDS = 5


def fit(
    dataset: Dataset,
    *,
    form: str = "auto",
    estimator: GenericRegressor | None = None,
    n_seeds: int = 10,
    n_bootstrap: int = 50,
    group: str | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> FitResult:
    """Fit an expression to a dataset.

    Parameters
    ----------
    dataset
        Parameters and times.
    form
        One of `FORMS`, or ``"auto"``.
    estimator
        Settings to use, such as ``GenericRegressor(penalty="l2")``; roles and seed are set here.
    n_seeds
        Fits with different seeds, for the spread of the constants; 1 leaves the whole study of
        stability out, which is quicker.
    n_bootstrap
        Refits to resampled rows, for the spread that the data leave.
    group
        Column whose values stay together in the folds that measure the error.
    random_state
        Seed; same data and seed, same result.
    progress
        Called as ``progress(done, total, label)``.

    Returns
    -------
    FitResult
    """
    if not isinstance(dataset, Dataset):
        raise InvalidInputError(
            f"A dataset can be fitted, but got {type(dataset).__name__}. "
            f"Load one with `load_dataset`, or make one with `Dataset.from_frame`."
        )
    if form not in (*FORMS, "auto"):
        raise UnknownNameError("form", form, ("auto", *FORMS))
    settings = _settings(dataset, estimator, random_state)
    notes = list(dataset.notes)
    model = _fit_once(settings, dataset, notes)
    measured = np.asarray(dataset.y, dtype=float)
    predicted, covers = _predict_held_out(settings, dataset, group, random_state, notes)
    return FitResult(
        form="generic",
        estimator=model,
        measured=MeasuredRange.of(dataset),
        basis=dataset.basis,
        scores=score(measured, predicted) if len(predicted) else None,
        residuals=tuple(log_residuals(measured, predicted).tolist()) if len(predicted) else (),
        covers=covers,
        shares=_mean_shares(model, dataset),
        stability=_study(model, n_seeds, n_bootstrap, progress),
        n_rows=dataset.n_rows,
        notes=tuple(notes),
    )


def _settings(
    dataset: Dataset, estimator: GenericRegressor | None, random_state: int
) -> GenericRegressor:
    settings = clone(estimator) if estimator is not None else GenericRegressor()
    return settings.set_params(
        extrinsic=list(dataset.extrinsic),
        categorical=list(dataset.categorical),
        random_state=random_state,
    )


def _fit_once(settings: GenericRegressor, dataset: Dataset, notes: list[str]) -> GenericRegressor:
    """Return the model of all rows; what it warns of is kept as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PacelineWarning)
        _check_enough_rows(settings, dataset)
        model = clone(settings).fit(dataset.X, dataset.y)
    notes.extend(str(w.message) for w in caught if issubclass(w.category, PacelineWarning))
    return model


def _check_enough_rows(settings: GenericRegressor, dataset: Dataset) -> None:
    if dataset.n_rows < 2:
        raise InvalidInputError(
            f"A fit needs at least 2 rows, but got {dataset.n_rows}. Measure more trials."
        )
    if not len(dataset.X.columns):
        raise InvalidInputError(
            "A fit needs at least one parameter that varies, but all columns are constant."
        )
    columns = columns_of(dataset.X, dataset.extrinsic, dataset.categorical)
    n_constants = columns.n_constants
    if dataset.n_rows < n_constants and settings.penalty == "none":
        raise InvalidInputError(
            f"A fit needs at least as many rows as constants, but got {dataset.n_rows} rows for "
            f"{n_constants} constants. Measure more, name fewer parameters with --intrinsic and "
            f"--extrinsic, or add --penalty l2."
        )


def _predict_held_out(
    settings: GenericRegressor,
    dataset: Dataset,
    group: str | None,
    random_state: int,
    notes: list[str],
) -> tuple[Array, str]:
    """Return held-out predictions of all rows and what they stand for."""
    groups = dataset.groups(group)
    if dataset.n_rows < MIN_RESIDUALS:
        notes.append(f"No interval: fewer than {MIN_RESIDUALS} rows can be held out of the fit.")
        return np.empty(0), "nothing"
    if len(np.unique(groups)) < 2:
        what = f"{group} has one value only" if group else "all rows are one configuration"
        notes.append(f"No interval and no held-out error: {what}, so nothing can be held out.")
        return np.empty(0), "nothing"

    settings = clone(settings)
    if settings.solver == "fast":
        settings.set_params(solver="quick")

    def fit_predict(train: Rows, test: Rows) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PacelineWarning)
            part = clone(settings).fit(dataset.X.iloc[train], dataset.y.iloc[train])
        return part.predict(dataset.X.iloc[test])

    folds = folds_of(groups, _N_FOLDS, random_state)
    covers = "configurations not measured" if group is None else f"values of {group} not measured"
    return held_out_predictions(fit_predict, folds, dataset.n_rows), covers


def _mean_shares(model: GenericRegressor, dataset: Dataset) -> dict[str, float]:
    parts = model.expression_.components(dataset.X)
    total = parts.sum(axis=1)
    return {str(name): float((parts[name] / total).mean()) for name in parts}


def _study(
    model: GenericRegressor, n_seeds: int, n_bootstrap: int, progress: Progress | None
) -> Stability | None:
    if n_seeds <= 1:
        return None
    return study_stability(model, n_seeds=n_seeds, n_bootstrap=n_bootstrap, progress=progress)
