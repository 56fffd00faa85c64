"""Genetic placement after the idea of arXiv 2104.05035; encoding and rates ours (REFERENCE 1c)."""

from __future__ import annotations

from typing import Any

import numpy as np

from paceline.planners._baselines import place_greedily, place_round_robin
from paceline.planners._evolution import evolve
from paceline.planners._placement import Genes, Placement, PlacementProblem, placement_of

POPULATION = 60
GENERATIONS = 200
PATIENCE = 30  # generations without improvement
N_ISLANDS = 4  # populations that never meet
N_POLISHED = 20  # of all populations, by moving single units


def place_genetically(
    problem: PlacementProblem,
    *,
    seeds: Genes | None = None,
    use_seeds: bool = True,
    population: int = POPULATION,
    generations: int = GENERATIONS,
    random_state: int = 0,
) -> Placement:
    """Return the best placement that a genetic search finds; never worse than its seeds.

    Parameters
    ----------
    problem
        What is placed where.
    seeds
        Placements (n, replicas, stages) to begin with, such as an exact answer of a simpler
        problem.
    use_seeds
        Whether round-robin and greedy placements join the first population.
    population, generations
        Of each of four islands; they end earlier after 30 generations without improvement.
    random_state
        Seed.

    Raises
    ------
    InfeasibleError
        When no placement that fits was found.
    """
    rng = np.random.default_rng(random_state)
    found, n_evaluations = [], 0
    for _ in range(N_ISLANDS):
        first = _first_population(problem, seeds, use_seeds, population, rng)
        last, n = evolve(problem, first, generations, PATIENCE, rng)
        found += [first, last]
        n_evaluations += n
    candidates = np.unique(np.concatenate(found), axis=0)
    order = np.argsort(problem.cost(candidates), kind="stable")
    polished = [_polish(problem, genes) for genes in candidates[order[:N_POLISHED]]]
    best = min(polished, key=lambda pair: float(problem.cost(pair[0][None])[0]))[0]
    return placement_of(problem, best, n_evaluations + sum(n for _, n in polished))


def _polish(problem: PlacementProblem, genes: Genes) -> tuple[Genes, int]:
    """Move or exchange single units while that helps; return the count of evaluations too."""
    cost, n_evaluations = float(problem.cost(genes[None])[0]), 0
    while True:
        neighbours = _neighbours(genes, problem.n_devices)
        costs = problem.cost(neighbours)
        n_evaluations += len(costs)
        if costs.min() >= cost * (1 - 1e-12):
            return genes, n_evaluations
        genes, cost = neighbours[int(np.argmin(costs))], float(costs.min())


def _neighbours(genes: Genes, n_devices: int) -> Genes:
    """Return every placement that differs by one unit's device or by an exchange of two."""
    flat = genes.reshape(-1)
    n_units = len(flat)
    units, devices = np.divmod(np.arange(n_units * n_devices), n_devices)
    moved = np.tile(flat, (len(units), 1))
    moved[np.arange(len(units)), units] = devices
    a, b = np.triu_indices(n_units, 1)
    swapped = np.tile(flat, (len(a), 1))
    rows = np.arange(len(a))
    swapped[rows, a], swapped[rows, b] = flat[b], flat[a]
    return np.concatenate([moved, swapped]).reshape(-1, *genes.shape)


def _first_population(
    problem: PlacementProblem,
    seeds: Genes | None,
    use_seeds: bool,
    size: int,
    rng: np.random.Generator,
) -> Genes:
    """Return a third at random, the rest permutations of devices, and the seeds."""
    shape = (problem.n_replicas, problem.n_stages)
    members: list[Any] = [] if seeds is None else [np.asarray(g) for g in seeds]
    if use_seeds:
        members += [place_round_robin(problem), place_greedily(problem)]
    n_units = shape[0] * shape[1]
    while len(members) < size:
        if len(members) % 3:
            order = np.resize(rng.permutation(problem.n_devices), n_units)
        else:
            order = rng.integers(problem.n_devices, size=n_units)
        members.append(order.reshape(shape))
    return np.array(members, dtype=np.int64)
