"""In which order every stage of a pipeline runs its passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from paceline.errors import InvalidInputError, UnknownNameError


class Pass(NamedTuple):
    """One micro-batch going forward or backward through one piece of the network.

    `piece` counts pieces in network order; piece c lies on stage c modulo the number of stages,
    so that without virtual stages it is the stage.
    """

    backward: bool
    piece: int
    micro_batch: int

    def __str__(self) -> str:
        word = "backward" if self.backward else "forward"
        return f"{word} of micro-batch {self.micro_batch} through piece {self.piece}"


class Grid(NamedTuple):
    """How many pieces and micro-batches there are; numbers every pass.

    Forward passes come first, by piece and micro-batch. Numbers, since a pipeline of 64 stages
    and 256 micro-batches has 32768 passes.
    """

    n_pieces: int
    n: int

    def forward(self, piece: int, micro_batch: int = 0) -> int:
        """Return the number of a forward pass."""
        return piece * self.n + micro_batch

    def backward(self, piece: int, micro_batch: int = 0) -> int:
        """Return the number of a backward pass."""
        return (self.n_pieces + piece) * self.n + micro_batch

    def read(self, number: int) -> Pass:
        """Return the pass of a number."""
        row, micro_batch = divmod(number, self.n)
        return Pass(row >= self.n_pieces, row % self.n_pieces, micro_batch)

    def needed(self, number: int) -> int:
        """Return the pass elsewhere whose result this one needs; negative for none."""
        half = self.n_pieces * self.n
        if number < half:
            return number - self.n  # the piece before
        return number + self.n if number < 2 * half - self.n else number - half


Order = tuple[tuple[Pass, ...], ...]
Numbers = list[list[int]]


def schedule_order(
    schedule: str, n_stages: int, n_micro_batches: int, virtual_stages: int = 1
) -> Order:
    """Return the passes of every stage in the order in which it runs them.

    Parameters
    ----------
    schedule
        ``gpipe`` (all forward, then all backward, last first), ``1f1b`` (PipeDream-flush),
        ``interleaved`` (Megatron-LM's, several pieces of the network per stage), ``sequential``
        (one micro-batch after the other, one stage at a time) or ``unlocked`` (FDG: micro-batches
        are steps, and the gradient of module k is 2(K-1-k) steps old).
    n_stages, n_micro_batches, virtual_stages
        How many stages, micro-batches, and pieces of the network per stage.

    Raises
    ------
    InvalidInputError
        When ``interleaved`` is asked for with micro-batches that are no multiple of the stages,
        or another schedule with virtual stages.

    Examples
    --------
    >>> order = schedule_order("1f1b", n_stages=2, n_micro_batches=3)
    >>> [("B" if p.backward else "F") + str(p.micro_batch) for p in order[0]]
    ['F0', 'F1', 'B0', 'F2', 'B1', 'B2']
    """
    grid = Grid(n_stages * virtual_stages, n_micro_batches)
    numbers = number_order(schedule, n_stages, n_micro_batches, virtual_stages)
    return tuple(tuple(grid.read(x) for x in passes) for passes in numbers)


def number_order(schedule: str, n_stages: int, n: int, virtual: int) -> Numbers:
    """Return what `schedule_order` does, as numbers of a `Grid`."""
    if schedule not in SCHEDULE_ORDERS:
        raise UnknownNameError("schedule", schedule, SCHEDULE_ORDERS)
    if min(n_stages, n, virtual) < 1:
        raise InvalidInputError(
            "`n_stages`, `n_micro_batches` and `virtual_stages` must be positive, but got "
            f"{n_stages}, {n} and {virtual}."
        )
    if schedule != "interleaved" and virtual != 1:
        raise InvalidInputError(
            f"Only `interleaved` has virtual stages, but got {virtual} for {schedule!r}."
        )
    return SCHEDULE_ORDERS[schedule](Grid(n_stages * virtual, n), n_stages)


def _gpipe(grid: Grid, n_stages: int) -> Numbers:
    forward, backward = _rows(grid)
    return [forward[s] + backward[s][::-1] for s in range(n_stages)]


def _one_forward_one_backward(grid: Grid, n_stages: int) -> Numbers:
    forward, backward = _rows(grid)
    return [_alternate(forward[s], backward[s], n_stages - s - 1) for s in range(n_stages)]


def _sequential(grid: Grid, n_stages: int) -> Numbers:
    forward, backward = _rows(grid)
    return [_alternate(forward[s], backward[s], 0) for s in range(n_stages)]


def _unlocked(grid: Grid, n_stages: int) -> Numbers:
    """Give every module one backward and one forward pass per step (FDG.py, REFERENCE 2).

    Module k runs forward on batch t-k and backward on batch t-2(K-1)+k: its gradient is
    2(K-1-k) steps old. Within a step the last one's loss needs its forward pass first; the
    others begin with the oldest stored graph, and so have run one forward pass fewer by then.
    """
    forward, backward = _rows(grid)
    delays = [max(2 * (n_stages - 1 - k) - 1, 0) for k in range(n_stages)]
    return [_alternate(forward[k], backward[k], delays[k]) for k in range(n_stages)]


def _interleaved(grid: Grid, n_stages: int) -> Numbers:
    """Let groups of `n_stages` micro-batches visit the pieces of a stage in turn (Megatron-LM)."""
    n, virtual = grid.n, grid.n_pieces // n_stages
    if virtual > 1 and n % n_stages:
        raise InvalidInputError(
            "`n_micro_batches` must be a multiple of `n_stages` for `interleaved`, but got "
            f"{n} and {n_stages}."
        )
    turns = [
        (v, micro_batch)
        for group in range(0, n, n_stages)
        for v in range(virtual)
        for micro_batch in range(group, min(group + n_stages, n))
    ]
    gap = 1 if virtual == 1 else 2
    return [
        _alternate(
            [grid.forward(v * n_stages + s, m) for v, m in turns],
            [grid.backward((virtual - 1 - v) * n_stages + s, m) for v, m in turns],
            (n_stages - s - 1) * gap + (virtual - 1) * n_stages,
        )
        for s in range(n_stages)
    ]


def _rows(grid: Grid) -> tuple[Numbers, Numbers]:
    """Return the passes of every piece forward and backward, by micro-batch."""
    starts = (grid.forward, grid.backward)
    forward, backward = (
        [list(range(start(c), start(c) + grid.n)) for c in range(grid.n_pieces)]
        for start in starts
    )
    return forward, backward


def _alternate(forward: list[int], backward: list[int], n_ahead: int) -> list[int]:
    """Run `n_ahead` forward passes, then one of each in turn, then what is left."""
    n_ahead = min(n_ahead, len(forward))
    n_pairs = len(forward) - n_ahead
    pairs = [0] * (2 * n_pairs)
    pairs[::2], pairs[1::2] = forward[n_ahead:], backward[:n_pairs]
    return forward[:n_ahead] + pairs + backward[n_pairs:]


def check_order(order: Sequence[Sequence[Pass]], n_micro_batches: int) -> None:
    """Check that an order has every pass once, on its stage, and that no stage waits for ever.

    Raises
    ------
    InvalidInputError
        Naming a pass that is missing, twice or misplaced, or that waits for one that waits for it.
    """
    read_order(order, n_micro_batches)


def read_order(order: Sequence[Sequence[Pass]], n: int) -> tuple[Grid, Numbers]:
    """Return an order as numbers, checked."""
    grid = Grid(1 + max((p.piece for passes in order for p in passes), default=0), n)
    wanted = dict.fromkeys(grid.read(x) for x in range(2 * grid.n_pieces * n))
    for stage, passes in enumerate(order):
        for one in passes:
            if one not in wanted or one.piece % len(order) != stage:
                raise InvalidInputError(
                    f"Every pass must run once, on its stage, but stage {stage} has {one}."
                )
            del wanted[one]
    for one in wanted:
        raise InvalidInputError(f"Every pass must run once, but {one} never does.")
    starts = (grid.forward, grid.backward)
    numbers = [[starts[p.backward](p.piece, p.micro_batch) for p in passes] for passes in order]
    running_order(grid, numbers)
    return grid, numbers


def running_order(grid: Grid, numbers: Numbers) -> list[int]:
    """Return all passes such that each comes after those that it waits for.

    Raises
    ------
    InvalidInputError
        When stages wait for each other.
    """
    done: list[int] = []
    known = bytearray(2 * grid.n_pieces * grid.n)
    waiting: dict[int, int] = {}  # a pass, and the stage that waits for it
    position = [0] * len(numbers)
    turn = list(range(len(numbers)))[::-1]
    while turn:
        stage = turn.pop()
        passes = numbers[stage]
        for i in range(position[stage], len(passes)):
            one = passes[i]
            need = grid.needed(one)
            if need >= 0 and not known[need]:
                waiting[need], position[stage] = stage, i
                break
            known[one] = 1
            done.append(one)
            if one in waiting:
                turn.append(waiting.pop(one))
    for need, stage in waiting.items():
        stuck = grid.read(numbers[stage][position[stage]])
        raise InvalidInputError(
            f"An order must not wait for itself, but stage {stage} waits at {stuck} for "
            f"{grid.read(need)}."
        )
    return done


SCHEDULE_ORDERS: dict[str, Callable[[Grid, int], Numbers]] = {
    "gpipe": _gpipe,
    "1f1b": _one_forward_one_backward,
    "interleaved": _interleaved,
    "sequential": _sequential,
    "unlocked": _unlocked,
}
