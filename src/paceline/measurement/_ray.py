"""Run a campaign on a Ray cluster: runs are tasks, results return to the one file here."""

from __future__ import annotations

import atexit
import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paceline.errors import ExecutionError, InvalidInputError, MissingDependencyError
from paceline.executors import BaseExecutor
from paceline.measurement._assignment import Assignment
from paceline.measurement._campaign import Campaign
from paceline.measurement._local import Outcome, PoolKeeper, timed_run
from paceline.measurement._progress import ProgressCallback

_MAX_LOST = 3  # a run whose machine was lost so often is not the machines' fault
_POLL_S = 0.5

# of the Ray process that runs tasks: its pool stays alive from one task to the next
_keepers: list[PoolKeeper] = []


def run_ray(
    campaign: Campaign,
    executors: Mapping[str, BaseExecutor],
    *,
    address: str | None = None,
    progress: ProgressCallback | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> None:
    """Make all runs of a campaign as tasks of a Ray cluster.

    Raises
    ------
    MissingDependencyError
        When Ray is not installed.
    InvalidInputError
        When the cluster cannot be reached.
    """
    ray = _import_ray()
    with _connected(ray, address):
        queue = _RayQueue(ray, campaign, executors)
        try:
            while queue.fill(should_stop) or queue.pending:
                if queue.collect() and progress:
                    progress(campaign.progress)
        finally:
            queue.cancel()


class _RayQueue:
    """The runs that the cluster has been given."""

    def __init__(
        self, ray: Any, campaign: Campaign, executors: Mapping[str, BaseExecutor]
    ) -> None:
        self._ray, self._campaign = ray, campaign
        self._executors = ray.put(dict(executors))
        # a lost task is given out again by the campaign, which counts how often
        self._task = ray.remote(max_retries=0)(_run_task)
        self._lost: Counter[tuple[int, int, int]] = Counter()
        self.pending: dict[Any, Assignment] = {}

    def fill(self, should_stop: Callable[[], bool] | None) -> bool:
        """Hand out runs while processors are free; return whether any was."""
        handed_out = False
        while not (should_stop and should_stop()) and len(self.pending) < self._room():
            assignment = self._campaign.ask()
            if assignment is None:
                break
            self._submit(assignment)
            handed_out = True
        return handed_out

    def collect(self) -> bool:
        """Take in what is finished; return whether anything was."""
        ready, _ = self._ray.wait(list(self.pending), num_returns=1, timeout=_POLL_S)
        for reference in ready:
            self._take(reference, self.pending.pop(reference))
        return bool(ready)

    def cancel(self) -> None:
        """Take back what is still out; the campaign will hand it out again."""
        for reference, assignment in self.pending.items():
            self._ray.cancel(reference, force=True)
            self._campaign.give_back(assignment)
        self.pending.clear()

    def _take(self, reference: Any, assignment: Assignment) -> None:
        try:
            outcome, seconds, machine = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise ExecutionError(f"A task failed before its run: {error.cause}") from error
        except self._ray.exceptions.RayError as error:
            return self._take_loss(assignment, error)
        return self._campaign.tell(assignment, outcome, seconds=seconds, machine=machine)

    def _take_loss(self, assignment: Assignment, error: Exception) -> None:
        self._lost[assignment.key] += 1
        if self._lost[assignment.key] < _MAX_LOST:
            return self._campaign.give_back(assignment)
        reason = f"Its machine was lost {_MAX_LOST} times; Ray says: {type(error).__name__}"
        return self._campaign.tell(assignment, ExecutionError(reason))

    def _submit(self, assignment: Assignment) -> None:
        # more workers than any machine has processors must share them, as they would without Ray
        n_cpus = min(assignment.n_workers, self._largest_machine())
        task = self._task.options(num_cpus=n_cpus)
        self.pending[task.remote(assignment, self._executors)] = assignment

    def _room(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _largest_machine(self) -> int:
        machines = [node for node in self._ray.nodes() if node["Alive"]]
        return max([int(node["Resources"].get("CPU", 1)) for node in machines], default=1)


def _run_task(assignment: Assignment, executors: Mapping[str, BaseExecutor]) -> Outcome:
    """Run an assignment in a process of Ray's, on workers that outlive the task."""
    if not _keepers:
        _keepers.append(PoolKeeper(executors))
        atexit.register(_keepers[0].close)
    return timed_run(_keepers[0], assignment)


@contextmanager
def _connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to a cluster, unless this process is connected already."""
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(
            address=address, include_dashboard=None if address else False, log_to_driver=False
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InvalidInputError(
            f"`address` must be that of a Ray cluster, but got {address!r}: {reason}"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingDependencyError("The Ray engine", "ray", "ray") from error
