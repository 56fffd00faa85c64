"""ParaDL's forms as printed, on its own layer tables."""

from __future__ import annotations

import numpy as np
import pytest

from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.oracle import ParadlLayers, ParadlRun, paradl_epoch, paradl_layers, pipeline_time
from paceline.oracle._paradl import FORMS, greedy_stages
from paceline.workloads import GraphLayer, LayerGraph

IMAGES = 1_280_000
NEAR_S = 2 * (20e-6 + 110e-9) + 90e-9  # up to 68 devices


def run(**parts: float) -> ParadlRun:
    links = {"latency_s": NEAR_S, "s_per_byte": 1 / 12.5e9}
    return ParadlRun(n_samples=IMAGES, **{**links, **parts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("network", "device_batch", "n_devices", "compute_s", "communication_s"),
    [
        ("resnet50", 64, 64, 262, 18469),
        ("vgg16", 32, 32, 694, 18543),
        ("vgg16", 32, 64, 535, 20823),
    ],
)
def test_filter_parallelism_has_the_printed_digits(
    network: str, device_batch: int, n_devices: int, compute_s: int, communication_s: int
) -> None:
    costs = paradl_epoch(
        "filter", paradl_layers(network), run(global_batch=device_batch, n_devices=n_devices)
    )
    assert round(costs.compute_s) == compute_s
    assert round(costs.communication_s) == communication_s
    assert costs.max_devices == 64


def test_its_tables_are_not_the_networks_that_are_trained() -> None:
    assert paradl_layers("resnet50").weights.sum() == 22_734_016
    assert paradl_layers("vgg16").weights.sum() == 169_801_408
    with pytest.raises(UnknownNameError, match="resnet50"):
        paradl_layers("resnet5")


@pytest.fixture
def small() -> ParadlLayers:
    sizes = [(3, 8), (8, 8), (8, 16)]
    layers = tuple(
        GraphLayer(
            name=f"conv{i}",
            kind="conv",
            block=f"conv{i}",
            input_shape=(c, 4, 4),
            output_shape=(f, 4, 4),
            weight_shape=(f, c, 3, 3),
            n_parameters=9 * c * f,
            forward_flop=2 * 9 * c * f * 16,
            backward_flop=4 * 9 * c * f * 16,
            input_bytes=4 * c * 16,
            output_bytes=4 * f * 16,
            weight_bytes=4 * 9 * c * f,
        )
        for i, (c, f) in enumerate(sizes)
    )
    return ParadlLayers.from_graph(LayerGraph(name="small", layers=layers), sample_s=1e-3)


def test_a_graph_becomes_a_table(small: ParadlLayers) -> None:
    assert small.compute_s.sum() == pytest.approx(1e-3)
    assert small.weights.tolist() == [216, 576, 1152]
    assert small.halo.tolist() == [3 * 4, 8 * 4, 8 * 4]
    assert small.split.all()


@pytest.mark.parametrize("strategy", FORMS)
def test_one_device_communicates_nothing_and_computes_all(
    strategy: str, small: ParadlLayers
) -> None:
    costs = paradl_epoch(strategy, small, ParadlRun(n_samples=640, global_batch=64))
    assert costs.compute_s == pytest.approx(0.64)
    assert costs.communication_s == pytest.approx(0.0)


@pytest.mark.parametrize("strategy", ["data", "filter", "channel", "spatial"])
def test_two_devices_share_the_work_and_hold_less(strategy: str, small: ParadlLayers) -> None:
    one = paradl_epoch("serial", small, ParadlRun(n_samples=640, global_batch=64))
    two = paradl_epoch(strategy, small, run(global_batch=64, n_devices=2))
    assert two.compute_s * 640 / IMAGES == pytest.approx(one.compute_s / 2)
    assert two.communication_s > 0
    assert two.memory_bytes < one.memory_bytes


def test_data_parallelism_is_a_ring_of_all_weights(small: ParadlLayers) -> None:
    costs = paradl_epoch("data", small, run(global_batch=64, n_devices=4))
    weights = small.weights.sum() * 4
    ring = 2 * 3 * (NEAR_S + weights / 12.5e9 / 4)
    assert costs.communication_s == pytest.approx(IMAGES / 64 * ring)


def test_a_pipeline_is_the_printed_form(small: ParadlLayers) -> None:
    stages = greedy_stages(small, 2)
    parts = [small.compute_s[a:b].sum() for a, b in stages]
    costs = paradl_epoch("pipeline", small, run(global_batch=64, n_devices=2, micro_batches=8))
    step = pipeline_time(np.array(parts) * 8 / 3, np.array(parts) * 16 / 3, 8, form="paradl")
    assert costs.compute_s == pytest.approx(IMAGES / 64 * float(step))
    whole = paradl_epoch("layer", small, run(global_batch=64, n_devices=2))
    assert whole.compute_s > costs.compute_s


@pytest.mark.parametrize("n_stages", [1, 2, 3])
def test_greedy_stages_cover_all_layers(n_stages: int, small: ParadlLayers) -> None:
    stages = greedy_stages(small, n_stages)
    assert len(stages) == n_stages
    assert [i for a, b in stages for i in range(a, b)] == [0, 1, 2]


def test_a_hybrid_of_one_replica_is_filter_parallelism(small: ParadlLayers) -> None:
    links = {"inner_latency_s": NEAR_S, "inner_s_per_byte": 1 / 12.5e9}
    hybrid = paradl_epoch(
        "data+filter", small, run(global_batch=64, n_devices=4, inner=4, **links)
    )
    alone = paradl_epoch("filter", small, run(global_batch=64, n_devices=4))
    assert hybrid.compute_s == pytest.approx(alone.compute_s)
    assert hybrid.communication_s == pytest.approx(alone.communication_s)
    assert hybrid.total_s == hybrid.compute_s + hybrid.communication_s


def test_too_many_devices_are_refused(small: ParadlLayers) -> None:
    with pytest.raises(InfeasibleError, match="at most 8 devices here, but got 16"):
        paradl_epoch("filter", small, run(global_batch=64, n_devices=16))
    with pytest.raises(InvalidInputError, match="`inner` must divide"):
        run(global_batch=64, n_devices=4, inner=3)
    with pytest.raises(UnknownNameError, match="Did you mean 'filter'"):
        paradl_epoch("fliter", small, run(global_batch=64))
