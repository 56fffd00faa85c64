"""What a fitted expression says, in words and numbers."""

from paceline.explainers._explain import explain
from paceline.explainers._explanation import (
    Explanation,
    LevelsReading,
    ScalingReading,
    TermReading,
)
from paceline.explainers._imbalance import ImbalanceReading, LastingExcess, read_imbalance

__all__ = [
    "Explanation",
    "ImbalanceReading",
    "LastingExcess",
    "LevelsReading",
    "ScalingReading",
    "TermReading",
    "explain",
    "read_imbalance",
]
