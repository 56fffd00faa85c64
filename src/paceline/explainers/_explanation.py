"""An explanation: the numbers and the sentences, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TermReading:
    """What one intrinsic numeric parameter does to the time.

    `low` and `high` bound the power with 90 % confidence, None when not studied.
    """

    name: str
    coefficient_s: float
    power: float
    words: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingReading:
    """What one extrinsic parameter does to the time, and the verdict against the ideal."""

    name: str
    power: float
    words: str
    ideal: float | None = None
    verdict: str | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelsReading:
    """Levels of one categorical parameter, the dearest first, with what each costs.

    Costs are seconds above the cheapest level of the same parameter, before scaling; levels
    of different parameters must not be ranked against each other.
    """

    name: str
    ranked: tuple[tuple[str, float], ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What an expression says about a training job.

    Parameters
    ----------
    formula
        The expression with its numbers, on several lines.
    basis
        What the time is of.
    terms, scaling, levels
        One reading per parameter.
    floor_s
        The constant C.
    floor_words
        The same in a sentence.
    shares
        Mean share of the time of every summand over the measured rows; empty when unknown.
    point
        The chosen point.
    point_s, point_shares
        The predicted time there, and what share each summand has of it.
    warnings
        What not to rely on.
    facts
        Errors, rows and settings, as short sentences.
    """

    formula: str
    basis: str
    terms: tuple[TermReading, ...]
    scaling: tuple[ScalingReading, ...]
    levels: tuple[LevelsReading, ...]
    floor_s: float
    floor_words: str
    shares: Mapping[str, float]
    point: Mapping[str, float | str]
    point_s: float | None
    point_shares: Mapping[str, float]
    warnings: tuple[str, ...]
    facts: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return asdict(self)
