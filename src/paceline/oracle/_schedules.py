"""A pipeline simulated pass by pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InvalidInputError
from paceline.oracle._schedules_order import (
    Grid,
    Numbers,
    Order,
    Pass,
    number_order,
    read_order,
    running_order,
)

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class PipelineRun:
    """When every pass of a pipeline ran, in an order in which none comes before what it needs.

    Parameters
    ----------
    n_stages
        Number of devices in a row.
    stage, piece, micro_batch, backward
        What ran where, one entry per pass; pieces count in network order.
    start_s, end_s
        From when until when.
    peak_in_flight
        By stage, the most micro-batches (times pieces) that have gone forward through it and not
        yet backward: what activations are held of.
    """

    n_stages: int
    stage: Ints
    piece: Ints
    micro_batch: Ints
    backward: NDArray[np.bool_]
    start_s: Array
    end_s: Array
    peak_in_flight: Ints

    def __str__(self) -> str:
        return (
            f"{self.n_stages} stages, {self.micro_batch.max() + 1} micro-batches: "
            f"{self.step_s:.4g} s, bubble {self.bubble_share:.1%}"
        )

    @property
    def step_s(self) -> float:
        """Seconds from the start of the first pass to the end of the last."""
        return float(self.end_s.max())

    @property
    def busy_s(self) -> Array:
        """Seconds that every stage computes."""
        busy = np.bincount(self.stage, self.end_s - self.start_s, minlength=self.n_stages)
        return busy.astype(float)

    @property
    def bubble_share(self) -> float:
        """Share of the stages' time in which they wait."""
        whole_s = self.step_s * self.n_stages
        return 1.0 - float(self.busy_s.sum()) / whole_s if whole_s else 0.0

    def passes(self) -> list[tuple[Pass, float, float]]:
        """Return every pass with its start and its end."""
        columns = (self.backward, self.piece, self.micro_batch, self.start_s, self.end_s)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [(Pass(*row[:3]), *row[3:]) for row in rows]


