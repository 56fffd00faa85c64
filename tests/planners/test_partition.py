"""Cutting a chain into stages: exact against every cut there is, heuristics against exact."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.planners import (
    Chain,
    DeviceKind,
    partition_and_merge,
    partition_exactly,
    partition_greedily,
)
from paceline.planners._chain import evaluate


def random_chain(rng, n_units, micro_batches, schedule="1f1b"):
    return Chain(
        work_s=rng.lognormal(0, 0.8, n_units),
        cut_s=rng.lognormal(-2, 0.8, n_units),
        fixed_bytes=rng.lognormal(0, 0.5, n_units),
        stored_bytes=rng.lognormal(-1, 0.5, n_units),
        micro_batches=micro_batches,
        schedule=schedule,
    )


def brute_force(chain, kinds, orders):
    n_units = len(chain)
    best = np.inf
    for order in orders:
        for cuts in itertools.combinations(range(1, n_units), len(order) - 1):
            best = min(best, evaluate(chain, (*cuts, n_units), kinds, order))
    return best


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_units=st.integers(2, 8),
    counts=st.lists(st.integers(1, 2), min_size=1, max_size=3),
    micro_batches=st.sampled_from([1, 2, 8, 32]),
    tightness=st.sampled_from([np.inf, 1.5, 1.1]),
    keeps_order=st.booleans(),
)
def test_dynamic_programming_equals_brute_force(
    seed, n_units, counts, micro_batches, tightness, keeps_order
):
    rng = np.random.default_rng(seed)
    n_stages = min(sum(counts), n_units)
    chain = random_chain(rng, n_units, micro_batches, ["1f1b", "gpipe"][seed % 2])
    whole = chain.stage_bytes(0, n_units, 1) / n_stages
    kinds = [
        DeviceKind(speed=float(rng.uniform(0.5, 2)), memory_bytes=tightness * 2 * whole)
        for _ in counts
    ]
    labels = [kind for kind, count in enumerate(counts) for _ in range(count)][:n_stages]
    used = [labels.count(kind) for kind in range(len(kinds))]
    orders = [tuple(labels)] if keeps_order else set(itertools.permutations(labels))
    truth = brute_force(chain, kinds, orders)
    order = labels if keeps_order else None
    if np.isinf(truth):
        with pytest.raises(InfeasibleError, match="short"):
            partition_exactly(chain, kinds, used, order=order)
        return
    found = partition_exactly(chain, kinds, used, order=order)
    assert found.gap == 0
    assert found.step_s == pytest.approx(truth, rel=1e-9)
    assert evaluate(chain, found.ends, kinds, found.kinds) == pytest.approx(found.step_s)


def test_partition_and_merge_comes_within_five_percent_of_the_best_on_average():
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n_stages = int(rng.integers(2, 9))
        chain = random_chain(rng, int(rng.integers(3 * n_stages, 60)), 16)
        exact = partition_exactly(chain, [DeviceKind()], [n_stages])
        merged = partition_and_merge(chain, [DeviceKind()], [0] * n_stages)
        greedy = partition_greedily(chain, [DeviceKind()], [0] * n_stages)
        ratios.append([merged.step_s / exact.step_s, greedy.step_s / exact.step_s])
    merged, greedy = np.mean(ratios, axis=0)
    assert np.min(ratios) >= 1 - 1e-9
    assert merged <= 1.05
    assert merged < greedy


def test_a_faster_device_gets_more_of_the_work():
    chain = Chain(work_s=np.ones(30), cut_s=np.zeros(30), micro_batches=64)
    kinds = [DeviceKind(speed=1.0), DeviceKind(speed=2.0)]
    found = partition_exactly(chain, kinds, [1, 1])
    sizes = {kind: b - a for (a, b), kind in zip(found.ranges, found.kinds, strict=True)}
    assert sizes == {0: 10, 1: 20}


@pytest.mark.parametrize("n_stages", [0, 5])
def test_more_stages_than_units_are_refused(n_stages):
    chain = Chain(work_s=np.ones(4), cut_s=np.zeros(4))
    for cut in (
        lambda: partition_exactly(chain, [DeviceKind()], [n_stages]),
        lambda: partition_greedily(chain, order=[0] * n_stages),
        lambda: partition_and_merge(chain, order=[0] * n_stages),
    ):
        with pytest.raises(InvalidInputError, match="between 1 and 4 stages"):
            cut()


def test_too_little_memory_says_how_much_is_short():
    chain = Chain(
        work_s=np.ones(4),
        cut_s=np.zeros(4),
        fixed_bytes=np.full(4, 2.0**30),
        stored_bytes=np.zeros(4),
    )
    with pytest.raises(InfeasibleError, match=r"at least 0\.5 GiB a device are short"):
        partition_exactly(chain, [DeviceKind(memory_bytes=1.5 * 2**30)], [2])
