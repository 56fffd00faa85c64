"""What the oracle says a step holds is what its tensors take, counted as they come and go."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.executors.divided import Pools
from tests.oracle.conftest import CLUSTER
from tests.oracle.real_steps import CPU, foretold, graph_of, real_job

from paceline.oracle import sweep
from paceline.scenario import Strategy

torch = pytest.importorskip("torch")

NETWORKS: dict[str, dict[str, Any]] = {
    "lenet5": {},
    "mlp": {},
    "autoencoder": {},
    "alexnet": {"image_size": 64, "n_classes": 10},
    "resnet18": {"image_size": 32, "n_classes": 10, "filters": 16},
    "resnet50": {"image_size": 32, "n_classes": 10, "filters": 8},
    "resattnet18": {"volume": 32, "filters": 8},
    "cosmoflow": {"volume": 32, "filters": 4},
    "gpt": {"layers": 2, "width": 64, "heads": 4, "length": 64, "vocabulary": 64},
    "gpt2": {"layers": 2, "width": 48, "heads": 4, "length": 32, "vocabulary": 1000},
    "llama-1b": {
        "layers": 2,
        "width": 64,
        "heads": 4,
        "key_heads": 2,
        "inner": 128,
        "vocabulary": 100,
        "length": 64,
    },
}


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    pools = Pools()
    yield pools
    pools.close()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("n", [4, 32])
def test_a_step_holds_what_the_oracle_says(
    pools: Pools, name: str, optimizer: str, n: int
) -> None:
    step = {"global_batch": n, "optimizer": optimizer}
    record = pools.run(real_job(name, NETWORKS[name], Strategy(), **step))
    held = foretold(name, NETWORKS[name], Strategy(), **step).memory_bytes[0]
    assert held == pytest.approx(record.workers[0].tensor_peak_bytes, rel=0.03)


def test_gradients_that_are_added_up_stay_between_micro_batches(pools: Pools) -> None:
    values, strategy = NETWORKS["resnet18"], Strategy(micro_batches=4)
    record = pools.run(real_job("resnet18", values, strategy, global_batch=32))
    held = foretold("resnet18", values, strategy, global_batch=32).memory_bytes[0]
    assert held == pytest.approx(record.workers[0].tensor_peak_bytes, rel=0.05)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_devices_that_update_all_tensors_at_once_hold_more(optimizer: str) -> None:
    graph = graph_of("mlp", {})
    one, all_ = (
        sweep(graph, cluster, [Strategy()], global_batch=8, optimizer=optimizer).memory_bytes[0]
        for cluster in (CPU, CLUSTER)
    )
    largest = max(np.prod(layer.weight_shape or (0,)) for layer in graph.layers)
    more = 4 * graph.total("n_parameters") - 2 * 4 * largest
    assert all_ - one == pytest.approx(more if optimizer == "adam" else 0)


def test_adam_of_all_tensors_at_once_makes_one_temporary_of_each() -> None:
    from paceline.executors.workers.torch_counting import StoragePeak

    network = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(4)))
    optimizer = torch.optim.Adam(network.parameters(), foreach=True)
    peaks = []
    for _ in range(2):
        network(torch.ones(1, 64)).sum().backward()
        state = [v for s in optimizer.state.values() for v in s.values()]
        known = [*network.parameters(), *(p.grad for p in network.parameters()), *state]
        with StoragePeak(known) as peak:
            before = peak.now
            optimizer.step()
        peaks.append(peak.peak - before)
        optimizer.zero_grad()
    weights = sum(p.numel() * 4 for p in network.parameters())
    assert peaks[1] == pytest.approx(weights, rel=0.01)


def test_recomputation_holds_inputs_of_units_and_one_unit(pools: Pools) -> None:
    graph = graph_of("resnet18", NETWORKS["resnet18"])
    plain, again = (
        sweep(graph, CPU, [Strategy(recompute=again)], global_batch=64, optimizer="sgd")
        for again in (False, True)
    )
    inputs = sum(graph.layers[first].input_bytes for first, _ in graph.units) * 64
    assert inputs * 0.5 < again["activations_bytes"][0] < plain["activations_bytes"][0]


class TestStoragePeak:
    """The counter itself, on tensors whose bytes are known."""

    @pytest.fixture
    def peak(self) -> Iterator[Any]:
        from paceline.executors.workers.torch_counting import StoragePeak

        gc.collect()
        with StoragePeak() as peak:
            yield peak

    def test_views_and_changes_in_place_take_nothing(self, peak: Any) -> None:
        a = torch.zeros(1000)
        b = a.view(10, 100)[2:]
        b.mul_(2).add_(1)
        assert (peak.now, peak.peak) == (4000, 4000)
        del a
        assert peak.now == 4000  # the view keeps all of it
        del b
        assert (peak.now, peak.peak) == (0, 4000)

    def test_temporaries_count_while_they_are_there(self, peak: Any) -> None:
        a = torch.zeros(1000)
        b = (a + 1) * 2  # a, its successor, and the product
        assert (peak.now, peak.peak) == (8000, 12000)
        del a, b

    def test_what_autograd_saved_goes_during_the_backward_pass(self, peak: Any) -> None:
        weight = torch.zeros(1000, requires_grad=True)
        loss = weight.exp().exp().sum()  # each keeps what it gives
        assert peak.now == 12004
        loss.backward()
        assert peak.now == 8004  # weight, gradient and loss
        del weight, loss
        assert peak.now == 0

    def test_gradients_that_are_let_go_are_gone(self, peak: Any) -> None:
        layer = torch.nn.Linear(10, 10, bias=False)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        layer(torch.ones(1, 10)).sum().backward()
        assert peak.now == 800
        optimizer.step()
        optimizer.zero_grad()
        assert peak.now == 400

    def test_storage_that_is_resized_is_counted_anew(self, peak: Any) -> None:
        a = torch.zeros(1000)
        a.untyped_storage().resize_(0)
        b = torch.zeros(500)
        assert (peak.now, peak.peak) == (2000, 4000)
        del a, b


def test_known_tensors_are_there_from_the_start() -> None:
    from paceline.executors.workers.torch_counting import StoragePeak

    known = torch.zeros(1000)
    with StoragePeak([known, known.view(10, 100)]) as peak:
        torch.zeros(10)
    assert peak.peak == 4040


def test_half_as_much_memory_is_held_in_half_precision() -> None:
    graph = graph_of("resnet18", NETWORKS["resnet18"])
    roomy = replace(CPU, device=replace(CPU.device, peak_flops={"float32": 1e12, "float64": 5e11}))
    single, double = (
        sweep(graph, roomy, [Strategy()], global_batch=64, precision=p, optimizer="sgd")
        for p in ("float32", "float64")
    )
    unlearned = graph.total("buffer_bytes")
    doubled = 2 * (single.memory_bytes[0] - unlearned)
    assert double.memory_bytes[0] - unlearned == pytest.approx(doubled)
