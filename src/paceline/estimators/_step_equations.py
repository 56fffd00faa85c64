"""The step and its speedup in equations: chapter 3 of the thesis, and its IUCC version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPhases:
    """Seconds of every phase in one step; `comm_s` is the aggregation, waiting included."""

    io_s: float = 0.0
    h2d_s: float = 0.0
    md_s: float = 0.0
    forward_s: float = 0.0
    backward_s: float = 0.0
    comm_s: float = 0.0
    update_s: float = 0.0


def sgd_step_s(phases: StepPhases) -> float:
    """Return the step of one device: io + h2d + f + b + u.

    Thesis (3.1) = IUCC (1); f and b are sums over layers. Nothing overlaps.
    """
    p = phases
    return p.io_s + p.h2d_s + p.forward_s + p.backward_s + p.update_s


def ssgd_step_s(phases: StepPhases) -> float:
    """Return the step of several devices that are alike: (3.1) and the aggregation.

    Thesis (3.2) = IUCC (2). Nothing overlaps.
    """
    return sgd_step_s(phases) + phases.comm_s


def slowest_device_step_s(workers: Sequence[StepPhases]) -> float:
    """Return the step with the slowest device's compute: io + h2d + md + max_i(f + b + c) + u.

    Thesis (3.3) = IUCC (3). The phases outside the maximum are one number in the thesis; here
    they are the mean of the workers.
    """
    if not workers:
        raise InvalidInputError("There must be at least one worker, but got none.")
    shared = np.mean([w.io_s + w.h2d_s + w.md_s + w.update_s for w in workers])
    return float(shared) + max(w.forward_s + w.backward_s + w.comm_s for w in workers)


def one_device_step_s(phases: StepPhases) -> float:
    """Return (3.3) for one device: io + h2d + md + f + b + u.

    Thesis (3.4), printed as IUCC (4).
    """
    return sgd_step_s(phases) + phases.md_s


def pipelined_step_s(phases: StepPhases, *, with_division: bool = False) -> float:
    """Return the step when input is read during compute: max(f + b + u, io + h2d).

    Thesis (3.5); `with_division` adds md to the input, as IUCC (5) does.
    """
    p = phases
    reading = p.io_s + p.h2d_s + (p.md_s if with_division else 0.0)
    return max(p.forward_s + p.backward_s + p.update_s, reading)


def weak_speedup(n_workers: int, one_step_s: float, many_step_s: float) -> float:
    """Return the measured speedup at a fixed device batch: S = N * t_1 / t_N.

    Thesis (3.6) = IUCC (6).
    """
    if min(one_step_s, many_step_s) <= 0:
        raise InvalidInputError(
            f"Steps must take time, but got {one_step_s:g} s and {many_step_s:g} s."
        )
    return n_workers * one_step_s / many_step_s


def printed_speedup(n_workers: int, one: StepPhases, many: StepPhases) -> float:
    """Return N * max(io + h2d, f + b + u) / max(io' + h2d + md, f + b + c).

    Thesis (3.7) as printed, for the record: the update is above the line only, so that it gives
    more than N where the update outweighs the aggregation. io', md and c are those of `many`.
    """
    above = max(one.io_s + one.h2d_s, one.forward_s + one.backward_s + one.update_s)
    reading = many.io_s + one.h2d_s + many.md_s
    return n_workers * above / max(reading, one.forward_s + one.backward_s + many.comm_s)


def iucc_speedup(n_workers: int, one: StepPhases, many: StepPhases) -> float:
    """Return N * max(io + h2d, f + b) / max(io' + h2d, f + b + c).

    IUCC (7) as printed, for the record: it has neither update nor division.
    """
    compute = one.forward_s + one.backward_s
    above = max(one.io_s + one.h2d_s, compute)
    return n_workers * above / max(many.io_s + one.h2d_s, compute + many.comm_s)


def exposed_speedup(
    n_workers: int,
    one: StepPhases,
    many: StepPhases,
    *,
    comm_exposed_s: float,
    is_compute_shared: bool = False,
) -> float:
    """Return N * max(io + h2d, f + b + u) / max(io' + h2d + md, f + b + c_exposed + u).

    Ours, after thesis (3.7): the update is on both sides, and only that part of the aggregation
    counts which compute does not hide. As in the thesis, f, b, u and h2d below the line are
    those of one device; `is_compute_shared` takes those of `many`, where devices contend for
    cores or memory.
    """
    below = many if is_compute_shared else one
    above = max(one.io_s + one.h2d_s, one.forward_s + one.backward_s + one.update_s)
    compute = below.forward_s + below.backward_s + below.update_s
    return n_workers * above / max(many.io_s + below.h2d_s + many.md_s, compute + comm_exposed_s)
