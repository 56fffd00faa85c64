"""Shardings layer by layer: coordinate descent against the exact answer, and that against all."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.clusters import load_cluster
from paceline.errors import InvalidInputError
from paceline.planners import (
    ShardingProblem,
    search_shardings,
    shard_exactly,
    sharding_problem,
)
from paceline.workloads import load_workload


def random_problem(seed, n_layers, mesh):
    rng = np.random.default_rng(seed)
    sizes = rng.lognormal(0, 1.5, (3, n_layers)) * 1e6
    return ShardingProblem(
        compute_s=rng.lognormal(-7, 1, n_layers),
        input_bytes=sizes[0],
        output_bytes=sizes[1],
        weight_bytes=sizes[2],
        mesh=mesh,
        latency_s=tuple(rng.uniform(1e-6, 1e-5, len(mesh))),
        seconds_per_byte=tuple(1 / rng.uniform(1e9, 1e11, len(mesh))),
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_layers=st.integers(1, 5))
def test_dynamic_programming_equals_every_combination(seed, n_layers):
    problem = random_problem(seed, n_layers, (4,))
    every = itertools.product(range(3), repeat=n_layers)
    assert shard_exactly(problem).step_s == pytest.approx(min(map(problem.step_s, every)))


def test_coordinate_descent_comes_near_the_exact_answer():
    gaps = []
    for seed in range(30):
        problem = random_problem(seed, 12, (4, 2) if seed % 2 else (8,))
        exact, found = shard_exactly(problem), search_shardings(problem)
        assert found.step_s >= exact.step_s * (1 - 1e-9)
        assert found.step_s <= found.data_s * (1 + 1e-9)  # begins with all by samples
        gaps.append(found.step_s / exact.step_s - 1)
    assert np.mean(gaps) < 0.01 and max(gaps) < 0.1


def test_large_weights_are_divided_and_large_activations_are_not():
    problem = sharding_problem(
        load_workload("vgg16").graph(), load_cluster("abci"), (4,), global_batch=16
    )
    found = dict(zip(problem.names, shard_exactly(problem).signatures, strict=True))
    wide = max(zip(problem.weight_bytes, problem.names, strict=True))[1]
    assert found[wide] != ("data",)  # the first linear map holds most weights
    assert found[problem.names[0]] == ("data",)


def test_small_weights_leave_all_by_samples():
    ones = np.ones(4)
    problem = ShardingProblem(
        compute_s=ones, input_bytes=1e9 * ones, output_bytes=1e9 * ones, weight_bytes=ones,
        mesh=(4,), latency_s=(1e-6,), seconds_per_byte=(1e-10,),
    )  # fmt: skip
    found = shard_exactly(problem)
    assert set(found.signatures) == {("data",)} and found.step_s == pytest.approx(found.data_s)


def test_a_column_then_a_row_need_no_conversion():
    problem = random_problem(0, 2, (4,))
    column, row = problem.signatures.index(("column",)), problem.signatures.index(("row",))
    assert problem.between_s(0)[column, row] == 0.0  # as Megatron divides a pair of maps
    assert problem.between_s(0)[row, row] > 0.0


def test_shapes_must_agree():
    with pytest.raises(InvalidInputError, match="Every axis"):
        ShardingProblem(
            compute_s=np.ones(1), input_bytes=np.ones(1), output_bytes=np.ones(1),
            weight_bytes=np.ones(1), mesh=(2, 2), latency_s=(0.0,), seconds_per_byte=(0.0,),
        )  # fmt: skip
