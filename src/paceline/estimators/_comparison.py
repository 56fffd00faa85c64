"""Every form and every black box on the same held-out rows, in one table."""

from __future__ import annotations

import inspect
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from paceline.dataset import Dataset
from paceline.errors import BoundWarning, ConvergenceWarning, InvalidInputError, PacelineError
from paceline.estimators._columns import Array
from paceline.estimators._comparison_rows import Comparison, ComparisonRow
from paceline.estimators._folds import Fold, Rows, folds_of, holdout_of
from paceline.estimators._members import Factory, default_members
from paceline.estimators._metrics import FEW_REPEATS, noise_floor, score
from paceline.estimators._stability import Progress
from paceline.units import format_percent

# a member that cannot be fitted; anything else is a fault of ours and must be seen
_FAILURES = (PacelineError, ValueError, np.linalg.LinAlgError)


def compare(
    dataset: Dataset,
    *,
    group: str | None = None,
    n_folds: int = 5,
    holdout: float | tuple[Any, Any] | None = None,
    members: Mapping[str, Factory] | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Fit every member to the same rows and score it on the same held-out ones.

    Parameters
    ----------
    dataset
        What was measured.
    group
        Column whose equal values are held out together; None: the dataset's own group if rows
        are drawn here, else identical configurations.
    n_folds
        Number of folds; fewer when there are fewer groups.
    holdout
        Instead of folds, one split: the share of rows to hold out, or the numbers of the rows
        to fit and of those to hold out.
    members
        Name to a function that makes an unfitted estimator for a dataset; None:
        `default_members`.
    random_state
        Seed of the folds and of the default members.
    progress
        Called with the fits done, their total and what comes next.

    Returns
    -------
    Comparison
        A member that cannot be fitted is reported in its row; the others go on.

    Raises
    ------
    InvalidInputError
        When rows cannot be held out as asked, or there is no member.
    """
    if not isinstance(dataset, Dataset):
        raise InvalidInputError(
            f"A dataset can be compared on, but got {type(dataset).__name__}. "
            f"Load one with `load_dataset`."
        )
    members = default_members(random_state) if members is None else members
    if not members:
        raise InvalidInputError("At least one member is needed to compare, but got none.")
    if group is None and not isinstance(holdout, tuple):
        group = dataset.group
    folds, split = _split(dataset, group, n_folds, holdout, random_state)
    trial = _Trial(
        dataset=dataset,
        group=group,
        folds=folds,
        progress=progress or _say_nothing,
        n_fits=len(members) * len(folds),
    )
    rows = [trial.row_of(n, *member) for n, member in enumerate(members.items())]
    trial.progress(trial.n_fits, trial.n_fits, "done")
    return Comparison(
        rows=tuple(sorted(rows, key=lambda row: (bool(row.error), row.mape))),
        n_rows=dataset.n_rows,
        n_held_out=len(trial.held_out),
        n_folds=len(folds),
        split=split,
        floor=noise_floor(dataset.y, dataset.groups(), FEW_REPEATS),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    """The rows that every member is tried on."""

    dataset: Dataset
    group: str | None  # whose values are kept together within a fit too; None: equal rows
    folds: Sequence[Fold]
    progress: Progress
    n_fits: int

    @property
    def held_out(self) -> Rows:
        return np.concatenate([test for _, test in self.folds])

    def row_of(self, n_before: int, name: str, factory: Factory) -> ComparisonRow:
        """Return how a member did, or why it failed."""
        try:
            predicted, seconds, settings = self._fit_all(n_before, name, factory)
            measured = np.asarray(self.dataset.y, dtype=np.float64)[self.held_out]
            scores = score(measured, predicted["predicted_s"].to_numpy())
        except _FAILURES as error:
            reason = str(error) or type(error).__name__
            return ComparisonRow(
                name=name, scores=None, fit_seconds=0.0, settings={}, error=reason
            )
        return ComparisonRow(
            name=name,
            scores=scores,
            fit_seconds=seconds,
            settings=settings,
            coverage=_coverage(measured, predicted),
        )

    def _fit_all(
        self, n_before: int, name: str, factory: Factory
    ) -> tuple[pd.DataFrame, float, dict[str, str]]:
        predicted, seconds, settings = [], [], []
        for k, (train, test) in enumerate(self.folds):
            label = f"{name}, fit {k + 1} of {len(self.folds)}"
            self.progress(n_before * len(self.folds) + k, self.n_fits, label)
            model = factory(self.dataset)
            seconds.append(self._fit(model, train))
            predicted.append(_predict(model, self.dataset.X.iloc[test]))
            settings.append(_settings_of(model))
        return pd.concat(predicted), float(np.mean(seconds)), _summary(settings)

    def _fit(self, model: Any, train: Rows) -> float:
        """Fit and return the seconds; our own warnings would come once per fold."""
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoundWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            if hasattr(model, "fit_dataset"):
                model.fit_dataset(self.dataset.take(train), self.group)
            else:
                X, y = self.dataset.X.iloc[train], self.dataset.y.iloc[train]
                model.fit(X, y, **self._grouping(model, train))
        return time.perf_counter() - start

    def _grouping(self, model: Any, train: Rows) -> dict[str, Any]:
        """Return the groups of the rows, for members that hold rows out themselves."""
        if self.group is None or "groups" not in inspect.signature(model.fit).parameters:
            return {}
        return {"groups": np.asarray(self.dataset.groups(self.group))[train]}


def _predict(model: Any, X: pd.DataFrame) -> pd.DataFrame:
    """Return what a member predicts, with intervals if it gives any."""
    if hasattr(model, "predict_intervals"):
        found: pd.DataFrame = model.predict_intervals(X)
        return found
    return pd.DataFrame({"predicted_s": np.asarray(model.predict(X), dtype=float)})


def _coverage(measured: Array, predicted: pd.DataFrame) -> float | None:
    """Return the share of times within their intervals; None without intervals."""
    if "lower_s" not in predicted or bool(predicted["lower_s"].isna().any()):
        return None
    low, high = predicted["lower_s"].to_numpy(), predicted["upper_s"].to_numpy()
    return float(((low <= measured) & (measured <= high)).mean())


def _split(
    dataset: Dataset,
    group: str | None,
    n_folds: int,
    holdout: float | tuple[Any, Any] | None,
    random_state: int,
) -> tuple[list[Fold], str]:
    """Return the folds and how they were made, in words."""
    if isinstance(holdout, tuple):
        fold = _check_rows(holdout, group, dataset.n_rows)
        return [fold], f"{len(fold[0])} given rows to fit, {len(fold[1])} held out"
    groups = dataset.groups(group)
    together = f"rows of the same {group or 'configuration'} kept together"
    if holdout is not None:
        fold = holdout_of(groups, holdout, random_state)
        share = format_percent(len(fold[1]) / dataset.n_rows)
        return [fold], f"{share} of the rows held out, {together}"
    folds = folds_of(groups, n_folds, random_state)
    return folds, f"{len(folds)} folds, {together}"


def _check_rows(pair: tuple[Any, Any], group: str | None, n_rows: int) -> Fold:
    if group is not None:
        raise InvalidInputError(
            f"Given rows cannot be regrouped by `{group}`: give a share to hold out, or no group."
        )
    train, test = (np.asarray(rows, dtype=np.intp) for rows in pair)
    both = np.concatenate([train, test])
    if not (len(train) and len(test)) or both.min() < 0 or both.max() >= n_rows:
        raise InvalidInputError(
            f"Rows to fit and to hold out must be numbers from 0 to {n_rows - 1}, some of each."
        )
    if len(np.unique(both)) < len(both):
        raise InvalidInputError("No row may be given twice, neither to fit nor to hold out.")
    return train, test


def _settings_of(model: Any) -> dict[str, str]:
    """Return what a fitted member says that it chose, else how it was made."""
    chosen = getattr(model, "settings_", None)
    if chosen is None:
        made = model.get_params(deep=False) if hasattr(model, "get_params") else {}
        roles = ("extrinsic", "categorical", "random_state")
        chosen = {k: v for k, v in made.items() if v is not None and k not in roles}
        if chosen.get("penalty") == "none":
            chosen.pop("strength", None)
    return {str(k): str(v) for k, v in chosen.items()}


def _summary(settings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings of all folds: once where they agree, else each with its count."""
    summary = {}
    for key in dict.fromkeys(key for one in settings for key in one):
        counts = Counter(one[key] for one in settings if key in one).most_common()
        often = [f"{value} ({n} of {len(settings)})" for value, n in counts]
        summary[key] = counts[0][0] if len(counts) == 1 else ", ".join(often)
    return summary


def _say_nothing(done: int, total: int, label: str) -> None:
    pass
