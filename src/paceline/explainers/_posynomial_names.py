"""Names for the terms of a posynomial, from what they scale with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from paceline.dataset import TimeBasis, counts_what
from paceline.estimators import PosynomialExpression, PosynomialTerm
from paceline.explainers._words import NEGLIGIBLE, listed, powers_in_words

_LINEAR = 0.75  # powers from here on count as proportional
_FASTER = 1.35  # powers from here on are more than proportional
_FLAT = 0.3  # powers up to here count as flat
_SOME = 0.1  # powers of device counts from here on are worth a word
_FEW_DEVICES = 4  # from more on 1 - 1/n is nearly 1
_COLLECTIVE = {
    "per-sample work": "collective communication per sample",
    "per-step overhead": "collective communication per step",
    "overhead per micro-batch": "collective communication per micro-batch",
    "work that grows slower than the batch": "communication that grows slower than the batch",
    "work that grows faster than the batch": "communication that grows faster than the batch",
}
_STRONG = 0.5  # powers of other parameters that make an overhead a work


def name_terms(
    expression: PosynomialExpression, basis: TimeBasis, ranges: Mapping[str, tuple[float, float]]
) -> tuple[str, ...]:
    """Return a different name for every term.

    Parameters
    ----------
    expression
        The posynomial.
    basis
        What the time is of.
    ranges
        Smallest and largest measured value of every numeric parameter; may be empty.
    """
    shift = _batch_shift(expression, basis)
    names = [_name(expression, term, shift, ranges) for term in expression.terms]
    same = [names.count(name) > 1 for name in names]
    for k, term in enumerate(expression.terms):
        driver = _driver(term, ranges)
        if driver and (same[k] or not _batches(expression.stand_ins)):
            names[k] = _name(expression, term, shift, ranges, driver)
    return tuple(
        f"{name}, part {names[: k + 1].count(name)}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    )


def term_in_words(term: PosynomialTerm) -> str:
    """Return what a term grows and falls with.

    Examples
    --------
    >>> term_in_words(PosynomialTerm(coefficient_s=1.0, powers={"batch": 1.0, "stride": -2.0}))
    'grows in proportion to batch; falls with the square of stride'
    """
    sentences = [powers_in_words(term.powers)]
    if term.collective:
        sentences.append(f"nothing at {term.collective} = 1")
    nearly = "nearly " if any(term.powers.values()) else ""
    return "; ".join(filter(None, sentences)) or f"{nearly}the same whatever the numbers are"


def _name(
    expression: PosynomialExpression,
    term: PosynomialTerm,
    shift: float,
    ranges: Mapping[str, tuple[float, float]],
    driver: str | None = None,
) -> str:
    """Return a name; with a driver also how the term goes with that parameter."""
    work = _batch_word(expression, term, shift)
    if _is_communication(term, ranges):
        work = _COLLECTIVE.get(work, f"collective communication, {work}".removesuffix(", "))
    changes = _change_words(term, driver)
    if not work and (driver or not changes):
        work = _other_word(term)
    return ", ".join(part for part in (work, changes) if part)


def _is_communication(term: PosynomialTerm, ranges: Mapping[str, tuple[float, float]]) -> bool:
    """Return whether 1 - 1/n makes a difference where the term was measured."""
    if term.collective is None:
        return False
    least = ranges.get(term.collective, (1.0, 1.0))[0]
    return least <= _FEW_DEVICES


def _batch_shift(expression: PosynomialExpression, basis: TimeBasis) -> float:
    """Return 1 when the time is of an epoch or a sample, so that a step costs batch^-1."""
    if basis.time_per is not None:
        return 0.0 if basis.time_per == "step" else 1.0
    # a time that falls with the batch cannot be a step's, one that grows with it more must be
    powers = [_batch_power(term) for term in expression.terms]
    return 1.0 if min(powers) <= -_STRONG and max(powers) < -min(powers) else 0.0


def _batches(names: Iterable[str]) -> list[str]:
    return [name for name in names if counts_what(name) == "batch"]


def _batch_power(term: PosynomialTerm) -> float:
    return sum(term.powers[name] for name in _batches(term.powers))


def _batch_word(expression: PosynomialExpression, term: PosynomialTerm, shift: float) -> str:
    if not _batches(expression.stand_ins):
        return ""
    power = _batch_power(term) + shift
    if power >= _FASTER:
        return "work that grows faster than the batch"
    if power >= _LINEAR:
        return "per-sample work"
    if power > _FLAT:
        return "work that grows slower than the batch"
    accumulation = [n for n in term.powers if counts_what(n) == "accumulation"]
    if any(term.powers[name] >= _LINEAR for name in accumulation):
        return "overhead per micro-batch"
    drivers = [n for n, p in term.powers.items() if counts_what(n) is None and p >= _STRONG]
    return f"per-step work on {listed(drivers[:2])}" if drivers else "per-step overhead"


def _change_words(term: PosynomialTerm, driver: str | None) -> str:
    """Return which counts of devices, and which other driver, a term grows and shrinks with."""
    told = {n: p for n, p in term.powers.items() if counts_what(n) in ("devices", "degree")}
    rising = [name for name, power in told.items() if power >= _SOME]
    falling = [n for n, power in told.items() if power <= -_SOME and not term.collective]
    if driver:
        (rising if term.powers[driver] > 0 else falling).append(driver)
    parts = [f"grows with {listed(rising)}"] if rising else []
    parts += [f"shrinks with {listed(falling)}"] if falling else []
    return ", ".join(parts)


def _other_word(term: PosynomialTerm) -> str:
    if not any(abs(power) >= NEGLIGIBLE for power in term.powers.values()):
        return "fixed cost"
    return "work"


def _driver(term: PosynomialTerm, ranges: Mapping[str, tuple[float, float]]) -> str | None:
    """Return the parameter, no count of devices or batch, that moves the term most."""
    moves = {
        name: abs(power) * _span(ranges.get(name))
        for name, power in term.powers.items()
        if counts_what(name) is None and abs(power) >= NEGLIGIBLE
    }
    return max(moves, key=moves.__getitem__) if moves else None


def _span(limits: tuple[float, float] | None) -> float:
    """Return the logarithm of largest over smallest, 1 when it is not known."""
    return 1.0 if limits is None or limits[0] <= 0 else math.log(limits[1] / limits[0])
