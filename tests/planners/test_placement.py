"""Placing stages on unequal devices: genetic against the proven optimum, baselines beside it."""

import itertools

import numpy as np
import pytest

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.planners import (
    PlacementProblem,
    place_at_random,
    place_by_annealing,
    place_by_assignment,
    place_exactly,
    place_genetically,
    place_greedily,
    place_round_robin,
)


def random_problem(seed, n_devices=None, n_stages=None, n_replicas=None, memory=3.0):
    rng = np.random.default_rng(seed)
    n_replicas = n_replicas or int(rng.integers(1, 3))
    n_devices = n_devices or int(rng.integers(3, 9))
    n_stages = n_stages or max(1, int(rng.integers(2, 1 + max(2, n_devices // n_replicas))))
    near = rng.integers(2, size=(n_devices, n_devices))
    near = np.triu(near, 1) + np.triu(near, 1).T
    beta = np.where(near == 1, 1e-10, 1e-9) * (1 - np.eye(n_devices))
    return PlacementProblem(
        stage_s=rng.lognormal(-4, 0.5, n_stages),
        hand_over_bytes=rng.lognormal(15, 1, n_stages - 1),
        weight_bytes=rng.lognormal(17, 1, n_stages),
        memory_bytes=rng.uniform(0.5, 1.5, n_stages),
        n_replicas=n_replicas,
        micro_batches=int(rng.choice([1, 4, 16])),
        speeds=rng.uniform(0.5, 2, n_devices),
        memories=np.full(n_devices, memory),
        latency_s=np.where(near == 1, 1e-5, 5e-5) * (1 - np.eye(n_devices)),
        seconds_per_byte=beta,
    )


def best_of_all(problem):
    n_units = problem.n_replicas * problem.n_stages
    all_genes = np.array(list(itertools.product(range(problem.n_devices), repeat=n_units)))
    genes = all_genes.reshape(-1, problem.n_replicas, problem.n_stages)
    fits = problem.overflow(genes) == 0
    return problem.step_seconds(genes[fits]).min()


@pytest.mark.parametrize("seed", range(8))
def test_the_exact_placement_equals_the_best_of_all(seed):
    problem = random_problem(seed, n_devices=4, n_stages=3)
    found = place_exactly(problem)
    assert found.is_optimal
    assert found.step_s == pytest.approx(best_of_all(problem), rel=1e-4)
    assert found.bound_s <= found.step_s * (1 + 1e-4)


def test_genetic_placement_without_seeds_comes_within_one_percent_of_the_optimum():
    ratios = []
    for seed in range(50):
        problem = random_problem(100 + seed)
        exact = place_exactly(problem, max_seconds=20)
        found = place_genetically(problem, use_seeds=False, random_state=seed)
        ratios.append(found.step_s / max(exact.bound_s, exact.step_s * exact.is_optimal))
    assert min(ratios) >= 1 - 1e-4
    assert max(ratios) <= 1.01


@pytest.mark.parametrize("seed", range(10))
def test_genetic_placement_is_never_worse_than_its_seeds(seed):
    problem = random_problem(seed, n_devices=12, n_stages=6, n_replicas=2)
    seeds = np.array([place_round_robin(problem), place_greedily(problem)])
    found = place_genetically(problem, seeds=seeds, generations=3, random_state=seed)
    fitting = problem.overflow(seeds) == 0
    assert found.step_s <= problem.step_seconds(seeds)[fitting].min(initial=np.inf) * (1 + 1e-12)


def test_the_same_seed_gives_the_same_placement():
    problem = random_problem(3, n_devices=8)
    assert place_genetically(problem, random_state=5) == place_genetically(problem, random_state=5)


def test_on_equal_devices_and_links_any_permutation_takes_as_long():
    problem = random_problem(1, n_devices=4, n_stages=4, n_replicas=1)
    equal = 1 - np.eye(4)
    problem = PlacementProblem(
        **{
            **vars(problem),
            "speeds": np.ones(4),
            "latency_s": 1e-5 * equal,
            "seconds_per_byte": 1e-9 * equal,
        }
    )
    genes = np.array(list(itertools.permutations(range(4))))[:, None, :]
    times = problem.step_seconds(genes)
    assert times == pytest.approx(np.full(24, times[0]))
    assert place_exactly(problem).step_s <= times[0] * (1 + 1e-4)


@pytest.mark.parametrize(
    "place",
    [
        lambda p: place_at_random(p, 200),
        lambda p: place_by_annealing(p, 200),
        place_by_assignment,
    ],
    ids=["random", "annealing", "assignment"],
)
def test_baselines_give_placements_that_count(place):
    problem = random_problem(7, n_devices=6, n_stages=3, n_replicas=2, memory=10.0)
    found = place(problem)
    assert np.shape(found.devices) == (2, 3)
    assert found.step_s >= place_exactly(problem).step_s * (1 - 1e-4)


@pytest.mark.parametrize("place", [place_exactly, place_genetically])
def test_what_fits_nowhere_is_said(place):
    problem = random_problem(2, n_devices=3, n_stages=3, memory=0.1)
    with pytest.raises(InfeasibleError, match="must hold its stages"):
        place(problem)


def test_a_table_of_the_wrong_size_is_refused():
    problem = random_problem(2)
    with pytest.raises(InvalidInputError, match="`memories` must have the shape"):
        PlacementProblem(**{**vars(problem), "memories": np.ones(99)})
