"""Layer tables are plain arithmetic; torch's own counter must find the same."""

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from paceline.space import load_space
from paceline.workloads import (
    Network,
    layer_graph,
    layer_table,
    list_workloads,
    load_workload,
    totals,
)

TABLE_4_1 = load_space("table_4_1")
TABLE_5_1 = load_space("table_5_1")
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])

Count = Callable[[Network], dict[str, Any]]


def trials(space: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({p.name: st.sampled_from(p.values) for p in space.parameters})


def check(network: Network, count: Count) -> None:
    """Every layer in the same order, with the same shape, parameters and FLOP of both passes."""
    found = [
        (layer.name, layer.output_shape, layer.n_parameters, layer.forward_flop)
        for layer in layer_table(network)
    ]
    counts = count(network)
    assert found == [(name, *counted[:3]) for name, counted in counts.items()]
    backward = [(layer.name, layer.backward_flop) for layer in layer_graph(network).layers[:-1]]
    assert backward == [(name, counted.backward_flop) for name, counted in counts.items()]


@given(trial=trials(TABLE_4_1))
@FEW
def test_any_buildable_lenet5_counts_as_torch_counts(trial: dict[str, Any], count: Count) -> None:
    workload = load_workload("lenet5")
    assume(not workload.infeasible(trial))
    check(workload.network(trial), count)


@given(trial=trials(TABLE_5_1), volume=st.sampled_from([16, 24, 31, 96]))
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])  # torch is slow
def test_any_buildable_resattnet_counts_as_torch_counts(
    trial: dict[str, Any], volume: int, count: Count
) -> None:
    workload = load_workload("resattnet18")
    assume(not workload.infeasible({**trial, "volume": volume}))
    check(workload.network({**trial, "volume": volume}), count)


@pytest.mark.parametrize("name", list_workloads())
def test_every_workload_counts_as_torch_counts(name: str, count: Count) -> None:
    check(load_workload(name).network(), count)


@pytest.mark.parametrize("name", list_workloads())
def test_the_whole_network_counts_as_the_sum_of_its_layers(
    name: str, torch: ModuleType, build: Callable[..., Any]
) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    workload = load_workload(name)
    few = {"layers": 2} if "layers" in workload.defaults else {}  # all others are as these
    graph, network = workload.graph(few), workload.network(few)
    whole = torch.nn.Sequential(*map(build, network.operations))
    kind = torch.long if "vocabulary" in network.sample else torch.float32
    x = torch.empty(3, *network.input_shape, dtype=kind, device="meta")
    with FlopCounterMode(display=False) as counter:
        y = whole(x)
        forward = counter.get_total_flops()
        y.sum().backward()
    assert forward == 3 * totals(network)["forward_flop"] == 3 * graph.total("forward_flop")
    assert counter.get_total_flops() - forward == 3 * graph.total("backward_flop")
    tied = sum(o["in"] * o["out"] for o in network.operations if "tied" in o)
    n_parameters = sum(p.numel() for p in whole.parameters()) - tied
    assert n_parameters == totals(network)["n_parameters"] == graph.total("n_parameters")


CHANNELS = 6
SINGLE = [
    {"op": "conv", "dims": d, "in": 6, "out": 5, "kernel": k, "stride": s, "padding": p, "bias": b}
    for d, k, s, p, b in itertools.product((2, 3), (1, 2, 4), (1, 3), ([0, 0], [1, 2]), (0, 1))
] + [
    {"op": "pool", "dims": d, "kernel": k, "stride": s, "padding": [k // 2] * 2, "kind": kind}
    for d, k, s, kind in itertools.product((2, 3), (1, 2, 3), (1, 2), ("max", "average"))
]
SINGLE += [{"op": "self_attention", "dims": d, "channels": CHANNELS, "inner": 2} for d in (2, 3)]
SINGLE += [{"op": "batch_norm", "dims": d, "features": CHANNELS} for d in (2, 3)]
SINGLE += [{"op": "global_pool", "dims": d} for d in (2, 3)]


@pytest.mark.parametrize("operation", SINGLE, ids=lambda o: "-".join(map(str, o.values())))
def test_one_operation_counts_as_torch_counts(operation: dict[str, Any], count: Count) -> None:
    named = {**operation, "name": "one", "bias": bool(operation.get("bias"))}
    sides = (7, 4, 5)[: operation["dims"]]
    check(
        Network(operations=(named,), sample={"shape": [CHANNELS, *sides], "n_classes": 2}), count
    )


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("dataset", ["mnist", "cifar10"])
def test_what_is_called_infeasible_fails_in_torch_and_nothing_else_does(
    dataset: str, padding: str, torch: ModuleType
) -> None:
    workload = load_workload("lenet5")
    for kernel, pool, stride in itertools.product((2, 3, 4, 5), (2, 3, 4, 5), (1, 2, 3)):
        values = {"kernel_size": kernel, "pool_size": pool, "stride": stride}
        reason = workload.infeasible({**values, "dataset": dataset, "padding": padding})
        works = convolves(torch, dataset, padding, **values)
        assert bool(reason) != works, (values, reason)


def convolves(
    torch: ModuleType, dataset: str, padding: str, kernel_size: int, pool_size: int, stride: int
) -> bool:
    """Whether torch can run both blocks of LeNet-5, written without our operations."""
    x = torch.empty(1, *((1, 28, 28) if dataset == "mnist" else (3, 32, 32)), device="meta")
    try:
        for n_out in (4, 8):
            if padding == "same":
                before, after = (kernel_size - 1) // 2, kernel_size // 2
                x = torch.nn.functional.pad(x, (before, after, before, after))
            conv = torch.nn.Conv2d(x.shape[1], n_out, kernel_size, stride, device="meta")
            x = torch.nn.functional.max_pool2d(conv(x), pool_size)
    except RuntimeError:
        return False
    return True


def test_same_padding_keeps_the_size_as_tensorflow_does() -> None:
    for kernel, stride in itertools.product((2, 3, 4, 5), (1, 2, 3)):
        values = {"kernel_size": kernel, "stride": stride, "padding": "same", "pool_size": 2}
        conv1 = load_workload("lenet5").layers(values)[0]
        assert conv1.output_shape[1:] == (-(-28 // stride), -(-28 // stride))


def test_batch_normalisation_of_one_number_is_infeasible_as_in_torch(
    torch: ModuleType, build: Callable[..., Any]
) -> None:
    workload = load_workload("resattnet18")
    for volume, device_batch in itertools.product((32, 48), (1, 2)):
        values = {"volume": volume, "filters": 8, "device_batch": device_batch}
        network = workload.network(values)
        whole = torch.nn.Sequential(*map(build, network.operations)).train()
        x = torch.empty(device_batch, *network.input_shape, device="meta")
        if workload.infeasible(values):
            assert (volume, device_batch) == (32, 1)
            with pytest.raises(ValueError, match="more than 1 value per channel"):
                whole(x)
        else:
            assert whole(x).shape == (device_batch, 2)


def test_heads_that_do_not_divide_the_width_fail_in_torch(
    torch: ModuleType, build: Callable[..., Any]
) -> None:
    values = {"width": 100, "heads": 3}
    assert "3 heads do not divide" in load_workload("gpt").infeasible(values)
    attention = build({"op": "causal_attention", "name": "a", **values})
    with pytest.raises(RuntimeError):
        attention(torch.empty(1, 4, 100, device="meta"))
