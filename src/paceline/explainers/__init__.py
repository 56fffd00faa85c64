"""What a fitted expression says, in words and numbers."""

from paceline.explainers._explain import explain
from paceline.explainers._explanation import (
    Explanation,
    LevelsReading,
    ScalingReading,
    TermReading,
)
from paceline.explainers._imbalance import ImbalanceReading, LastingExcess, read_imbalance
from paceline.explainers._phases import PhaseExplanation, explain_phases

__all__ = [
    "Explanation",
    "ImbalanceReading",
    "LastingExcess",
    "LevelsReading",
    "PhaseExplanation",
    "ScalingReading",
    "TermReading",
    "explain",
    "explain_phases",
    "read_imbalance",
]
