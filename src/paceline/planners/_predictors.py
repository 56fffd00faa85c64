"""A fitted model in the place of the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from paceline.errors import InvalidInputError
from paceline.scenario import Scenario

if TYPE_CHECKING:
    from paceline.estimators import FitResult


class FitPredictor:
    """Step times that a fitted model predicts of scenarios.

    Parameters
    ----------
    fit
        Of times per step or per sample, whose parameters are columns of a scenario's row
        (`Scenario.to_row`, and ``device_batch``).

    Raises
    ------
    InvalidInputError
        When the model's times are of an epoch, or nobody knows of what.
    """

    def __init__(self, fit: FitResult) -> None:
        if fit.basis.time_per not in ("step", "sample"):
            raise InvalidInputError(
                "A model must have times per step or per sample to plan with, but this one's are "
                f"per {fit.basis.time_per or 'something that it does not say'}. Fit it with "
                "--time-per step."
            )
        self.fit = fit

    def predict(self, scenarios: Sequence[Scenario]) -> NDArray[np.float64]:
        """Return the seconds of a step of every scenario."""
        if not scenarios:
            return np.zeros(0)
        rows = self._rows(scenarios)
        predicted = self.fit.predict(rows)["predicted_s"].to_numpy(dtype=float)
        if self.fit.basis.time_per == "sample":
            return np.asarray(predicted * rows["global_batch"].to_numpy(dtype=float))
        return np.asarray(predicted)

    def outside(self, scenario: Scenario) -> list[str]:
        """Return which parameters of a scenario lie outside of what was measured, in words."""
        X = self.fit.measured.read(self._rows([scenario]))
        far = [name for name, distance in self.fit.outside(X).items() if distance[0] > 0]
        return [
            f"{name} {X[name].iloc[0]} ({self.fit.measured.describe(name)})"
            if name in X
            else f"{name} (levels that were not measured together)"
            for name in far
        ]

    def _rows(self, scenarios: Sequence[Scenario]) -> pd.DataFrame:
        rows = pd.DataFrame([s.to_row() for s in scenarios])
        rows["device_batch"] = rows["global_batch"] / rows["n_devices"]
        return rows
