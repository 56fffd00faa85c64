"""Unequal micro-batches: the dual-chromosome search against every size there is."""

import itertools

import numpy as np
import pytest

from paceline.clusters import load_cluster
from paceline.errors import InvalidInputError
from paceline.oracle import simulate
from paceline.planners import PassTimes, pass_times, plan_training, search_unequal
from paceline.planners._stages import ends_of
from paceline.planners._task import Task
from paceline.scenario import Strategy
from paceline.workloads import load_workload


def random_times(rng, n_stages):
    return PassTimes(
        fixed_s=rng.uniform(0, 3, n_stages),
        sample_s=rng.uniform(0.1, 1, n_stages),
        latency_s=rng.uniform(0, 1, n_stages - 1),
        transfer_sample_s=rng.uniform(0, 0.2, n_stages - 1),
    )


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


@pytest.mark.parametrize("seed", range(15))
def test_the_search_finds_the_best_of_all_sizes(seed):
    rng = np.random.default_rng(seed)
    n_stages, batch = int(rng.integers(2, 5)), int(rng.choice([12, 16, 24]))
    forward, backward = random_times(rng, n_stages), random_times(rng, n_stages)
    found = search_unequal(forward, backward, batch)
    every = np.array(list(itertools.product(divisors(batch), repeat=n_stages)))
    best = forward.seconds(every, batch).min() + backward.seconds(every, batch).min()
    assert found.step_s <= best * 1.001
    assert found.step_s <= min(found.equal_s, found.greedy_s) * (1 + 1e-12)
    there = forward.seconds(found.forward_sizes, batch)
    back = backward.seconds(found.backward_sizes[::-1], batch)
    assert float(there + back) == pytest.approx(found.step_s)


def test_equal_sizes_without_transfers_take_what_gpipe_takes():
    times = PassTimes(
        fixed_s=np.zeros(3), sample_s=np.ones(3), latency_s=np.zeros(2),
        transfer_sample_s=np.zeros(2),
    )  # fmt: skip
    found = search_unequal(times, times, 8)
    run = simulate("gpipe", np.ones(3), np.ones(3), n_micro_batches=8)
    assert found.equal_size == 1 and found.equal_s == pytest.approx(run.step_s)
    assert found.gain == pytest.approx(0.0)  # with purely linear times equal sizes are best


def test_memory_limits_the_sizes_of_a_stage():
    rng = np.random.default_rng(3)
    times = random_times(rng, 3)
    found = search_unequal(times, times, 24, max_sizes=[24, 2, 24])
    assert found.forward_sizes[1] <= 2 and found.backward_sizes[1] <= 2
    with pytest.raises(InvalidInputError, match="stage 1 does not"):
        search_unequal(times, times, 24, max_sizes=[24, 0, 24])


def test_the_same_seed_finds_the_same_sizes():
    times = random_times(np.random.default_rng(5), 6)
    assert search_unequal(times, times, 48) == search_unequal(times, times, 48)


def test_times_come_from_the_oracles_own():
    graph = load_workload("vgg16").graph()
    cluster, strategy = load_cluster("dgx-1"), Strategy(pipeline=4, micro_batches=8)
    plan = plan_training(graph, cluster, 4, 64, strategies=[strategy])
    task = Task(graph=graph, cluster=cluster, n_devices=4, global_batch=64)
    ends = ends_of(graph, plan.stages)
    forward, backward = pass_times(task, strategy, ends)
    cut = task.cost(strategy, ends, 64)
    assert forward.fixed_s + 8 * forward.sample_s == pytest.approx(cut.forward_s, rel=0.25)
    assert (backward.fixed_s + 8 * backward.sample_s)[::-1] == pytest.approx(
        cut.backward_s, rel=0.25
    )
    found = search_unequal(forward, backward, 64)
    assert found.step_s <= found.equal_s
