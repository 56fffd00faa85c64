"""Small networks and machines that every test of the oracle may ask for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.clusters import Cluster, Device, Level, Link
from paceline.workloads import GraphLayer, LayerGraph, load_workload

DEVICE = Device(
    name="test device",
    peak_flops={"float32": 1e12, "float16": 4e12},
    memory_bytes=2e9,
    memory_bandwidth=1e11,
    efficiency={"default": 0.5, "conv": 0.6},
    half_flop=1e6,
    launch_s=1e-6,
)
NVLINK = Link(name="inside", latency_s=5e-6, bandwidth=5e10)
NETWORK = Link(name="outside", latency_s=2e-5, bandwidth=1e10, contention=2.0)
CLUSTER = Cluster(
    name="test",
    device=DEVICE,
    levels=(
        Level(name="node", size=4, link=NVLINK),
        Level(name="cluster", size=0, link=NETWORK, oversubscription=2.0),
    ),
    price_per_device_hour=2.0,
)


def convolution(name: str, n_in: int, n_out: int, side: int, *, first: bool = False) -> GraphLayer:
    """A 3 x 3 convolution of side x side places."""
    parameters = n_in * n_out * 9
    flop = 2 * parameters * side * side
    return GraphLayer(
        name=name,
        kind="conv",
        block=name,
        input_shape=(n_in, side, side),
        output_shape=(n_out, side, side),
        weight_shape=(n_out, n_in, 3, 3),
        n_parameters=parameters,
        forward_flop=flop,
        backward_flop=flop if first else 2 * flop,
        input_bytes=4 * n_in * side * side,
        output_bytes=4 * n_out * side * side,
        weight_bytes=4 * parameters,
        stored_bytes=4 * n_in * side * side,
        splits=("spatial", "filter", "channel"),
    )


def linear(name: str, n_in: int, n_out: int) -> GraphLayer:
    """A linear map of one vector."""
    flop = 2 * n_in * n_out
    return GraphLayer(
        name=name,
        kind="linear",
        block=name,
        input_shape=(n_in,),
        output_shape=(n_out,),
        weight_shape=(n_out, n_in),
        n_parameters=n_in * n_out,
        forward_flop=flop,
        backward_flop=2 * flop,
        input_bytes=4 * n_in,
        output_bytes=4 * n_out,
        weight_bytes=4 * n_in * n_out,
        stored_bytes=4 * n_in,
        splits=("filter", "channel"),
    )


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return CLUSTER


@pytest.fixture(scope="session")
def chain() -> LayerGraph:
    """Four convolutions on 16 x 16 places and a linear map: nothing may not be divided."""
    layers = [convolution("conv1", 3, 32, 16, first=True)]
    layers += [convolution(f"conv{i}", 32, 32, 16) for i in (2, 3, 4)]
    last = linear("output", 32, 16)
    return LayerGraph(name="chain", layers=(*layers, last))


@pytest.fixture(scope="session")
def resnet() -> LayerGraph:
    return load_workload("resnet18").graph({"image_size": 64, "n_classes": 10, "filters": 16})


@pytest.fixture(scope="session")
def gpt() -> LayerGraph:
    return load_workload("gpt").graph()


@pytest.fixture(scope="session")
def crowded() -> Cluster:
    """Two cores that workers share."""
    level = replace(CLUSTER.levels[0], size=0)
    return replace(CLUSTER, levels=(level,), n_cores=2, price_per_device_hour=None)
