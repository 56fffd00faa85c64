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
from paceline.explainers._posynomial_explanation import (
    CorrectionReading,
    DeviceReading,
    DominanceMap,
    DoublingReading,
    LevelFactorsReading,
    PosynomialExplanation,
    PosynomialTermReading,
    RegimeChange,
)
from paceline.explainers._posynomial_formula import write_posynomial, zero_sentences

__all__ = [
    "CorrectionReading",
    "DeviceReading",
    "DominanceMap",
    "DoublingReading",
    "Explanation",
    "ImbalanceReading",
    "LastingExcess",
    "LevelFactorsReading",
    "LevelsReading",
    "PhaseExplanation",
    "PosynomialExplanation",
    "PosynomialTermReading",
    "RegimeChange",
    "ScalingReading",
    "TermReading",
    "explain",
    "explain_phases",
    "read_imbalance",
    "write_posynomial",
    "zero_sentences",
]