def simulate(
    schedule: str | Order,
    forward_s: ArrayLike,
    backward_s: ArrayLike,
    *,
    n_micro_batches: int | None = None,
    transfer_s: ArrayLike = 0.0,
    backward_transfer_s: ArrayLike | None = None,
    virtual_stages: int = 1,
) -> PipelineRun:
    """Simulate one step of a pipeline, pass by pass.

    A pass starts when its stage is free and its input has come; a transfer starts when its pass
    has ended and the transfer before it on the same link and in the same direction is through
    (REFERENCE 8). Transfers do not slow compute down.

    Parameters
    ----------
    schedule
        A name as `schedule_order` knows it, or an order of your own.
    forward_s, backward_s
        Seconds of a micro-batch in every piece of the network, or of every micro-batch (pieces x
        micro-batches). There are as many pieces as stages times virtual stages.
    n_micro_batches
        Needed where the times are the same for all.
    transfer_s, backward_transfer_s
        Seconds from every piece to the next (latency and bytes), one number, one per edge, or
        edges x micro-batches; backwards the same unless given.
    virtual_stages
        Pieces per stage, for ``interleaved``.

    Examples
    --------
    >>> run = simulate("gpipe", [1.0, 2.0], [2.0, 4.0], n_micro_batches=4)
    >>> run.step_s, run.peak_in_flight.tolist()
    (27.0, [4, 4])
    """
    forward, backward = _times(forward_s, backward_s, n_micro_batches)
    n_pieces, n = forward.shape
    if n_pieces % virtual_stages:
        raise InvalidInputError(
            f"The pieces must be a multiple of `virtual_stages`, but got {n_pieces} and "
            f"{virtual_stages}."
        )
    plan = _resolve(schedule, n_pieces // virtual_stages, n, virtual_stages)
    there = _per_edge(transfer_s, n_pieces - 1, n)
    back = (
        there if backward_transfer_s is None else _per_edge(backward_transfer_s, n_pieces - 1, n)
    )
    return _run(plan, forward, backward, there, back)


class _Plan(NamedTuple):
    """Passes in running order as columns, which is what the loop over them wants."""

    n_stages: int
    pieces: list[int]
    micro_batches: list[int]
    backward: list[bool]
    peaks: Ints


@lru_cache(maxsize=64)
def _named(schedule: str, n_stages: int, n: int, virtual: int) -> _Plan:
    grid = Grid(n_stages * virtual, n)
    return _plan(grid, number_order(schedule, n_stages, n, virtual))


def _plan(grid: Grid, numbers: Numbers) -> _Plan:
    row, micro_batch = np.divmod(np.array(running_order(grid, numbers)), grid.n)
    held = (np.where(np.array(x) < grid.n_pieces * grid.n, 1, -1) for x in numbers)
    return _Plan(
        n_stages=len(numbers),
        pieces=(row % grid.n_pieces).tolist(),
        micro_batches=micro_batch.tolist(),
        backward=(row >= grid.n_pieces).tolist(),
        peaks=np.array([int(np.cumsum(h).max(initial=0)) for h in held], dtype=np.int64),
    )


def _resolve(schedule: str | Order, n_stages: int, n: int, virtual: int) -> _Plan:
    if isinstance(schedule, str):
        return _named(schedule, n_stages, n, virtual)
    if len(schedule) != n_stages:
        raise InvalidInputError(
            f"The order must have {n_stages} stages, as the times do, but got {len(schedule)}."
        )
    return _plan(*read_order(schedule, n))


def _times(forward_s: ArrayLike, backward_s: ArrayLike, n: int | None) -> tuple[Array, Array]:
    columns = [np.asarray(t, dtype=float) for t in (forward_s, backward_s)]
    columns = [t[:, None] if t.ndim == 1 else t for t in columns]
    width = max(n or 1, *(t.shape[1] for t in columns))
    try:
        forward, backward = (np.broadcast_to(t, (t.shape[0], width)) for t in columns)
    except ValueError:
        forward = backward = np.empty((0, 0))
    if (
        not forward.size
        or forward.shape != backward.shape
        or min(forward.min(), backward.min()) < 0
    ):
        raise InvalidInputError(
            "`forward_s` and `backward_s` must have a time, not negative, for every piece and "
            f"micro-batch alike, but got shapes {np.shape(forward_s)} and {np.shape(backward_s)} "
            f"for {n or 'their'} micro-batches."
        )
    return forward, backward


def _per_edge(transfer_s: ArrayLike, n_edges: int, n: int) -> Array:
    given = np.asarray(transfer_s, dtype=float)
    try:
        return np.broadcast_to(given[:, None] if given.ndim == 1 else given, (n_edges, n))
    except ValueError as error:
        raise InvalidInputError(
            f"Transfer times must be one number, one for each of {n_edges} edges, or edges x "
            f"micro-batches, but got shape {given.shape}."
        ) from error


def _run(plan: _Plan, forward: Array, backward: Array, there: Array, back: Array) -> PipelineRun:
    starts, ends = _clock(plan, forward, backward, there, back)
    pieces = np.array(plan.pieces)
    return PipelineRun(
        n_stages=plan.n_stages,
        stage=pieces % plan.n_stages,
        piece=pieces,
        micro_batch=np.array(plan.micro_batches),
        backward=np.array(plan.backward),
        start_s=np.array(starts),
        end_s=np.array(ends),
        peak_in_flight=plan.peaks,
    )


def _clock(
    plan: _Plan, forward: Array, backward: Array, there: Array, back: Array
) -> tuple[list[float], list[float]]:
    """Return when every pass starts and ends."""
    n_pieces, n_stages = len(forward), plan.n_stages
    # lists of floats: this loop is all of the cost, and NumPy's scalars would triple it
    took = (forward.tolist(), backward.tolist())
    moved = ([*there.tolist(), []], [[], *back.tolist()])
    came = [[[0.0] * forward.shape[1] for _ in range(n_pieces)] for _ in range(2)]
    link_free = [[0.0] * n_pieces for _ in range(2)]
    free = [0.0] * n_stages
    starts, ends = [], []
    for piece, micro, direction in zip(
        plan.pieces, plan.micro_batches, plan.backward, strict=True
    ):
        stage = piece % n_stages
        start = max(free[stage], came[direction][piece][micro])
        end = start + took[direction][piece][micro]
        free[stage] = end
        starts.append(start)
        ends.append(end)
        target = piece - 1 if direction else piece + 1
        if 0 <= target < n_pieces:
            links = link_free[direction]
            links[piece] = max(end, links[piece]) + moved[direction][piece][micro]
            came[direction][target][micro] = links[piece]
        elif not direction:
            came[True][piece][micro] = end  # the last piece turns round
    return starts, ends
