"""The best cut of a chain, by dynamic programming (REFERENCE 1a).

A step takes the sum of the stages' times and (S - 1) times the longest. For a limit on the longest
the least sum is found exactly; limits are tried upwards from the least possible one until the
limit alone costs more than what was found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.planners._chain import (
    Array,
    Chain,
    DeviceKind,
    Partition,
    check_stages,
    shortage,
)

MAX_KINDS = 3
_MAX_LIMITS = 200  # tried before the gap to the bound is stated instead


def partition_exactly(
    chain: Chain,
    kinds: Sequence[DeviceKind] = (DeviceKind(),),
    counts: Sequence[int] = (1,),
    *,
    order: Sequence[int] | None = None,
) -> Partition:
    """Return the partition of least step time that uses every device.

    Parameters
    ----------
    chain
        What is cut.
    kinds, counts
        Kinds of devices and how many there are of each; at most three kinds.
    order
        Kind of every stage in turn; None: the best order is found too.

    Raises
    ------
    InfeasibleError
        When no cut fits in memory; says by how much.
    """
    if order is not None:
        counts = [list(order).count(kind) for kind in range(len(kinds))]
    elif len(kinds) > MAX_KINDS:
        raise InvalidInputError(
            f"Without an order of devices there may be {MAX_KINDS} kinds, but got {len(kinds)}."
        )
    check_stages(chain, sum(counts))
    search = _Search(chain, kinds, tuple(counts), order)
    return search.best()


class _Search:
    """Least sums of stage times below a limit, over how many devices of each kind are used."""

    def __init__(
        self,
        chain: Chain,
        kinds: Sequence[DeviceKind],
        counts: tuple[int, ...],
        order: Sequence[int] | None,
    ) -> None:
        self.chain, self.kinds, self.counts, self.order = chain, kinds, counts, order
        self.n_stages = sum(counts)
        self._sums: dict[int, Array] = {}
        # states in the order in which devices are used up
        self.states = sorted(itertools.product(*(range(c + 1) for c in counts)), key=sum)

    def best(self) -> Partition:
        """Try limits on the longest stage upwards from the least possible one."""
        least = self._least_limit()
        limits = self.all_limits[self.all_limits >= least * (1 - 1e-12)]
        more = self.chain.micro_batches - 1
        found, bound = None, self._solve(np.inf)[0]
        for tried, limit in enumerate(limits):
            if found is not None and bound + more * limit >= found.step_s:
                return found
            if tried == _MAX_LIMITS and found is not None:
                return _with_gap(found, bound + more * limit)
            candidate = self._partition(float(limit))
            if candidate is not None and (found is None or candidate.step_s < found.step_s):
                found = candidate
        if found is None:
            raise InfeasibleError(shortage(self.chain, self.n_stages, self._largest()))
        return found

    @cached_property
    def tables(self) -> list[Array]:
        """Times of a stage from unit i until before j, by kind; infinite where i >= j."""
        chain, n = self.chain, len(self.chain)
        work = np.concatenate(([0.0], np.cumsum(chain.work_s)))
        hand_over = np.concatenate(([0.0], chain.cut_s[:-1], [0.0]))
        is_stage = np.triu(np.ones((n + 1, n + 1), dtype=bool), 1)
        spans = work[None, :] - work[:, None]
        return [
            np.where(is_stage, spans / kind.speed + hand_over[None, :], np.inf)
            for kind in self.kinds
        ]

    @cached_property
    def all_limits(self) -> Array:
        """Every time that a stage can have, ascending."""
        times = np.concatenate([table[np.isfinite(table)] for table in self.tables])
        return np.unique(times)

    def window(self, stage: int) -> tuple[slice, slice]:
        """Return where a stage may begin and end, so that all others have a unit each."""
        slack = len(self.chain) - self.n_stages
        return slice(stage, stage + slack + 1), slice(stage + 1, stage + slack + 2)

    def allowed(self, stage: int, kind: int) -> Array:
        """Return the times of a stage within its window, infinite where memory is too small."""
        rows, columns = self.window(stage)
        table = self.tables[kind][rows, columns]
        memory = self.kinds[kind].memory_bytes
        if np.isinf(memory):
            return table
        needed = self._needed(self.chain.in_flight(stage, self.n_stages))
        if needed[-1] <= memory:
            return table
        return np.where(needed[None, columns] - needed[rows, None] <= memory, table, np.inf)

    def _needed(self, n_in_flight: int) -> Array:
        """Return sums of memory from the first unit on."""
        if n_in_flight not in self._sums:
            each = self.chain.fixed_bytes + n_in_flight * self.chain.stored_bytes
            self._sums[n_in_flight] = np.concatenate(([0.0], np.cumsum(each)))
        return self._sums[n_in_flight]

    def _steps(self, state: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the kind of the last stage and the state before it."""
        for kind, used in enumerate(state):
            fits_order = self.order is None or self.order[sum(state) - 1] == kind
            if used and fits_order:
                yield kind, tuple(u - (k == kind) for k, u in enumerate(state))

    def _start(self) -> Array:
        """Return that nothing is reached but the begin of the chain."""
        start = np.full(len(self.chain) + 1, np.inf)
        start[0] = 0.0
        return start

    def _least_limit(self) -> float:
        """Return the least time that the longest stage can have."""
        reached = {self.states[0]: self._start()}
        for state in self.states[1:]:
            rows, columns = self.window(sum(state) - 1)
            options = [
                np.maximum(reached[before][rows, None], self.allowed(sum(state) - 1, kind)).min(0)
                for kind, before in self._steps(state)
                if before in reached
            ]
            if options:
                reached[state] = np.full(len(self.chain) + 1, np.inf)
                reached[state][columns] = np.min(options, axis=0)
        return float(reached[self.states[-1]][-1])

    def _solve(self, limit: float) -> tuple[float, dict[tuple[int, ...], Array]]:
        """Return the least sum of stage times below a limit, and all that led to it."""
        sums = {self.states[0]: self._start()}
        for state in self.states[1:]:
            rows, columns = self.window(sum(state) - 1)
            options = []
            for kind, before in self._steps(state):
                if before in sums:
                    table = self.allowed(sum(state) - 1, kind)
                    within = np.where(table <= limit * (1 + 1e-12), table, np.inf)
                    options.append((sums[before][rows, None] + within).min(0))
            if options:
                sums[state] = np.full(len(self.chain) + 1, np.inf)
                sums[state][columns] = np.min(options, axis=0)
        return float(sums[self.states[-1]][-1]), sums

    def _partition(self, limit: float) -> Partition | None:
        total, sums = self._solve(limit)
        if np.isinf(total):
            return None
        state, end = self.states[-1], len(self.chain)
        ends, kinds, times = [end], [], []
        while sum(state):
            first, kind, state = self._last_stage(state, end, sums, limit)
            kinds.append(kind)
            times.append(float(self.tables[kind][first, end]))
            ends.append(first)
            end = first
        step_s = sum(times) + (self.chain.micro_batches - 1) * max(times)
        return Partition(ends=tuple(ends[-2::-1]), kinds=tuple(kinds[::-1]), step_s=step_s)

    def _last_stage(
        self, state: tuple[int, ...], end: int, sums: dict[tuple[int, ...], Array], limit: float
    ) -> tuple[int, int, tuple[int, ...]]:
        """Return where the last stage begins, on which kind, and the state before it."""
        found = []
        rows, columns = self.window(sum(state) - 1)
        for kind, before in self._steps(state):
            if before in sums:
                times = self.allowed(sum(state) - 1, kind)[:, end - columns.start]
                totals = sums[before][rows] + np.where(times <= limit * (1 + 1e-12), times, np.inf)
                at = int(np.argmin(totals))
                found.append((float(totals[at]), rows.start + at, kind, before))
        _, first, kind, before = min(found)
        return first, kind, before

    def _largest(self) -> DeviceKind:
        return max(self.kinds, key=lambda kind: kind.memory_bytes)


def _with_gap(found: Partition, bound: float) -> Partition:
    gap = max(0.0, found.step_s / bound - 1)
    return Partition(ends=found.ends, kinds=found.kinds, step_s=found.step_s, gap=gap)
