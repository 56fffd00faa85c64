"""What jobs do: fit a model to a table, and compare all forms on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paceline.dataset import Dataset, load_dataset, save_store

Progress = Callable[[int, int, str], None]


def fit_model(
    *,
    data: str,
    reading: dict[str, Any],
    form: str,
    n_terms: int | None,
    group: str | None,
    model: str,
    store: str | None,
    progress: Progress,
) -> dict[str, Any]:
    """Fit a model and write it; with `store`, keep the table with its roles there."""
    from paceline.estimators import fit, save_fit

    progress(0, 0, "reading")
    dataset = _load(data, reading, group)
    progress(0, 0, "fitting")
    result = fit(dataset, form=form, n_terms=n_terms, n_seeds=1, group=group, progress=progress)
    if store is not None:
        save_store(dataset, store)
    save_fit(result, model)
    error = None if result.scores is None else result.scores.mape
    return {
        "model": Path(model).name,
        "data": Path(store or data).name,
        "form": result.form,
        "n_rows": result.n_rows,
        "error": _finite(error),
        "notes": list(result.notes),
    }


def compare_forms(
    *,
    data: str,
    reading: dict[str, Any],
    group: str | None,
    n_folds: int,
    progress: Progress,
) -> dict[str, Any]:
    """Compare every form and black box on the same folds."""
    from paceline.estimators import add_features, compare

    progress(0, 0, "reading")
    dataset = add_features(_load(data, reading, group))
    found = compare(dataset, group=group, n_folds=n_folds, progress=progress)
    rows = [
        {
            "name": row.name,
            "mape": None if row.scores is None else _finite(row.scores.mape),
            "coverage": _finite(row.coverage),
            "fit_seconds": row.fit_seconds,
            "error": row.error,
        }
        for row in found.rows
    ]
    return {
        "rows": rows,
        "n_rows": found.n_rows,
        "n_held_out": found.n_held_out,
        "split": found.split,
        "floor": _finite(found.floor),
        "notes": list(dataset.notes),
    }


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"fit": fit_model, "compare": compare_forms}


def _load(data: str, reading: dict[str, Any], group: str | None) -> Dataset:
    grouped = {} if group is None else {"group": group}
    return load_dataset(data, **reading, **grouped)  # type: ignore[arg-type]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
