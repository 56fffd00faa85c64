"""What a fitted expression says, in words and numbers."""

from paceline.explainers._explain import explain
from paceline.explainers._explanation import (
    Explanation,
    LevelsReading,
    ScalingReading,
    TermReading,
)

__all__ = ["Explanation", "LevelsReading", "ScalingReading", "TermReading", "explain"]
