"""From raw step times to one measured trial: steady state, agreement of lives, disturbance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.measurement._rules import Protocol

# a leading step this much above the median of the rest still warms up
_EXCESS = 0.25
# at least this share of the steps is kept: a run that never settles is noise, not warm-up
_KEPT_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the lives of a trial measured together.

    Parameters
    ----------
    times_s
        Times of the steady steps of all lives, in seconds.
    medians_s
        Median of each life.
    disturbed
        Why the trial should be measured again; empty when it need not be.
    """

    times_s: tuple[float, ...]
    medians_s: tuple[float, ...]
    disturbed: str = ""

    @property
    def median_s(self) -> float:
        """Median of all steady steps."""
        return statistics.median(self.times_s)

    @property
    def minimum_s(self) -> float:
        """Shortest steady step."""
        return min(self.times_s)

    @property
    def disagreement(self) -> float:
        """How far the slowest life is above the fastest, as a share."""
        return max(self.medians_s) / min(self.medians_s) - 1


def steady_steps(step_s: Sequence[float]) -> tuple[float, ...]:
    """Return the steps after the last warm-up, at least half of them.

    A leading step is warm-up while it is more than a quarter above the median of those that
    follow it.

    Examples
    --------
    >>> steady_steps([9.0, 2.0, 1.0, 1.1, 0.9, 1.0])
    (1.0, 1.1, 0.9, 1.0)
    """
    most = len(step_s) - max(1, math.ceil(_KEPT_SHARE * len(step_s)))
    start = 0
    while start < most and step_s[start] > (1 + _EXCESS) * statistics.median(step_s[start + 1 :]):
        start += 1
    return tuple(step_s[start:])


def pace(step_s: Sequence[float], *, shares_cores: bool) -> float:
    """Return what a step takes in one life of its processes.

    What disturbs a step lengthens it, so that the least time tells most. Workers without a core
    of their own, though, do single steps faster than they can go on: there it is the median.

    Examples
    --------
    >>> steps = [3.0, 1.0, 3.1, 2.9]
    >>> pace(steps, shares_cores=False), pace(steps, shares_cores=True)
    (1.0, 2.95)
    """
    return float(statistics.median(step_s) if shares_cores else min(step_s))


def combine_lives(
    protocol: Protocol, lives: Sequence[Sequence[float]], loads: Sequence[float] = ()
) -> Measured:
    """Return what the lives of a trial measured together.

    Parameters
    ----------
    protocol
        Gives the thresholds of a disturbance. When it counts epochs every step is kept, since
        the first epoch was the warm-up.
    lives
        Step times of each life.
    loads
        Load of the machine before each life, where it is known.
    """
    steady = [tuple(life) if protocol.epochs else steady_steps(life) for life in lives]
    measured = Measured(
        times_s=tuple(time_s for life in steady for time_s in life),
        medians_s=tuple(statistics.median(life) for life in steady),
    )
    reason = _disturbance(protocol, measured, loads)
    return Measured(times_s=measured.times_s, medians_s=measured.medians_s, disturbed=reason)


def load_before(machine: Mapping[str, object]) -> float | None:
    """Return the load average of the last minute before a run, where it was recorded."""
    loads = machine.get("load_before")
    return float(loads[0]) if isinstance(loads, list | tuple) and loads else None


def _disturbance(protocol: Protocol, measured: Measured, loads: Sequence[float]) -> str:
    if measured.disagreement > protocol.disagreement:
        return f"the lives differ by {measured.disagreement:.0%}"
    jump = max(loads) - min(loads) if loads else 0.0
    if jump > protocol.load_jump:
        return f"the load changed by {jump:.1f}"
    return ""
