"""What makes one plan better than another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InfeasibleError
from paceline.planners._candidates import Candidate
from paceline.planners._task import Task
from paceline.units import format_count, format_seconds


def scores(task: Task, step_s: ArrayLike, n_devices: ArrayLike) -> NDArray[np.float64]:
    """Return what is to be least; what misses the deadline comes behind all that do not."""
    step, n = np.asarray(step_s, dtype=float), np.asarray(n_devices, dtype=float)
    found = {
        "fastest": step,
        "cheapest": step * n,
        "fewest": n + step / (1 + step),  # of as many devices, the fastest
    }[task.objective]
    late = late_by(task, step) > 0
    return np.where(late, 1e9 * (1 + step), found)


def late_by(task: Task, step_s: ArrayLike) -> NDArray[np.float64]:
    """Return the seconds of an epoch beyond the deadline; negative when there is time left."""
    step = np.asarray(step_s, dtype=float)
    if task.deadline_s is None:
        return np.full(step.shape, -np.inf)
    return step * (task.steps_per_epoch or 1) - task.deadline_s


def behind(task: Task, best: Candidate, other: Candidate) -> float:
    """Return how much more another costs than the best, as a share of what is to be least.

    That is device time where the cheapest is asked for, else the time of a step.
    """
    if task.objective == "cheapest":
        return other.device_s / best.device_s - 1
    return other.step_s / best.step_s - 1


def choose(task: Task, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return those that fit, best first.

    Raises
    ------
    InfeasibleError
        When none is through in time; says how long the fastest takes.
    """
    fitting = [c for c in candidates if c.fits]
    values = scores(task, [c.step_s for c in fitting], [c.n_devices for c in fitting])
    order = [fitting[i] for i in np.argsort(values, kind="stable")]
    if order and float(late_by(task, order[0].step_s)) > 0:
        fastest = min(fitting, key=lambda c: c.step_s)
        epoch_s = fastest.step_s * (task.steps_per_epoch or 1)
        raise InfeasibleError(
            f"An epoch must take at most {format_seconds(task.deadline_s or 0.0)}, but the "
            f"fastest plan, {fastest.strategy}, takes {format_seconds(epoch_s)} on "
            f"{format_count(fastest.n_devices, 'device')}. Give it more devices, or more time."
        )
    return order


def pareto_front(points: ArrayLike) -> NDArray[np.int64]:
    """Return the rows that no other beats or equals in all columns, least first column first.

    Parameters
    ----------
    points
        One row each, every column the less the better; of equal rows the first counts.

    Examples
    --------
    >>> pareto_front([[1, 4], [2, 2], [3, 3], [4, 1]]).tolist()
    [0, 1, 3]
    """
    table = np.asarray(points, dtype=float)
    order = np.lexsort(table.T[::-1])
    kept: list[int] = []
    for row in order:
        if not kept or not (table[kept] <= table[row]).all(axis=1).any():
            kept.append(int(row))
    return np.array(kept, dtype=np.int64)


def front_rows(task: Task, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the front over time, devices, memory and cost, fastest first."""
    if not rows:
        return []
    names = ("step_s", "n_devices", "memory_bytes", "device_s")
    front = pareto_front([[row[name] for name in names] for row in rows])
    return [priced(task, rows[i]) for i in front]


def priced(task: Task, row: dict[str, Any]) -> dict[str, Any]:
    """Add the time and the price of an epoch, where they are known."""
    found, steps = dict(row), task.steps_per_epoch
    if steps is not None:
        found["epoch_s"] = steps * row["step_s"]
    price = task.cluster.price_per_device_hour
    if price is not None:
        found["step_cost"] = row["device_s"] / 3600 * price
        if steps is not None:
            found["epoch_cost"] = steps * found["step_cost"]
    return found
