"""Devices that differ: uneven stages, unequal shares, and who takes which stage."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.clusters import DeviceGroup, Level, Link, load_cluster
from paceline.errors import InvalidInputError
from paceline.oracle import cut_step
from paceline.planners import (
    Placement,
    link_matrices,
    place_stages,
    plan_training,
    search_plans,
    share_out,
)
from paceline.planners._links import improve_placement, placement_problem
from paceline.planners._mixed import work_out_mixed
from paceline.planners._task import Task
from paceline.scenario import Strategy
from paceline.workloads import load_workload


def mixed(*groups, **changes):
    total = sum(group.count for group in groups)
    return replace(load_cluster("dgx-1"), devices=groups, n_devices=total, **changes)


@pytest.fixture(scope="module")
def graph():
    return load_workload("resnet50").graph()


FAST_AND_SLOW = (DeviceGroup(count=2), DeviceGroup(count=2, speed=0.5))


def test_replicas_on_faster_devices_take_more_samples(graph):
    plan = plan_training(graph, mixed(*FAST_AND_SLOW), 4, 96, names=["data"], use_all=True)
    assert plan.replica_batches == (32, 32, 16, 16)
    assert [row[0] for row in plan.placement] == [0, 1, 2, 3]
    assert any("less than with equal shares" in reason for reason in plan.reasons)
    even = cut_step(graph, load_cluster("dgx-1"), Strategy(data=4), global_batch=96)
    slow = (even.figures["forward_s"] + even.figures["backward_s"]) / 0.5
    assert plan.predicted["step_s"] < 0.75 * slow  # equal shares wait for the slow devices


def test_faster_devices_hold_more_of_the_work(graph):
    found = search_plans(
        graph, mixed(*FAST_AND_SLOW), 4, 96,
        strategies=[Strategy(pipeline=4, micro_batches=24)],
    )  # fmt: skip
    run = found.run
    assert run.busy_s.max() < 1.2 * run.busy_s.mean()
    flop = graph.column("forward_flop")
    shares = np.array([flop[s.first : s.end].sum() for s in found.plan.stages])
    speeds = np.array([1.0, 1.0, 0.5, 0.5])[list(found.plan.placement[0])]
    assert shares[speeds == 1.0].sum() > 1.5 * shares[speeds == 0.5].sum()
    assert any("Stages are uneven" in reason for reason in found.plan.reasons)


def test_replicas_are_alike_or_unlike_whichever_is_faster(graph):
    strategy = Strategy(data=2, pipeline=2, micro_batches=8)
    task = Task(graph=graph, cluster=mixed(*FAST_AND_SLOW), n_devices=4, global_batch=96)
    found = work_out_mixed(task, strategy)
    speeds = np.array([1.0, 1.0, 0.5, 0.5])
    rows = [tuple(speeds[list(row)]) for row in found.placement]
    is_alike = rows[0] == rows[1] and found.replica_batches == (48, 48)
    is_unlike = rows == [(1.0, 1.0), (0.5, 0.5)] and found.replica_batches[0] > 48
    assert is_alike or is_unlike


def test_a_small_device_gets_no_stage_that_it_cannot_hold(graph):
    strategy = Strategy(pipeline=2, micro_batches=8)
    roomy = search_plans(graph, mixed(DeviceGroup(count=2)), 2, 64, strategies=[strategy])
    small = 0.8 * max(roomy.memory_bytes)
    groups = (DeviceGroup(count=1), DeviceGroup(count=1, memory_bytes=small))
    found = search_plans(graph, mixed(*groups), 2, 64, strategies=[strategy])
    held = dict(zip(found.plan.placement[0], found.memory_bytes, strict=True))
    assert held[1] <= small


def test_the_fastest_devices_are_taken_first(graph):
    groups = (DeviceGroup(count=2, speed=0.25), DeviceGroup(count=2))
    plan = plan_training(graph, mixed(*groups), 2, 64, names=["data"], use_all=True)
    assert sorted(row[0] for row in plan.placement) == [2, 3]


def test_slow_devices_are_left_out_where_they_only_hold_up(graph):
    groups = (DeviceGroup(count=2), DeviceGroup(count=2, speed=0.01))
    plan = plan_training(graph, mixed(*groups), 4, 64, names=["filter"])
    assert plan.strategy.n_devices == 2


@settings(max_examples=100, deadline=None)
@given(
    paces=st.lists(st.floats(0.1, 10), min_size=1, max_size=6),
    extra=st.integers(0, 60),
    multiple=st.sampled_from([1, 2, 4]),
)
def test_shares_are_whole_and_the_slowest_could_not_be_faster(paces, extra, multiple):
    pace, pieces = np.array(paces), len(paces) + extra
    shares = np.array(share_out(pieces * multiple, pace, multiple))
    assert shares.sum() == pieces * multiple and (shares % multiple == 0).all()
    assert shares.min() >= multiple
    slowest = (shares / pace).max()
    bound = pieces * multiple / pace.sum()
    forced = (multiple / pace).max()  # everybody takes one piece
    assert slowest <= max(bound, forced) + multiple / pace.min() * (1 + 1e-9)


def test_fewer_pieces_than_replicas_are_refused():
    with pytest.raises(InvalidInputError, match="at least one multiple"):
        share_out(4, np.ones(3), 2)


def test_links_are_those_of_the_innermost_level_that_joins_two_devices():
    cluster = load_cluster("abci")
    latency, per_byte = link_matrices(cluster, 8)
    inner, outer = cluster.levels[0].link, cluster.levels[1].link
    assert latency[0, 0] == 0 and per_byte[3, 3] == 0
    assert per_byte[0, 3] == pytest.approx(1 / inner.bandwidth)
    assert per_byte[0, 4] == pytest.approx(1 / outer.bandwidth)
    assert (latency == latency.T).all()


def far_apart(bandwidth=1e9):
    near = Level(name="node", size=2, link=Link(name="near", latency_s=1e-6, bandwidth=1e11))
    far = Level(name="cluster", size=0, link=Link(name="far", latency_s=1e-4, bandwidth=bandwidth))
    return near, far


def test_placement_keeps_heavy_transfers_on_fast_links(graph):
    cluster = replace(load_cluster("dgx-1"), levels=far_apart())
    task = Task(graph=graph, cluster=cluster, n_devices=4, global_batch=64)
    from paceline.planners._candidates import work_out

    candidate = work_out(task, Strategy(pipeline=4, micro_batches=8))
    worse = replace(candidate, placement=((0, 2, 1, 3),))  # every hand-over crosses
    better = improve_placement(task, worse)
    problem = placement_problem(task, candidate)

    def seconds(c):
        return float(problem.step_seconds(np.array(c.placement)[None])[0])

    assert seconds(better) < seconds(worse)
    assert sorted(better.placement[0]) == [0, 1, 2, 3]
    assert any("placement" in note for note in better.notes)


def test_the_placement_of_stages_is_one_to_a_device(graph):
    cluster = replace(load_cluster("dgx-1"), levels=far_apart())
    task = Task(graph=graph, cluster=cluster, n_devices=8, global_batch=64)
    from paceline.planners._candidates import work_out

    candidate = work_out(task, Strategy(data=2, pipeline=4, micro_batches=8))
    problem = placement_problem(task, candidate)
    first = np.array(candidate.placement)
    found = place_stages(problem, first)
    assert isinstance(found, Placement)
    assert sorted(d for row in found.devices for d in row) == list(range(8))
    assert found.step_s <= float(problem.step_seconds(first[None])[0]) * (1 + 1e-12)
