"""One check: what was expected, what was got, and whether that will do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from paceline.units import format_number

CheckKind = Literal["arithmetic", "reading", "contradiction", "recovery", "accuracy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The outcome of one check.

    Parameters
    ----------
    name
        What was checked.
    source
        The table or the text that `expected` comes from.
    expected, got
        Numbers, or words where the publication has words.
    tolerance
        How far the numbers may be apart; None for words.
    passed
        Whether it will do. A contradiction passes when the figures disagree as recorded.
    kind
        ``arithmetic`` (figures against figures), ``reading`` (an explanation against the
        text), ``contradiction`` (a disagreement that is known), ``recovery`` (a fit against
        planted constants) or ``accuracy`` (predictions against measured runs).
    """

    name: str
    source: str
    expected: float | str
    got: float | str
    tolerance: float | None
    passed: bool
    kind: CheckKind

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        within = "" if self.tolerance is None else f" within {format_number(self.tolerance)}"
        return (
            f"{verdict}: {self.name} ({self.source}): "
            f"expected {_shown(self.expected)}{within}, got {_shown(self.got)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain data."""
        return asdict(self)


def check_number(
    name: str, source: str, *, expected: float, got: float, tolerance: float, kind: CheckKind
) -> Check:
    """Return a check that two numbers are no further apart than `tolerance`."""
    return Check(
        name=name,
        source=source,
        expected=float(expected),
        got=float(got),
        tolerance=float(tolerance),
        # the slack of a float, so that one unit in the last digit is within one unit
        passed=bool(abs(got - expected) <= tolerance * (1 + 1e-9)),
        kind=kind,
    )


def check_words(
    name: str, source: str, *, allowed: tuple[str, ...], got: str, kind: CheckKind
) -> Check:
    """Return a check that `got` is one of the allowed texts."""
    return Check(
        name=name,
        source=source,
        expected=" or ".join(allowed),
        got=got,
        tolerance=None,
        passed=got in allowed,
        kind=kind,
    )


def cite(table: str) -> str:
    """Return how a table is cited.

    Examples
    --------
    >>> cite("4.3"), cite("SSCI II")
    ('thesis table 4.3', 'SSCI table II')
    """
    document, _, number = table.rpartition(" ")
    return f"{document or 'thesis'} table {number}"


def _shown(value: float | str) -> str:
    return repr(value) if isinstance(value, str) else format_number(value, 6)
