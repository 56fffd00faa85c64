"""Trials of a space that a workload can build, drawn by rejection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.space import Space, Trial
from paceline.workloads._base import Workload

# At a buildable share of 1 % so many failures in a row happen once in 10^8 studies.
_MAX_REJECTED_IN_A_ROW = 2000


def sample_buildable(
    workload: Workload,
    space: Space,
    n: int | None = None,
    *,
    design: str = "random",
    random_state: int = 0,
) -> tuple[list[Trial], int]:
    """Draw trials until `n` of them can be built.

    Parameters
    ----------
    workload
        Whose network the trials describe.
    space
        Its intrinsic parameters must be the workload's; what a trial says of the run itself
        (`executor`, `n_devices` …) is left alone.
    n
        How many; None means all buildable ones, for the design ``grid`` only.
    design
        As of `Space.sample`. ``random`` and ``latin`` draw further rounds until there are
        enough; ``grid`` visits each combination at most once, so it may return fewer than `n`.
    random_state
        Same seed, same trials; the first round is that of `Space.sample`.

    Returns
    -------
    trials, n_rejected
        The buildable trials, and how many were drawn between them that were not.

    Raises
    ------
    InfeasibleError
        When nothing, or next to nothing, of the space can be built; says why.
    UnknownNameError
        When the workload does not know an intrinsic parameter of the space.

    Examples
    --------
    >>> from paceline.space import load_space
    >>> from paceline.workloads import load_workload
    >>> trials, n_rejected = sample_buildable(load_workload("lenet5"), load_space("table_4_1"), 3)
    >>> len(trials)
    3
    """
    _check(workload, space, n, design)
    if design == "grid":
        trials, reasons = _from_grid(workload, space, n, random_state)
    else:
        draws = _rounds(space, n or 1, design, random_state)
        trials, reasons = _accept(workload, draws, n, _MAX_REJECTED_IN_A_ROW)
    if not trials or (len(trials) < (n or 1) and design != "grid"):
        raise _hopeless(workload, space, reasons)
    return trials, reasons.total()


def _check(workload: Workload, space: Space, n: int | None, design: str) -> None:
    space.sample(1, design=design)  # refuses an unknown design
    everything = n is None and design == "grid"
    if not everything and (isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1):
        raise InvalidInputError(f"`n` must be a positive whole number, but got {n!r}.")
    for name in space.intrinsic:
        for value in space[name].values:
            workload.complete({name: value})


def _rounds(space: Space, n: int, design: str, random_state: int) -> Iterator[Trial]:
    """Draw for ever, one design of `n` trials after another."""
    yield from space.sample(n, design=design, random_state=random_state)
    seeds = np.random.default_rng(random_state)
    while True:
        seed = int(seeds.integers(2**62))
        yield from space.sample(n, design=design, random_state=seed)


def _from_grid(
    workload: Workload, space: Space, n: int | None, random_state: int
) -> tuple[list[Trial], Counter[str]]:
    """Accept from ever larger parts of the grid, each beginning with the one before."""
    size = space.n_combinations
    n_drawn = size if n is None else n
    while n_drawn < size:
        draws = space.sample(n_drawn, design="grid", random_state=random_state)
        trials, reasons = _accept(workload, draws, n, size)
        hopeless = not trials and reasons.total() >= _MAX_REJECTED_IN_A_ROW
        if len(trials) == n or hopeless:
            return trials, reasons
        # only the whole grid has another order: it comes last, when all of it is needed
        n_drawn = size if n_drawn == size - 1 else min(2 * n_drawn, size - 1)
    return _accept(workload, space.sample(None, design="grid"), n, size)


def _accept(
    workload: Workload, draws: Iterable[Trial], n: int | None, max_in_a_row: int
) -> tuple[list[Trial], Counter[str]]:
    """Return at most `n` buildable trials, and the reasons of those rejected before the last."""
    trials: list[Trial] = []
    reasons: Counter[str] = Counter()
    in_a_row = 0
    for trial in draws:
        reason = workload.infeasible(trial)
        if reason:
            reasons[reason] += 1
            in_a_row += 1
        else:
            trials.append(trial)
            in_a_row = 0
        if len(trials) == n or in_a_row >= max_in_a_row:
            break
    return trials, reasons


def _hopeless(workload: Workload, space: Space, reasons: Counter[str]) -> InfeasibleError:
    ((reason, _),) = reasons.most_common(1)
    return InfeasibleError(
        f"Trials of {space.name!r} must be buildable as {workload.name!r}, but {reasons.total()} "
        f"were not, most often for this reason: {reason} Change the values of the space."
    )
