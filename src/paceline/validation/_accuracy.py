"""How near predictions are to measurements, and how near any could be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.validation._checks import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One prediction beside its measurement, in the same unit."""

    name: str
    n_devices: int
    predicted: float
    measured: float
    note: str = ""

    @property
    def accuracy(self) -> float:
        """1 - |predicted - measured| / measured."""
        return 1 - abs(self.predicted - self.measured) / self.measured


def mean_accuracy(predictions: Iterable[Prediction]) -> float:
    """Return the mean of their accuracies."""
    return float(np.mean([p.accuracy for p in predictions]))


def monotone_ceiling(times: Sequence[float]) -> float:
    """Return the best mean accuracy of any prediction that never falls from one to the next.

    More devices with the same work each never make a step faster in a model without noise; where
    measurements do, no such model can follow. The best prediction takes measured values only, so
    that trying those, least total error first, is exact.
    """
    measured = np.asarray(times, dtype=float)
    values = np.unique(measured)
    least = np.zeros(len(values))
    for time_s in measured:
        least = np.minimum.accumulate(least) + np.abs(values - time_s) / time_s
    return 1 - float(least.min()) / len(measured)


def check_at_least(name: str, source: str, *, floor: float, got: float, beside: str = "") -> Check:
    """Return a check that an accuracy reaches a floor, with what stands beside it."""
    return Check(
        name=name,
        source=source,
        expected=f"at least {floor:.2%}",
        got=f"{got:.2%}{beside and f' ({beside})'}",
        tolerance=None,
        passed=got >= floor,
        kind="accuracy",
    )


def show_accuracy(name: str, source: str, *, recorded: float, got: float, beside: str) -> Check:
    """Return a check that an accuracy is what is recorded of it, good or not."""
    return Check(
        name=name,
        source=source,
        expected=f"about {recorded:.1%}, as recorded",
        got=f"{got:.1%} ({beside})",
        tolerance=None,
        passed=abs(got - recorded) <= 0.01,
        kind="accuracy",
    )
