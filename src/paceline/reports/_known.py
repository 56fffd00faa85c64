"""The material of a report with what several sections need, worked out once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pandas as pd

from paceline.explainers import PhaseExplanation, explain, explain_phases
from paceline.reports._report import Material
from paceline.reports.views import predict_rows


class Known:
    """Predictions of all rows, the explanation, the phases, and what the time is called."""

    def __init__(self, material: Material) -> None:
        self.material = material
        self.dataset, self.fit = material.dataset, material.fit
        self.rows: pd.DataFrame = predict_rows(self.dataset, self.fit)
        self.explanation = explain(self.fit)
        per = self.fit.basis.time_per
        self.time = f"time per {per}" if per else "time"

    @cached_property
    def phases(self) -> PhaseExplanation | None:
        """What the phases say; None where none were timed."""
        runs = self.material.phase_runs
        return explain_phases(runs) if runs else None


def plain_view(view: Any) -> dict[str, Any]:
    """Return a small view as plain data."""
    return {name: getattr(view, name) for name in view.__slots__}
