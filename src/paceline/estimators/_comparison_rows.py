"""What a comparison found: one row per member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from paceline.estimators._metrics import Scores

SCHEMA = "paceline/comparison/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """How one member did.

    Parameters
    ----------
    name
        Name of the member.
    scores
        Errors over all held-out rows; None when the member failed.
    fit_seconds
        Mean time of one fit; 0 when the member failed.
    settings
        What the member was set to, in words.
    error
        Why the member failed, or ``""``.
    coverage
        Share of held-out times within the member's 90 % intervals; None when it gives none.
    """

    name: str
    scores: Scores | None
    fit_seconds: float
    settings: Mapping[str, str]
    error: str = ""
    coverage: float | None = None

    @property
    def mape(self) -> float:
        """Mean absolute percentage error; infinite when the member failed."""
        return float("inf") if self.scores is None else self.scores.mape

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {
            "name": self.name,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "fit_seconds": self.fit_seconds,
            "settings": dict(self.settings),
            "error": self.error,
            "coverage": self.coverage,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Members compared on the same held-out rows.

    Parameters
    ----------
    rows
        One per member, the least mean absolute percentage error first, failed ones last.
    n_rows
        Rows of the dataset.
    n_held_out
        Rows that the scores are over.
    n_folds
        Number of fits of each member.
    split
        How rows were held out, in words.
    floor
        What repeats of one configuration differ by, as a share; None without repeats.
    """

    rows: tuple[ComparisonRow, ...]
    n_rows: int
    n_held_out: int
    n_folds: int
    split: str
    floor: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "schema": SCHEMA,
            "rows": [row.to_dict() for row in self.rows],
            "n_rows": self.n_rows,
            "n_held_out": self.n_held_out,
            "n_folds": self.n_folds,
            "split": self.split,
            "floor": self.floor,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one line per member, the settings as text."""
        names = list(Scores.__dataclass_fields__)
        lines = []
        for row in self.rows:
            scores = dict.fromkeys(names) if row.scores is None else row.scores.to_dict()
            lines.append(
                {
                    "name": row.name,
                    **scores,
                    "coverage": row.coverage,
                    "fit_seconds": row.fit_seconds,
                    "settings": ", ".join(f"{k}: {v}" for k, v in row.settings.items()),
                    "error": row.error,
                }
            )
        numbers = [*names, "coverage", "fit_seconds"]
        return pd.DataFrame(lines, columns=["name", *numbers, "settings", "error"]).astype(
            dict.fromkeys(numbers, float)
        )
