"""Which device takes which stage where links or devices differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import Cluster
from paceline.errors import InfeasibleError, MissingDependencyError
from paceline.planners._candidates import Candidate
from paceline.planners._genetic import place_genetically
from paceline.planners._placement import Placement, PlacementProblem
from paceline.planners._placement_exact import place_exactly
from paceline.planners._schedule import time_step
from paceline.planners._task import Task

Array = NDArray[np.float64]

MOST_EXACT = 6  # stages of all replicas that are placed by proof
MOST_GENETIC = 64
_LEAST_GAIN = 0.005
_EXACT_SECONDS = 2.0


def link_matrices(cluster: Cluster, n_devices: int) -> tuple[Array, Array]:
    """Return latency and seconds per byte of a message between any two devices.

    A pair talks over the link of the innermost level that joins both.
    """
    device = np.arange(n_devices)
    latency, per_byte = np.zeros((2, n_devices, n_devices))
    open_ = ~np.eye(n_devices, dtype=bool)
    capacity = 1.0
    for level in cluster.levels:
        capacity = capacity * level.size if level.size else np.inf
        unit = np.zeros(n_devices) if np.isinf(capacity) else device // int(capacity)
        joined = open_ & (unit[:, None] == unit[None, :])
        link = level.link
        start = link.latency_s if link.message_latency_s is None else link.message_latency_s
        latency[joined] = start
        per_byte[joined] = 1.0 / (link.message_bandwidth or link.bandwidth)
        open_ &= ~joined
    latency[open_], per_byte[open_] = start, 1.0 / (link.message_bandwidth or link.bandwidth)
    return latency, per_byte


def placement_problem(task: Task, candidate: Candidate) -> PlacementProblem:
    """Return the question of which device takes which stage; each takes one.

    Parameters
    ----------
    task, candidate
        A pipeline whose stages are one device each, with equal replicas.
    """
    strategy, cluster = candidate.strategy, task.cluster
    n = cluster.n_devices if not cluster.is_even else strategy.n_devices
    cut = task.cost(strategy, candidate.ends, task.global_batch)
    latency, per_byte = link_matrices(cluster, n)
    k = strategy.pipeline
    return PlacementProblem(
        stage_s=cut.forward_s + cut.backward_s,
        hand_over_bytes=2 * cut.transfer_bytes,
        weight_bytes=np.broadcast_to(cut.memory["weights"], (k,)),
        # one stage a device: a unit of memory each, of which a device has one
        memory_bytes=np.ones(k),
        n_replicas=strategy.data,
        micro_batches=strategy.micro_batches,
        speeds=cluster.speeds(n),
        memories=np.ones(n),
        latency_s=latency,
        seconds_per_byte=per_byte,
    )


def place_stages(problem: PlacementProblem, first: NDArray[np.int64]) -> Placement:
    """Return the best placement: proven where it is small, else by a genetic search.

    Parameters
    ----------
    problem
        What is placed where.
    first
        A placement to begin with; the answer is never worse.
    """
    if problem.n_replicas * problem.n_stages <= MOST_EXACT and problem.n_devices <= MOST_EXACT:
        try:
            return place_exactly(problem, max_seconds=_EXACT_SECONDS)
        except MissingDependencyError:
            pass  # the genetic search needs nothing
    return place_genetically(problem, seeds=first[None], generations=60)


def improve_placement(task: Task, candidate: Candidate) -> Candidate:
    """Return a candidate on better devices, where links or devices differ and that gains."""
    if not _may_gain(task, candidate):
        return candidate
    problem = placement_problem(task, candidate)
    first = np.array(candidate.placement, dtype=np.int64)
    before = float(problem.step_seconds(first[None])[0])
    try:
        found = place_stages(problem, first)
    except InfeasibleError:
        return candidate
    gain = 1 - found.step_s / before
    if gain < _LEAST_GAIN:
        return candidate
    how = "proven best" if found.is_optimal else "found by a genetic search"
    note = f"The placement, {how}, takes {100 * gain:.2g} % less than devices in order would."
    return _placed(task, candidate, found, note)


def _may_gain(task: Task, candidate: Candidate) -> bool:
    strategy, cluster = candidate.strategy, task.cluster
    n = strategy.n_devices
    is_plain = strategy.pipeline > 1 and strategy.virtual_stages == 1
    is_plain &= n == strategy.data * strategy.pipeline
    is_plain &= len(set(candidate.replica_batches)) == 1
    # within one level all links are equal, and the cut has chosen among equal devices
    spread = len(cluster.levels) > 1 and n > (cluster.devices_per_node or n)
    return is_plain and spread and n <= MOST_GENETIC


def _placed(task: Task, candidate: Candidate, found: Placement, note: str) -> Candidate:
    """Return the candidate with other devices, if its stages fit in their memory."""
    n = task.cluster.n_devices or candidate.n_devices
    speeds, memories = task.cluster.speeds(n), task.cluster.memories(n)
    devices = np.array(found.devices)
    timed = [
        time_step(task, candidate.strategy, candidate.ends, speeds=speeds[row]) for row in devices
    ]
    slowest = max(timed, key=lambda t: t.step_s)
    limits = tuple(float(m) for m in memories[devices].min(axis=0))
    placed = replace(
        candidate,
        placement=found.devices,
        timed=slowest,
        step_s=slowest.step_s,
        limits=limits,
        notes=(*candidate.notes, note),
    )
    return placed if placed.fits and placed.step_s <= candidate.step_s * 1.0001 else candidate
