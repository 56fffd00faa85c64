"""Placements that a search must beat."""

from __future__ import annotations

import numpy as np

from paceline.planners._placement import Genes, Placement, PlacementProblem, placement_of


def place_round_robin(problem: PlacementProblem) -> Genes:
    """Return devices in turn: replica after replica, stage after stage."""
    shape = (problem.n_replicas, problem.n_stages)
    return np.resize(np.arange(problem.n_devices), shape).astype(np.int64)


def place_greedily(problem: PlacementProblem) -> Genes:
    """Return the longest stages first, each on the device that would be free soonest."""
    genes = np.zeros((problem.n_replicas, problem.n_stages), dtype=np.int64)
    busy = np.zeros(problem.n_devices)
    room = np.array(problem.memories, dtype=float)
    for stage in np.argsort(-problem.stage_s, kind="stable"):
        for replica in range(problem.n_replicas):
            ends = busy + problem.stage_s[stage] / problem.speeds
            fits = room >= problem.memory_bytes[stage]
            device = int(np.argmin(np.where(fits, ends, ends + 1e9 * ends.max())))
            genes[replica, stage] = device
            busy[device] = ends[device]
            room[device] -= problem.memory_bytes[stage]
    return genes


def place_at_random(
    problem: PlacementProblem, n_evaluations: int, random_state: int = 0
) -> Placement:
    """Return the best of so many permutations of devices."""
    rng = np.random.default_rng(random_state)
    n_units = problem.n_replicas * problem.n_stages
    draws = [np.resize(rng.permutation(problem.n_devices), n_units) for _ in range(n_evaluations)]
    genes = np.array(draws, dtype=np.int64).reshape(-1, problem.n_replicas, problem.n_stages)
    best = genes[int(np.argmin(problem.cost(genes)))]
    return placement_of(problem, best, n_evaluations)


def place_by_annealing(
    problem: PlacementProblem, n_evaluations: int, random_state: int = 0
) -> Placement:
    """Return what simulated annealing finds with so many evaluations, cooled to a thousandth."""
    rng = np.random.default_rng(random_state)
    state = place_round_robin(problem)
    cost = float(problem.cost(state[None])[0])
    best, best_cost = state, cost
    for i in range(n_evaluations):
        heat = 0.1 * best_cost * 1e-3 ** (i / n_evaluations)
        moved = _move(state, problem.n_devices, rng)
        moved_cost = float(problem.cost(moved[None])[0])
        if moved_cost < cost or rng.random() < np.exp((cost - moved_cost) / heat):
            state, cost = moved, moved_cost
        if cost < best_cost:
            best, best_cost = state, cost
    return placement_of(problem, best, n_evaluations)


def place_by_assignment(problem: PlacementProblem) -> Placement:
    """Return the least sum of stage times, one unit a device (the Hungarian algorithm's O1)."""
    from scipy.optimize import linear_sum_assignment

    units = np.tile(problem.stage_s, problem.n_replicas)
    copies = -(-len(units) // problem.n_devices)
    costs = np.tile(units[:, None] / problem.speeds[None, :], (1, copies))
    rows, columns = linear_sum_assignment(costs)
    genes = np.empty(len(units), dtype=np.int64)
    genes[rows] = columns % problem.n_devices
    return placement_of(problem, genes.reshape(problem.n_replicas, problem.n_stages), 1)


def _move(state: Genes, n_devices: int, rng: np.random.Generator) -> Genes:
    moved = state.copy()
    flat = moved.reshape(-1)
    a, b = rng.integers(len(flat), size=2)
    if rng.random() < 0.5:
        flat[a], flat[b] = flat[b], flat[a]
    else:
        flat[a] = rng.integers(n_devices)
    return moved
