"""Where the numbers of a report come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paceline import __version__
from paceline.dataset import Dataset
from paceline.estimators import FitResult

_MOST = 200  # letters of a value


def view_provenance(dataset: Dataset, fit: FitResult) -> dict[str, str]:
    """Return where data and model come from, in words, in the order in which it is shown."""
    roles = {
        role: ", ".join(getattr(dataset, role)) or "none" for role in ("intrinsic", "extrinsic")
    }
    repeats = dataset.times_s
    raw = "not kept" if repeats is None else f"{sum(map(len, repeats))} raw times"
    return {
        "rows": f"{dataset.n_rows}; {raw}",
        "time": str(dataset.basis),
        "intrinsic parameters": roles["intrinsic"],
        "extrinsic parameters": roles["extrinsic"],
        **dict(_flat("", dataset.provenance)),
        "form of the model": fit.form,
        "rows of the fit": str(fit.n_rows),
        "random state": str(getattr(fit.estimator, "random_state", "unknown")),
        "written by": f"Paceline {__version__}",
    }


def _flat(prefix: str, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(f"{label}: ", value)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            yield label, text if len(text) <= _MOST else f"{text[:_MOST]}…"
