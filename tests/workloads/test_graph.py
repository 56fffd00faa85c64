"""Layer graphs: what torch keeps of every layer, blocks, splits and sums."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.workloads.small import SMALL

from paceline.space import load_space
from paceline.workloads import (
    SPLITS,
    GraphLayer,
    Network,
    layer_graph,
    list_workloads,
    load_workload,
)

Kept = dict[str, float]


@pytest.fixture(scope="session")
def kept(torch: ModuleType, worker_network: Any) -> Callable[[Network], Kept]:
    """A function from a network to the bytes that autograd keeps of a sample, by layer."""

    def kept(network: Network) -> Kept:
        few, more = (measure(torch, worker_network, network, n) for n in (2, 4))
        return {name: (more[name] - few.get(name, 0)) / 2 for name in more}

    return kept


def measure(torch: ModuleType, worker_network: Any, network: Network, batch: int) -> Kept:
    """Run one real step on the CPU; memory is counted once, at the layer that keeps it first."""
    module = worker_network.build({"seed": 0, "network": network.operations})
    seen = {t.untyped_storage().data_ptr() for t in [*module.parameters(), *module.buffers()]}
    found: Kept = {}
    alive, stack = [], ["loss"]

    def pack(tensor: Any) -> Any:
        alive.append(tensor)
        memory = tensor.untyped_storage()
        if memory.data_ptr() not in seen:
            seen.add(memory.data_ptr())
            found[stack[-1]] = found.get(stack[-1], 0) + memory.nbytes()
        return tensor

    for name, part in worker_network.timed_parts(module, {}):
        part.register_forward_pre_hook(lambda *_, name=name: stack.append(name))
        part.register_forward_hook(lambda *_: stack.pop() and None)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = take_loss(torch, module, network, batch)
    loss.backward()
    assert all(p.grad is not None for p in module.parameters())
    return found


def take_loss(torch: ModuleType, module: Any, network: Network, batch: int) -> Any:
    vocabulary = network.sample.get("vocabulary")
    shape = (batch, *network.input_shape)
    x = torch.randint(vocabulary, shape) if vocabulary else torch.rand(shape)
    y = module(x)
    if network.loss == "mse":
        return torch.nn.functional.mse_loss(y.flatten(1), x.flatten(1))
    rows = y.flatten(0, -2)
    labels = torch.zeros(len(rows), dtype=torch.long)
    return torch.nn.functional.cross_entropy(rows, labels)


def check(network: Network, kept: Callable[[Network], Kept]) -> None:
    found = kept(network)
    ours = {layer.name: layer.stored_bytes for layer in layer_graph(network).layers}
    assert ours == {name: found.get(name, 0) for name in ours}


@pytest.mark.parametrize("name", list_workloads())
def test_every_layer_keeps_what_autograd_keeps(name: str, kept: Callable[[Network], Kept]) -> None:
    check(load_workload(name).network(SMALL[name]), kept)


TABLE_4_1 = load_space("table_4_1")


@given(
    trial=st.fixed_dictionaries({p.name: st.sampled_from(p.values) for p in TABLE_4_1.parameters})
)
@settings(max_examples=15, deadline=None)
def test_any_lenet5_keeps_what_autograd_keeps(
    trial: dict[str, Any], kept: Callable[[Network], Kept]
) -> None:
    workload = load_workload("lenet5")
    assume(not workload.infeasible(trial))
    check(workload.network(trial), kept)


def test_what_two_layers_share_is_kept_once() -> None:
    """A convolution before ReLU and pooling: each number is kept by one of them only."""
    layers = {x.name: x for x in load_workload("lenet5").graph().layers}
    assert layers["activation1"].stored_bytes == layers["activation1"].output_bytes
    n_maxima = np.prod(layers["pool1"].output_shape)
    assert layers["pool1"].stored_bytes == 8 * n_maxima  # where they are, not the input again


@pytest.mark.parametrize("name", list_workloads())
def test_a_graph_agrees_with_the_layer_table_and_ends_with_the_loss(name: str) -> None:
    workload = load_workload(name)
    graph, layers = workload.graph(), workload.layers()
    assert [x.name for x in graph.layers[:-1]] == [x.name for x in layers]
    fields = ("n_parameters", "weight_bytes", "forward_flop", "output_shape", "block")
    for ours, plain in zip(graph.layers, layers, strict=False):
        assert [getattr(ours, f) for f in fields] == [getattr(plain, f) for f in fields]
        assert ours.output_bytes == plain.activation_bytes
    assert (graph.layers[-1].kind, graph.layers[-1].block) == ("loss", layers[-1].block)
    assert graph.name == name and dict(graph.values).keys() <= workload.defaults.keys()


@pytest.mark.parametrize("name", list_workloads())
def test_what_a_layer_gives_is_what_the_next_block_takes(name: str) -> None:
    graph = load_workload(name).graph()
    ends = [graph.layers[end - 1] for _, end in graph.units]
    starts = [graph.layers[first] for first, _ in graph.units]
    for before, after in zip(ends, starts[1:], strict=False):
        assert before.output_shape == after.input_shape
        assert before.output_bytes == after.input_bytes


@pytest.mark.parametrize("name", list_workloads())
def test_blocks_are_whole_and_splits_are_known(name: str) -> None:
    graph = load_workload(name).graph()
    blocks = [graph.layers[first].block for first, _ in graph.units]
    assert len(blocks) == len(set(blocks))
    for layer in graph.layers:
        assert set(layer.splits) <= set(SPLITS)
        assert min(layer.stored_bytes, layer.backward_flop, layer.buffer_bytes) >= 0


def layer(name: str, of: str, **values: Any) -> GraphLayer:
    return next(x for x in load_workload(name).graph(values).layers if x.name == of)


@pytest.mark.parametrize(
    ("name", "of", "splits"),
    [
        ("resnet50", "stem.conv", {"spatial", "filter", "channel"}),
        ("resnet50", "stem.norm", {"spatial", "filter"}),
        ("resnet50", "stem.pool", {"spatial", "filter"}),
        ("resnet50", "output", {"filter", "channel"}),
        ("gpt2", "block1.attention", {"head", "sequence"}),
        ("gpt2", "block1.dense1", {"filter", "channel", "sequence"}),
        ("gpt2", "block1.norm1", {"sequence"}),
        ("mixtral-8x7b", "block1.experts", {"expert", "sequence"}),
        ("resattnet18", "attention3", set()),
    ],
)
def test_a_layer_says_how_it_may_be_divided(name: str, of: str, splits: set[str]) -> None:
    assert set(layer(name, of).splits) == splits


def test_windows_heads_experts_and_shared_weights_are_said() -> None:
    pool = layer("resnet50", "stem.pool")
    assert (pool.kernel, pool.stride, pool.weight_shape) == ((3, 3), 2, ())
    stem = layer("resnet50", "stem.conv")
    assert (stem.n_filters, stem.n_channels, stem.kernel, stem.stride) == (64, 3, (7, 7), 2)
    assert layer("llama-8b", "block1.attention").n_heads == 8
    assert layer("mixtral-8x7b", "block1.experts").n_experts == 8
    output = layer("gpt2", "output")
    assert (output.tied, output.n_parameters, output.n_filters) == ("embedding", 0, 50257)


def test_the_first_layer_that_learns_needs_no_gradient_of_its_input() -> None:
    first, second = layer("lenet5", "conv1"), layer("lenet5", "conv2")
    assert first.backward_flop == first.forward_flop
    assert second.backward_flop == 2 * second.forward_flop


def test_running_means_are_buffers() -> None:
    norm = layer("resnet50", "stem.norm")
    assert norm.buffer_bytes == 2 * 4 * 64 + 8  # means, variances, how many batches


def test_only_convolutions_of_volumes_are_another_operation() -> None:
    volumes = load_workload("resattnet18").graph({"volume": 32, "filters": 8})
    assert {x.operation for x in volumes.layers if x.kind == "conv"} == {"conv3d"}
    images = load_workload("resnet18").graph()
    assert all(x.operation == x.kind for x in images.layers)
