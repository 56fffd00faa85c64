"""What must hold of any network on any cluster under any strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.clusters import Cluster, Device, Level, Link
from paceline.oracle import sweep
from paceline.oracle._result import MEMORY, SECONDS
from paceline.scenario import SCHEDULES, Strategy, StrategyTable
from paceline.workloads import LayerGraph, load_workload

NETWORKS = {
    "resnet18": {"image_size": 64, "n_classes": 10, "filters": 16},
    "gpt": {},
    "lenet5": {},
    "mlp": {},
}
# what each takes, with room for a doubling
DEGREES = {
    "resnet18": {"spatial": 2, "filter": 4, "channel": 4, "pipeline": 8},
    "gpt": {"tensor": 2, "context": 4, "pipeline": 4},
    "lenet5": {"filter": 4, "pipeline": 4},
    "mlp": {"tensor": 4, "filter": 4, "pipeline": 2},
}
BATCH = 256  # by device or in all; every product of degrees here divides it


@cache
def graph_of(name: str) -> LayerGraph:
    return load_workload(name).graph(NETWORKS[name])


def powers(most: int) -> st.SearchStrategy[int]:
    return st.sampled_from([2**i for i in range(most.bit_length()) if 2**i <= most])


@st.composite
def questions(draw: st.DrawFn) -> tuple[LayerGraph, Strategy]:
    name = draw(st.sampled_from(sorted(NETWORKS)))
    degrees = {n: draw(powers(most)) for n, most in DEGREES[name].items() if draw(st.booleans())}
    deep = degrees.get("pipeline", 1) > 1
    strategy = Strategy(
        **degrees,
        data=draw(powers(4)),
        micro_batches=draw(powers(4)),
        shard=draw(st.integers(0, 1 if deep else 3)),
        schedule=draw(st.sampled_from([s for s in SCHEDULES if s != "interleaved"])),
        recompute=draw(st.booleans()),
    )
    return graph_of(name), strategy


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[LayerGraph, Strategy]:
    strategy = Strategy(
        data=draw(powers(8)),
        pipeline=2,
        micro_batches=2 * draw(powers(4)),
        shard=draw(st.integers(0, 1)),
        schedule="interleaved",
        virtual_stages=2,
    )
    return graph_of(draw(st.sampled_from(["resnet18", "gpt", "lenet5"]))), strategy


rates = st.floats(0.1, 10.0)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    device = Device(
        name="device",
        peak_flops={"float32": 1e12 * draw(rates)},
        memory_bytes=1e11,
        memory_bandwidth=1e11 * draw(rates),
        efficiency={"default": 0.4, "conv": 0.6},
        half_flop=1e6 * draw(rates),
        launch_s=1e-6 * draw(rates),
    )
    inner = Link(name="inner", latency_s=1e-6 * draw(rates), bandwidth=1e10 * draw(rates))
    outer = Link(
        name="outer",
        latency_s=1e-5 * draw(rates),
        bandwidth=1e9 * draw(rates),
        floor_s=1e-5 * draw(st.floats(0.0, 2.0)),
        contention=draw(st.floats(1.0, 4.0)),
    )
    size = draw(st.sampled_from([1, 2, 4, 8]))
    levels = (
        Level(name="node", size=size, link=inner),
        Level(name="all", size=0, link=outer, oversubscription=draw(st.floats(1.0, 3.0))),
    )
    return Cluster(name="drawn", device=device, levels=levels)


def with_link(cluster: Cluster, level: int, **changes: float) -> Cluster:
    levels = list(cluster.levels)
    link = levels[level].link
    new = {name: getattr(link, name) * factor for name, factor in changes.items()}
    levels[level] = replace(levels[level], link=replace(link, **new))
    return replace(cluster, levels=tuple(levels))


def with_device(cluster: Cluster, **changes: float) -> Cluster:
    device = cluster.device
    new = {name: getattr(device, name) * factor for name, factor in changes.items()}
    return replace(cluster, device=replace(device, **new))


def faster_compute(cluster: Cluster, factor: float) -> Cluster:
    peak = {name: value * factor for name, value in cluster.device.peak_flops.items()}
    return replace(cluster, device=replace(cluster.device, peak_flops=peak))


IMPROVEMENTS: dict[str, Callable[[Cluster, float], Cluster]] = {
    "more bandwidth inside": lambda c, k: with_link(c, 0, bandwidth=k),
    "more bandwidth outside": lambda c, k: with_link(c, 1, bandwidth=k),
    "less latency inside": lambda c, k: with_link(c, 0, latency_s=1 / k),
    "less latency outside": lambda c, k: with_link(c, 1, latency_s=1 / k),
    "more FLOP/s": faster_compute,
    "more memory bandwidth": lambda c, k: with_device(c, memory_bandwidth=k),
    "shorter launches": lambda c, k: with_device(c, launch_s=1 / k),
    "less work for half the rate": lambda c, k: with_device(c, half_flop=1 / k),
}


def step_s(graph: LayerGraph, cluster: Cluster, strategy: Strategy) -> float:
    result = sweep(graph, cluster, [strategy], global_batch=BATCH)
    assert result.is_possible[0], result.why(0)
    return float(result.step_s[0])


@pytest.mark.parametrize("name", IMPROVEMENTS)
@settings(max_examples=40, deadline=None)
@given(
    question=st.one_of(questions(), interleaved()),
    cluster=clusters(),
    factor=st.floats(1.0, 20.0),
)
def test_a_better_machine_never_slows_a_step(
    name: str, question: tuple[LayerGraph, Strategy], cluster: Cluster, factor: float
) -> None:
    graph, strategy = question
    better = IMPROVEMENTS[name](cluster, factor)
    before, after = step_s(graph, cluster, strategy), step_s(graph, better, strategy)
    assert after <= before * (1 + 1e-9)


def test_devices_count_where_a_link_makes_an_interleaved_step() -> None:
    """A faster device must gain as much in the pipeline as gradients then hide behind less."""
    slow_link = Link(name="link", latency_s=0.0, bandwidth=1e9)
    fast_link = replace(slow_link, bandwidth=12e9)
    slow = Cluster(
        name="drawn",
        device=Device(
            name="device",
            peak_flops={"float32": 1.5e12},
            memory_bytes=1e11,
            memory_bandwidth=2e12,
        ),
        levels=(
            Level(name="node", size=4, link=fast_link),
            Level(name="all", size=0, link=slow_link),
        ),
    )
    fast = with_device(faster_compute(slow, 3.0), memory_bandwidth=3.0)
    pieces = {"schedule": "interleaved", "virtual_stages": 2, "micro_batches": 2}
    strategy = Strategy(data=3, pipeline=2, **pieces)
    steps = [
        sweep(graph_of("lenet5"), cluster, [strategy], global_batch=48).step_s[0]
        for cluster in (slow, fast)
    ]
    assert steps[1] <= steps[0]


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(sorted(NETWORKS)),
    cluster=clusters(),
    micro_batches=powers(8),
    recompute=st.booleans(),
)
def test_one_device_communicates_nothing(
    name: str, cluster: Cluster, micro_batches: int, recompute: bool
) -> None:
    strategy = Strategy(micro_batches=micro_batches, recompute=recompute)
    result = sweep(graph_of(name), cluster, [strategy], global_batch=BATCH)
    assert result.communication_s[0] == 0 == result["bubble_s"][0]
    assert result["gradient_total_s"][0] == 0
    assert not any(result[n][0] for n in result.figures if n.endswith("payload_bytes"))


@settings(max_examples=60, deadline=None)
@given(question=questions(), weak=st.booleans(), data=st.data())
def test_doubling_devices_never_more_than_doubles_memory(
    question: tuple[LayerGraph, Strategy], weak: bool, data: st.DataObject
) -> None:
    """Of a pipeline, at the same size of a micro-batch, and not from one stage to two: only a
    pipeline holds several micro-batches at once.
    """
    graph, strategy = question
    known = ["data", *DEGREES[graph.name]]
    name = data.draw(st.sampled_from(known))
    if name == "pipeline":
        strategy = replace(strategy, pipeline=max(strategy.pipeline, 2), shard=0)
    twice = replace(strategy, **{name: 2 * getattr(strategy, name)})
    if name == "pipeline" and weak:
        twice = replace(twice, micro_batches=2 * strategy.micro_batches)
    table = StrategyTable.from_strategies([strategy, twice])
    batch = BATCH * table.n_devices if weak else np.full(2, BATCH)
    result = sweep(graph, ROOMY, table, global_batch=batch)
    if result.is_possible.all():
        # a stage without weights, whose activations nothing divides, holds just twice as much
        assert result.memory_bytes[1] <= 2 * result.memory_bytes[0]


ROOMY = Cluster(
    name="roomy",
    device=Device(
        name="device", peak_flops={"float32": 1e12}, memory_bytes=1e12, memory_bandwidth=1e11
    ),
    levels=(Level(name="all", size=0, link=Link(name="link", latency_s=1e-6, bandwidth=1e10)),),
)


@settings(max_examples=60, deadline=None)
@given(question=questions(), cluster=clusters())
def test_parts_sum_to_the_whole(question: tuple[LayerGraph, Strategy], cluster: Cluster) -> None:
    graph, strategy = question
    result = sweep(graph, cluster, [strategy], global_batch=BATCH)
    parts = [float(result[name][0]) for name in SECONDS]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(float(result.step_s[0]))
    held = [float(result[name][0]) for name in MEMORY]
    assert min(held) >= 0
    assert sum(held) == pytest.approx(float(result.memory_bytes[0]))
    assert result.compute_s[0] + result["bubble_s"][0] + result.communication_s[0] == (
        pytest.approx(float(result.step_s[0]))
    )
    assert result["gradient_s"][0] <= result["gradient_total_s"][0] * (1 + 1e-9)


@settings(max_examples=20, deadline=None)
@given(cluster=clusters(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_questions_changes_nothing(cluster: Cluster, seed: int) -> None:
    table = StrategyTable.product(
        data=[1, 2, 4], filter=[1, 4], pipeline=[1, 4], micro_batches=[1, 4], shard=[0, 1]
    )
    order = np.random.default_rng(seed).permutation(len(table))
    graph = graph_of("resnet18")
    plain = sweep(graph, cluster, table, global_batch=BATCH)
    mixed = sweep(graph, cluster, table.take(order), global_batch=BATCH)
    for name, values in plain.figures.items():
        np.testing.assert_allclose(mixed[name], values[order], rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(question=questions(), cluster=clusters(), factor=st.floats(0.1, 10.0))
def test_time_scales_with_its_unit(
    question: tuple[LayerGraph, Strategy], cluster: Cluster, factor: float
) -> None:
    """A clock that runs `factor` times as fast makes every figure of time so much smaller."""
    graph, strategy = question
    quick = faster_compute(cluster, factor)
    quick = with_device(quick, memory_bandwidth=factor, launch_s=1 / factor)
    for level in (0, 1):
        quick = with_link(quick, level, bandwidth=factor, latency_s=1 / factor, floor_s=1 / factor)
    seconds = step_s(graph, quick, strategy)
    assert seconds * factor == pytest.approx(step_s(graph, cluster, strategy))


@settings(max_examples=30, deadline=None)
@given(question=questions(), cluster=clusters())
def test_more_samples_take_longer_and_more_memory(
    question: tuple[LayerGraph, Strategy], cluster: Cluster
) -> None:
    graph, strategy = question
    result = sweep(graph, cluster, [strategy] * 2, global_batch=[BATCH, 2 * BATCH])
    assert result.step_s[1] >= result.step_s[0]
    assert result.memory_bytes[1] >= result.memory_bytes[0]


@settings(max_examples=30, deadline=None)
@given(question=questions())
def test_devices_that_nobody_asks_about_change_nothing(
    question: tuple[LayerGraph, Strategy],
) -> None:
    """All devices are equal, so that a larger machine around the same ones is the same."""
    graph, strategy = question
    larger = replace(ROOMY, n_devices=2**20)
    assert step_s(graph, ROOMY, strategy) == step_s(graph, larger, strategy)


@pytest.mark.parametrize("name", sorted(NETWORKS))
@pytest.mark.parametrize("weak", [True, False])
def test_doubling_replicas_never_doubles_memory(name: str, weak: bool) -> None:
    table = StrategyTable.from_columns(data=[2**i for i in range(8)])
    batch = BATCH * table.n_devices if weak else np.full(len(table), BATCH)
    held = sweep(graph_of(name), ROOMY, table, global_batch=batch).memory_bytes
    assert (held[1:] < 2 * held[:-1]).all()
