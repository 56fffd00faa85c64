"""Paleo's formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from paceline.clusters import Device
from paceline.errors import UnknownNameError
from paceline.oracle import (
    paleo_exchange_time,
    paleo_hybrid_time,
    paleo_layer_times,
    paleo_step_time,
)
from paceline.workloads import GraphLayer, LayerGraph

K80 = Device(name="K80", peak_flops={"float32": 5600e9}, memory_bytes=12e9, memory_bandwidth=480e9)


@pytest.fixture
def graph() -> LayerGraph:
    def layer(name: str, kind: str, flop: int, n_weights: int) -> GraphLayer:
        return GraphLayer(
            name=name,
            kind=kind,
            block=name,
            input_shape=(8,),
            output_shape=(8,),
            n_parameters=n_weights,
            forward_flop=flop,
            backward_flop=2 * flop,
            input_bytes=1000,
            output_bytes=2000,
            weight_bytes=4 * n_weights,
        )

    layers = (
        layer("conv", "conv", 10**6, 500),
        layer("relu", "activation", 0, 0),
        layer("head", "linear", 10**5, 10**4),
    )
    return LayerGraph(name="small", layers=layers)


def test_a_layer_adds_compute_and_memory(graph: LayerGraph) -> None:
    forward, backward, update = paleo_layer_times(graph, K80, 32, share=0.5)
    moved = 32 * 3000 + 2000
    assert forward[0] == pytest.approx(32e6 / 2800e9 + moved / 240e9)
    assert backward[0] == pytest.approx(64e6 / 2800e9 + 2 * moved / 240e9)
    assert backward[1] == pytest.approx(32 * 3000 / 240e9)
    assert update[0] == pytest.approx(1000 / 2800e9 + 6000 / 240e9)
    assert update[1] == 0


def test_the_lower_bound_overlaps_them(graph: LayerGraph) -> None:
    added = paleo_layer_times(graph, K80, 32)
    larger = paleo_layer_times(graph, K80, 32, overlap=True)
    for sum_s, max_s in zip(added, larger, strict=True):
        assert (max_s <= sum_s).all()
        assert (2 * max_s >= sum_s - 1e-18).all()


def test_many_batches_at_once(graph: LayerGraph) -> None:
    many = paleo_layer_times(graph, K80, [1, 2, 4])[0]
    np.testing.assert_allclose(many[2], paleo_layer_times(graph, K80, 4)[0])


@pytest.mark.parametrize(
    ("scheme", "factor"), [("one_to_all", 14), ("tree", 6), ("butterfly", 3), ("mixing", 1)]
)
def test_exchanges_move_the_printed_multiples(scheme: str, factor: int) -> None:
    assert paleo_exchange_time(scheme, 1e9, 8, 2e9, share=0.5) == pytest.approx(factor)
    assert paleo_exchange_time(scheme, 1e9, 1, 2e9) == 0


def test_weak_scaling_keeps_the_workers_batch_and_strong_divides_it(graph: LayerGraph) -> None:
    weak = paleo_step_time(graph, K80, 4, 30, 1e9)
    strong = paleo_step_time(graph, K80, 4, 30, 1e9, scaling="strong")
    exchange = float(paleo_exchange_time("tree", graph.total("weight_bytes"), 4, 1e9))
    parts = paleo_layer_times(graph, K80, math.ceil(30 / 4))
    assert strong == pytest.approx(sum(p.sum() for p in parts) + exchange)
    assert weak > strong
    with pytest.raises(UnknownNameError, match="weak"):
        paleo_step_time(graph, K80, 4, 30, 1e9, scaling="week")


def test_the_hybrid_exchanges_only_what_is_before_the_first_linear_layer(
    graph: LayerGraph,
) -> None:
    shares = (0.5, 1.0)
    one = paleo_hybrid_time(graph, K80, 1, 32, 1e9, share=shares[0], communication_share=shares[1])
    parts = paleo_layer_times(graph, K80, 32, share=0.5)
    assert one == pytest.approx(sum(p.sum() for p in parts))
    four = paleo_hybrid_time(
        graph, K80, 4, 32, 1e9, share=shares[0], communication_share=shares[1]
    )
    head = parts[2][2]
    wanted = one - head + head / 4 + 2 * 2 * 2000 / 1e9 + 3 * 32 * 1000 / 1e9
    assert four == pytest.approx(wanted)


def test_unknown_exchanges_are_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'butterfly'"):
        paleo_exchange_time("buterfly", 1.0, 2, 1.0)
