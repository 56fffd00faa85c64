"""An explanation of a posynomial: the numbers and the sentences, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PosynomialTermReading:
    """What one term is: a name, what it scales with, and its share of the time.

    `mean_share` is over the measured rows and None when unknown.
    """

    name: str
    label: str
    words: str
    mean_share: float | None
    point_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublingReading:
    """What happens at the point when one parameter doubles.

    `elasticity` is the local power of the time; `factor` what the time is multiplied by, and
    `term_factors` what every term is (None where it rises from nothing).
    """

    name: str
    value: float
    elasticity: float
    factor: float
    term_factors: tuple[float | None, ...]
    extrapolates: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReading:
    """How the time goes with a number of devices, from `low` to `high`, beside the ideal."""

    name: str
    low: float
    high: float
    power: float
    ideal: float | None
    verdict: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelFactorsReading:
    """Levels of a categorical parameter at the point, dearest first; 1 is an average one."""

    name: str
    ranked: tuple[tuple[str, float], ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeChange:
    """The value of a parameter at which the largest term becomes another one."""

    name: str
    value: float
    below: str
    above: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DominanceMap:
    """The largest term over two parameters; `terms[i][j]` is its number at y[i], x[j]."""

    x_name: str
    y_name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    terms: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionReading:
    """How much of a prediction is the formula's.

    Errors are mean absolute percentage errors on rows not seen; None when unknown.
    """

    formula_share: float
    formula_error: float | None
    corrected_error: float | None
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PosynomialExplanation:
    """What a posynomial says about a training job.

    Parameters
    ----------
    formula
        The expression with its numbers, on several lines.
    basis
        What the time is of.
    facts
        Errors, rows and settings, as short sentences.
    terms
        One reading per term.
    point, point_s
        The chosen point and the time of the formula there.
    doublings
        One reading per numeric parameter, widest effect first.
    devices
        Verdicts on scaling.
    levels
        One reading per categorical parameter that matters.
    regimes
        Where the largest term changes along one parameter through the point.
    dominance
        The largest term over two parameters; None with one term or without a measured range.
    front
        Expressions that were tried, as `Front.to_dict` gives them; None when unknown.
    correction
        What is added to the formula; None when nothing is.
    warnings
        What not to rely on.
    """

    formula: str
    basis: str
    facts: tuple[str, ...]
    terms: tuple[PosynomialTermReading, ...]
    point: Mapping[str, float | str]
    point_s: float
    doublings: tuple[DoublingReading, ...]
    devices: tuple[DeviceReading, ...]
    levels: tuple[LevelFactorsReading, ...]
    regimes: tuple[RegimeChange, ...]
    dominance: DominanceMap | None
    front: Mapping[str, Any] | None
    correction: CorrectionReading | None
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data."""
        return asdict(self)
