"""The verb `fit`: from a dataset to a result that predicts and explains itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from paceline.clusters import Cluster
from paceline.dataset import Dataset, widen
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators._beyond import learn_widening
from paceline.estimators._columns import Array
from paceline.estimators._difficulty import Difficulty, learn_difficulty
from paceline.estimators._feature_choice import add_features
from paceline.estimators._features import features_of
from paceline.estimators._forms import FORMS, Fitted, choose_form, fit_form
from paceline.estimators._generic import GenericRegressor
from paceline.estimators._intervals import MIN_RESIDUALS, half_width, log_residuals, thin_sorted
from paceline.estimators._measured import MeasuredRange
from paceline.estimators._metrics import FEW_REPEATS, noise_floor, score
from paceline.estimators._posynomial import MIN_GROUPS, layout_of
from paceline.estimators._result import FitResult
from paceline.estimators._stability import Progress, Stability, study_stability
from paceline.units import format_seconds

_ODD = 100  # times longer or shorter than foretold: hardly the same kind of run
_MOST_NAMED = 3
_GENERIC_NOTE = "The generic form is one of the parameters alone: no features join them."


def fit(
    dataset: Dataset,
    *,
    form: str = "auto",
    estimator: GenericRegressor | None = None,
    n_terms: int | None = None,
    n_seeds: int = 10,
    n_bootstrap: int = 50,
    group: str | None = None,
    features: str = "auto",
    workload: str | None = None,
    cluster: Cluster | str | Path | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> FitResult:
    """Fit an expression to a dataset.

    Parameters
    ----------
    dataset
        Parameters and times.
    form
        One of `FORMS`, or ``"auto"``: the simplest whose held-out error is near the least.
    estimator
        Settings of the generic form, such as ``GenericRegressor(penalty="l2")``, which is then
        fitted unless `form` says otherwise; roles and seed are set here.
    n_terms
        Number of terms of a posynomial; None chooses.
    n_seeds
        Fits with different seeds, for the spread of the constants; 1 leaves the whole study of
        stability out, which is quicker.
    n_bootstrap
        Refits to resampled rows, for the spread that the data leave.
    group
        Column whose values stay together in the folds that measure the error; None: the one that
        the dataset was read with, if any.
    features
        ``"layers"``: FLOP and bytes of the workload's layers join the parameters of a posynomial;
        ``"oracle"``: what the oracle says of every row on a cluster; ``"none"``; ``"auto"``: the
        layers for campaigns of our own, see `add_features`.
    workload
        Name of the workload that they are of; None: what the dataset says.
    cluster
        Of the oracle's columns: a cluster, its name or its file.
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
    if form == "auto" and estimator is not None:
        form = "generic"
    _check_fittable(dataset)
    group = dataset.group if group is None else group
    if form == "generic" and features not in ("auto", "none"):
        dataset = replace(dataset, notes=(*dataset.notes, _GENERIC_NOTE))
    wanted = "none" if form == "generic" else features
    dataset = add_features(dataset, wanted, workload, cluster)
    settings = _settings(dataset, estimator, random_state)
    groups = dataset.groups(group)
    notes = list(dataset.notes)
    if form == "auto":
        fitted, why = choose_form(settings, dataset, groups, n_terms)
        notes.append(why)
    else:
        fitted = fit_form(form, settings, dataset, groups, n_terms)
    notes += fitted.notes
    known = _known(fitted, dataset, groups, group, notes)
    measured, predicted = np.asarray(dataset.y, dtype=float)[known], fitted.held_out[known]
    notes += _note_odd_rows(known, measured, predicted)
    difficulty, residuals = _learn_width(dataset, known, predicted, groups, random_state)
    if fitted.form == "generic":
        dataset = add_features(dataset, "none")
    return FitResult(
        form=fitted.form,
        estimator=fitted.estimator,
        measured=MeasuredRange.of(dataset),
        features=features_of(dataset),
        basis=dataset.basis,
        scores=score(measured, predicted) if len(predicted) else None,
        residuals=residuals,
        difficulty=difficulty,
        widening=learn_widening(fitted, dataset, groups, difficulty, half_width(residuals)),
        covers=_covers(group) if len(predicted) else "nothing",
        shares=_mean_shares(fitted.estimator, dataset),
        stability=_study(fitted, n_seeds, n_bootstrap, progress),
        n_rows=dataset.n_rows,
        noise_floor=noise_floor(dataset.y, dataset.groups(), FEW_REPEATS),
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


def _check_fittable(dataset: Dataset) -> None:
    if dataset.n_rows < 2:
        raise InvalidInputError(
            f"A fit needs at least 2 rows, but got {dataset.n_rows}. Measure more trials."
        )
    if not len(dataset.X.columns):
        raise InvalidInputError(
            "A fit needs at least one parameter that varies, but beside the time every column is "
            "constant, set aside or missing. Measure runs that differ in something."
        )


def _known(
    fitted: Fitted, dataset: Dataset, groups: Any, group: str | None, notes: list[str]
) -> Any:
    """Return which rows were predicted without having been seen; say why none were."""
    known = np.flatnonzero(np.isfinite(fitted.held_out))
    if len(known) >= MIN_RESIDUALS:
        return known
    if len(np.unique(groups)) < 2 and dataset.n_rows >= MIN_RESIDUALS:
        what = f"{group} has one value only" if group else "all rows are one configuration"
        notes.append(f"No interval and no held-out error: {what}, so nothing can be held out.")
    elif group is not None and len(np.unique(groups)) < MIN_GROUPS:
        notes.append(f"No interval: {group} has {len(np.unique(groups))} values, too few.")
    else:
        notes.append("No interval: too few rows can be held out of the fit.")
    return known[:0]


def _covers(group: str | None) -> str:
    return "configurations not measured" if group is None else f"values of {group} not measured"


def _note_odd_rows(known: Any, measured: Array, predicted: Array) -> list[str]:
    """Name rows that took so unlike all others that somebody should look at them."""
    odd = np.flatnonzero(log_residuals(measured, predicted) > np.log(_ODD))
    if not len(odd):
        return []
    each = [f"row {known[i] + 1} took {format_seconds(measured[i])}" for i in odd[:_MOST_NAMED]]
    more = f" and {len(odd) - _MOST_NAMED} more" if len(odd) > _MOST_NAMED else ""
    return [
        f"{', '.join(each)}{more}: over {_ODD} times more or less than the others lead one to "
        f"expect. Check them."
    ]


def _learn_width(
    dataset: Dataset, known: Any, predicted: Array, groups: Any, random_state: int
) -> tuple[Difficulty | None, tuple[float, ...]]:
    """Return where errors are large, and the sorted conformal scores."""
    if not len(known):
        return None, ()
    measured = np.asarray(dataset.y, dtype=float)[known]
    X = dataset.X.iloc[known]
    layout = layout_of(dataset.X, dataset.extrinsic, dataset.categorical)
    sizes = log_residuals(measured, predicted)
    codes = np.unique(np.asarray(groups)[known], return_inverse=True)[1].ravel()
    difficulty, scores = learn_difficulty(layout, X, sizes, codes, random_state)
    return difficulty, tuple(thin_sorted(scores).tolist())


def _mean_shares(model: Any, dataset: Dataset) -> dict[str, float]:
    parts = model.expression_.components(widen(dataset).X)
    total = parts.sum(axis=1)
    return {str(name): float((parts[name] / total).mean()) for name in parts}


def _study(
    fitted: Fitted, n_seeds: int, n_bootstrap: int, progress: Progress | None
) -> Stability | None:
    if n_seeds <= 1 or fitted.form != "generic":
        return None
    return study_stability(
        fitted.estimator, n_seeds=n_seeds, n_bootstrap=n_bootstrap, progress=progress
    )
