"""The best placement, proven by OR-Tools' CP-SAT where it is small enough."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from paceline.errors import InfeasibleError, MissingDependencyError
from paceline.planners._baselines import place_greedily
from paceline.planners._placement import Placement, PlacementProblem, placement_of

_TICKS = 1_000_000  # the solver counts in whole ticks: this many in a greedy step


def place_exactly(
    problem: PlacementProblem, *, max_seconds: float = 60.0, n_threads: int = 2
) -> Placement:
    """Return the placement of least step time, or the best found with a bound.

    Parameters
    ----------
    problem
        What is placed where; up to about ten devices are proven within seconds.
    max_seconds
        After which the best found is returned, `is_optimal` False and with `bound_s`.
    n_threads
        Of the solver.

    Raises
    ------
    InfeasibleError
        When no placement fits in memory.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingDependencyError("Exact placement", "ortools", "plan") from None
    model = _Model(problem, cp_model.CpModel())
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max_seconds
    solver.parameters.num_workers = n_threads
    status = solver.solve(model.cp)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise InfeasibleError(
            "Every device must hold its stages, but no placement fits in memory. Take more "
            "stages, a smaller micro-batch or larger devices."
        )
    found = placement_of(problem, model.genes(solver), 0, is_optimal=status == cp_model.OPTIMAL)
    return replace(found, bound_s=solver.best_objective_bound * model.tick_s)


class _Model:
    """The placement as constraints over whole ticks."""

    def __init__(self, problem: PlacementProblem, cp: Any) -> None:
        self.problem, self.cp = problem, cp
        greedy = float(problem.step_seconds(place_greedily(problem)[None])[0])
        self.tick_s = greedy / _TICKS
        self.horizon = 100 * _TICKS
        shape = (problem.n_replicas, problem.n_stages, problem.n_devices)
        self.at = np.empty(shape, dtype=object)
        for index in np.ndindex(shape):
            self.at[index] = cp.new_bool_var(f"at{index}")
        for replica, stage in np.ndindex(shape[:2]):
            cp.add_exactly_one(self.at[replica, stage])
        self._fit_memory()
        pipes = self._variable("pipes")
        for replica in range(problem.n_replicas):
            self._add_replica(replica, pipes)
        cp.minimize(pipes + self._exchange())

    def genes(self, solver: Any) -> Any:
        """Return the devices that were chosen."""
        chosen = np.vectorize(solver.boolean_value)(self.at)
        return np.argmax(chosen, axis=2).astype(np.int64)

    def _variable(self, name: str) -> Any:
        return self.cp.new_int_var(0, self.horizon, name)

    def _ticks(self, seconds: float) -> int:
        return round(seconds / self.tick_s)

    def _fit_memory(self) -> None:
        problem = self.problem
        if np.isinf(problem.memories).any():
            return
        unit = float(problem.memories.max()) / 1e6
        needed = np.ceil(problem.memory_bytes / unit).astype(int)
        for device, memory in enumerate(problem.memories):
            held = (self.at[:, :, device] * needed[None, :]).sum()
            self.cp.add(held <= int(memory / unit))

    def _busy(self, device: int) -> Any:
        seconds = self.problem.stage_s / self.problem.speeds[device]
        ticks = np.array([self._ticks(s) for s in seconds])
        return (self.at[:, :, device] * ticks[None, :]).sum()

    def _add_replica(self, replica: int, pipes: Any) -> None:
        problem, cp = self.problem, self.cp
        links = [self._link(replica, stage) for stage in range(problem.n_stages)]
        longest = self._variable(f"longest{replica}")
        total: Any = sum(links)
        for stage, device in np.ndindex(problem.n_stages, problem.n_devices):
            here = self.at[replica, stage, device]
            own = self._ticks(float(problem.stage_s[stage] / problem.speeds[device]))
            total = total + own * here
            cp.add(longest >= self._busy(device) + links[stage]).only_enforce_if(here)
        cp.add(pipes >= total + (problem.micro_batches - 1) * longest)

    def _link(self, replica: int, stage: int) -> Any:
        """Return the time to hand over behind a stage."""
        problem = self.problem
        if stage == problem.n_stages - 1:
            return 0
        link = self._variable(f"link{replica},{stage}")
        for j, k in itertools.permutations(range(problem.n_devices), 2):
            seconds = 2 * problem.latency_s[j, k]
            seconds += problem.hand_over_bytes[stage] * problem.seconds_per_byte[j, k]
            here, there = self.at[replica, stage, j], self.at[replica, stage + 1, k]
            self.cp.add(link >= self._ticks(seconds)).only_enforce_if(here, there)
        return link

    def _exchange(self) -> Any:
        """Return the longest gradient exchange of any stage."""
        problem, r = self.problem, self.problem.n_replicas
        if r == 1:
            return 0
        exchange = self._variable("exchange")
        for stage in range(problem.n_stages):
            for j, k in itertools.permutations(range(problem.n_devices), 2):
                hop = problem.latency_s[j, k]
                hop += problem.weight_bytes[stage] * problem.seconds_per_byte[j, k] / r
                ticks = self._ticks(2 * (r - 1) * hop)
                for q, p in itertools.combinations(range(r), 2):
                    both = self.at[q, stage, j], self.at[p, stage, k]
                    self.cp.add(exchange >= ticks).only_enforce_if(*both)
        return exchange
