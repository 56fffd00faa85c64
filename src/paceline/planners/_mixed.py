"""Plans for devices of different speed and memory: uneven stages, unequal shares of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.planners._candidates import SPLITS, Candidate, even_cut
from paceline.planners._chain import DeviceKind
from paceline.planners._exact import MAX_KINDS
from paceline.planners._schedule import Timed, time_step
from paceline.planners._stages import chain_of, cut_stages
from paceline.planners._task import Task
from paceline.scenario import Strategy

_MOST_MOVES = 50  # of samples between replicas


@dataclass(frozen=True, slots=True)
class Team:
    """Devices that hold one stage together, as slow and as small as the least of them."""

    devices: tuple[int, ...]
    speed: float
    memory_bytes: float

    @property
    def kind(self) -> tuple[float, float]:
        """Speed and memory."""
        return self.speed, self.memory_bytes


def work_out_mixed(task: Task, strategy: Strategy) -> Candidate:
    """Return a strategy cut, shared out and placed on devices that differ.

    Replicas are either alike, each with the same mixture of devices and uneven stages, or each of
    devices that are as equal as possible, with shares of the samples in proportion to their speed.
    The faster of the two is taken.
    """
    teams = _teams(task, strategy)
    options = [_unlike_replicas(task, strategy, teams)]
    alike = _alike_replicas(task, strategy, teams)
    if alike is not None:
        options.append(alike)
    return min(options, key=lambda c: (not c.fits, c.step_s))


def _teams(task: Task, strategy: Strategy) -> list[Team]:
    """Return the fastest devices in groups that divide a stage, fastest first."""
    n_all = task.cluster.n_devices
    speeds, memories = task.cluster.speeds(n_all), task.cluster.memories(n_all)
    fastest = np.lexsort((np.arange(n_all), -memories, -speeds))[: strategy.n_devices]
    size = int(np.prod([getattr(strategy, name) for name in SPLITS]))
    groups = fastest.reshape(-1, size)
    return [
        Team(tuple(int(d) for d in g), float(speeds[g].min()), float(memories[g].min()))
        for g in groups
    ]


def _alike_replicas(task: Task, strategy: Strategy, teams: Sequence[Team]) -> Candidate | None:
    """Give every replica the same mixture of devices; None when their numbers do not allow it."""
    r, kinds = strategy.data, list(dict.fromkeys(team.kind for team in teams))
    counts = [sum(t.kind == kind for t in teams) for kind in kinds]
    if strategy.pipeline == 1 or len(kinds) == 1 or any(c % r for c in counts):
        return None
    ends, order, gap = _cut_for(task, strategy, kinds, [c // r for c in counts])
    waiting = {kind: [t for t in teams if t.kind == kinds[kind]] for kind in range(len(kinds))}
    rows = [[waiting[kind].pop(0) for kind in order] for _ in range(r)]
    note = _stage_note(task, ends, rows[0]) + gap
    timed = time_step(task, strategy, ends, speeds=[team.speed for team in rows[0]])
    batches = (task.global_batch // r,) * r
    return _candidate(strategy, ends, rows, batches, [timed], (note,))


def _cut_for(
    task: Task, strategy: Strategy, kinds: Sequence[tuple[float, float]], counts: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """Return the cut, the kind of every stage, and what is not certain about it."""
    needed = chain_of(task, strategy)[2]
    devices = [DeviceKind(speed=s, memory_bytes=max(m - needed, 1.0)) for s, m in kinds]
    given = [kind for kind, count in enumerate(counts) for _ in range(count)]
    order = given if len(kinds) > MAX_KINDS or strategy.virtual_stages > 1 else None
    if strategy.virtual_stages > 1:
        order = given * strategy.virtual_stages
        devices = [replace(kind, memory_bytes=float("inf")) for kind in devices]
    try:
        ends, found = cut_stages(task, strategy, devices, counts, order)
    except InfeasibleError:
        return even_cut(task, strategy), tuple(given), ""
    words = "" if not found.gap else f" This cut may be up to {100 * found.gap:.2g} % too slow."
    if len(kinds) > MAX_KINDS:
        words += " Stages are on the fastest devices first: other orders were not tried."
    return ends, found.kinds[: strategy.pipeline], words


def _unlike_replicas(task: Task, strategy: Strategy, teams: Sequence[Team]) -> Candidate:
    """Give every replica devices that are nearly equal, and samples by their speed."""
    r, k = strategy.data, strategy.pipeline
    rows = [list(teams[q * k : (q + 1) * k]) for q in range(r)]
    ends: tuple[int, ...] = (len(task.graph.units),)
    words = ""
    if k > 1:
        kinds = list(dict.fromkeys(team.kind for team in rows[-1]))
        counts = [sum(t.kind == kind for t in rows[-1]) for kind in kinds]
        ends, order, words = _cut_for(task, strategy, kinds, counts)
        rows = [_in_kind_order(row, order) for row in rows]

    def time_of(batch: int, row: Sequence[Team]) -> Timed:
        speeds = [team.speed for team in row]
        return time_step(task, strategy, ends, global_batch=batch * r, speeds=speeds)

    paces = np.array([min(team.speed for team in row) for row in rows])
    batches = share_out(task.global_batch, paces, strategy.micro_batches)
    batches = _levelled(batches, rows, strategy.micro_batches, lambda b, q: time_of(b, rows[q]))
    timed = [time_of(batch, row) for batch, row in zip(batches, rows, strict=True)]
    notes = _share_notes(task, strategy, rows, batches, timed, time_of)
    if k > 1:
        notes += (_stage_note(task, ends, rows[0]) + words,)
    return _candidate(strategy, ends, rows, batches, timed, notes)


def _in_kind_order(row: Sequence[Team], order: Sequence[int]) -> list[Team]:
    """Put a replica's devices in the order of stages: the slowest kind last named is `order`'s."""
    by_speed = sorted(row, key=lambda team: -team.speed)
    rank = np.argsort(np.argsort(order, kind="stable"), kind="stable")
    return [by_speed[i] for i in rank]


def share_out(total: int, paces: NDArray[np.float64], multiple: int = 1) -> tuple[int, ...]:
    """Return whole shares of `total` in proportion to paces, multiples of `multiple`.

    Pieces go one at a time to whoever would be through with one more the soonest, so that the
    slowest is as fast as can be.

    Raises
    ------
    InvalidInputError
        When there are fewer pieces than shares.

    Examples
    --------
    >>> share_out(12, np.array([2.0, 1.0, 1.0]))
    (6, 3, 3)
    """
    pieces = total // multiple
    if total % multiple or pieces < len(paces):
        raise InvalidInputError(
            f"A batch of {total} must be at least one multiple of {multiple} for each of "
            f"{len(paces)} replicas."
        )
    shares = np.maximum(np.floor(pieces * paces / paces.sum()).astype(np.int64), 1)
    while shares.sum() > pieces:
        shares[int(np.argmax(np.where(shares > 1, shares / paces, -1.0)))] -= 1
    while shares.sum() < pieces:
        shares[int(np.argmin((shares + 1) / paces))] += 1
    return tuple(int(s) * multiple for s in shares)


def _levelled(
    batches: tuple[int, ...],
    rows: Sequence[object],
    multiple: int,
    time_of: Callable[[int, int], Timed],
) -> tuple[int, ...]:
    """Move samples from the slowest replica to the fastest while that helps."""
    found = list(batches)
    if len(found) == 1:
        return batches
    for _ in range(_MOST_MOVES):
        times = [time_of(batch, q).step_s for q, batch in enumerate(found)]
        slow, fast = int(np.argmax(times)), int(np.argmin(times))
        if found[slow] <= multiple or slow == fast:
            break
        moved = found.copy()
        moved[slow] -= multiple
        moved[fast] += multiple
        if max(time_of(moved[q], q).step_s for q in (slow, fast)) >= times[slow] * (1 - 1e-9):
            break
        found = moved
    return tuple(found)


def _candidate(
    strategy: Strategy,
    ends: tuple[int, ...],
    rows: Sequence[Sequence[Team]],
    batches: tuple[int, ...],
    timed: Sequence[Timed],
    notes: tuple[str, ...],
) -> Candidate:
    """Return what the slowest replica makes of the step, and what every stage needs at most."""
    slowest = max(timed, key=lambda t: t.step_s)
    needed, limits = [], []
    for stage in range(strategy.pipeline):
        pairs = [
            (float(t.memory_bytes[stage]), row[stage].memory_bytes)
            for t, row in zip(list(timed) * len(rows), rows, strict=False)
        ]
        worst = max(pairs, key=lambda pair: pair[0] / pair[1])
        needed.append(worst[0])
        limits.append(worst[1])
    return Candidate(
        strategy=strategy,
        ends=ends,
        placement=tuple(tuple(d for team in row for d in team.devices) for row in rows),
        replica_batches=batches,
        timed=slowest,
        step_s=slowest.step_s,
        needed=tuple(needed),
        limits=tuple(limits),
        notes=tuple(note for note in notes if note),
    )


def _share_notes(
    task: Task,
    strategy: Strategy,
    rows: Sequence[Sequence[Team]],
    batches: tuple[int, ...],
    timed: Sequence[Timed],
    time_of: Callable[[int, Sequence[Team]], Timed],
) -> tuple[str, ...]:
    if len(set(batches)) == 1:
        return ()
    equal = task.global_batch // strategy.data
    slowest = max(t.step_s for t in timed)
    saved = 1 - slowest / max(time_of(equal, row).step_s for row in rows)
    counts = {b: batches.count(b) for b in sorted(set(batches), reverse=True)}
    words = ", ".join(f"{n} x {b}" if n > 1 else str(b) for b, n in counts.items())
    return (
        f"Replicas take samples by the speed of their devices ({words}): {100 * saved:.2g} % "
        f"less than with equal shares.",
    )


def _stage_note(task: Task, ends: Sequence[int], row: Sequence[Team]) -> str:
    if len({team.speed for team in row}) == 1:
        return ""
    sizes = np.diff([0, *ends])[: len(row)]
    words = ", ".join(
        f"{size} units at speed {team.speed:.3g}" for size, team in zip(sizes, row, strict=False)
    )
    return f"Stages are uneven as the devices are: {words}."
