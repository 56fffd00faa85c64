"""How far a campaign is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a campaign is, after each run.

    Parameters
    ----------
    done, total
        Finished trials, and all planned ones, repeats for the noise floor included.
    failed
        Those of the finished ones that failed.
    n_infeasible
        Trials that were drawn, could not be built, and were replaced.
    runs_done, runs_total
        The same in runs: every trial is run in at least two process lives.
    rate_per_s
        Runs per second of this campaign so far; 0 before the first.
    noise
        Median, over the finished trials, of how much their lives differ; None before the first.
    last
        What the last run was, in words.
    """

    done: int
    total: int
    failed: int = 0
    n_infeasible: int = 0
    runs_done: int = 0
    runs_total: int = 0
    rate_per_s: float = 0.0
    noise: float | None = None
    last: str = ""

    @property
    def remaining_s(self) -> float | None:
        """Seconds to go at this rate; None while it is unknown."""
        if not self.rate_per_s:
            return None
        return (self.runs_total - self.runs_done) / self.rate_per_s

    @property
    def estimated_end(self) -> datetime | None:
        """When it will be finished at this rate, in local time."""
        remaining_s = self.remaining_s
        if remaining_s is None:
            return None
        return datetime.now().astimezone() + timedelta(seconds=remaining_s)

    def __str__(self) -> str:
        noise = "" if self.noise is None else f", noise {self.noise:.1%}"
        return f"{self.done} of {self.total} trials, {self.failed} failed{noise}"


ProgressCallback = Callable[[Progress], None]
