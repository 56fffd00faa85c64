"""What a source of step times is, and which steps are of the steady state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol

MAX_STEPS = 1_000_000  # later steps are not kept: memory stays bounded whatever is printed
UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
_BLOCK = 5

Source = Literal["pattern", "jsonl", "hooks"]


class StepReader(Protocol):
    """Collects the step times of one run."""

    def environment(self, base: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables of the command: the given ones and what the reader needs."""

    def take(self, lines: Sequence[str]) -> None:
        """Look at some lines of the output."""

    def n_seen(self) -> int:
        """Return how many steps have been seen so far."""

    def times(self) -> Mapping[int, Sequence[float]]:
        """Return the seconds of all steps by rank, once the command has ended."""

    def nothing(self) -> str:
        """Return why there is no step, in one sentence that begins with what was expected."""

    def close(self) -> None:
        """Remove what was made for this run."""


class Steps(Protocol):
    """A source of step times."""

    @property
    def source(self) -> Source:
        """Name of the source."""

    def open(self, values: Mapping[str, Any], folder: Path) -> StepReader:
        """Return a reader for one run of a command in a folder."""


def steady(times: Sequence[float], n_warmup: int) -> tuple[float, ...]:
    """Return the steps after warm-up, from where they are steady.

    The first `n_warmup` are dropped. Of the rest, m is the median of the later half and s its
    median absolute deviation (times 1.4826: a standard deviation for normal noise). Blocks of
    five steps are dropped from the front while a block's median lies outside
    m ± max(3 s, 0.05 m), at most half of the steps. Fewer than 20 steps are left as they are:
    too few to tell a trend from noise. Slow steps later on are kept: they are part of the pace.

    Parameters
    ----------
    times
        Seconds of consecutive steps.
    n_warmup
        Steps to drop in any case.

    Examples
    --------
    >>> steady([9.0, 2.0] + [1.0] * 5, n_warmup=2)
    (1.0, 1.0, 1.0, 1.0, 1.0)
    """
    kept = tuple(times[n_warmup:])
    later = kept[len(kept) // 2 :]
    if len(kept) < 4 * _BLOCK:
        return kept
    middle = median(later)
    spread = 1.4826 * median(abs(t - middle) for t in later)
    allowed = max(3 * spread, 0.05 * middle)
    first = 0
    while first + _BLOCK <= len(kept) // 2:
        if abs(median(kept[first : first + _BLOCK]) - middle) <= allowed:
            break
        first += _BLOCK
    return kept[first:]
