"""Any module becomes a layer graph without data; the shipped networks become their own."""

from typing import Any

import pytest
from tests.workloads.small import SMALL

from paceline.errors import InvalidInputError
from paceline.workloads import LayerGraph, load_workload, trace_module

torch = pytest.importorskip(
    "torch", reason="Try: pip install -c constraints.txt 'paceline[torch]'"
)
nn = torch.nn

TRACED = ("lenet5", "autoencoder", "vgg16", "resnet18", "resattnet18", "cosmoflow")
TRACED += ("gpt2", "llama-1b", "mixtral-8x7b")
SUMS = ("n_parameters", "weight_bytes", "buffer_bytes")
SUMS += ("forward_flop", "backward_flop", "stored_bytes")


def traced(worker_network: Any, name: str) -> tuple[LayerGraph, LayerGraph]:
    """A workload's graph by arithmetic, and that of the module which the worker trains."""
    workload = load_workload(name)
    network = workload.network(SMALL[name])
    module = worker_network.build({"seed": 0, "network": network.operations})
    vocabulary = network.sample.get("vocabulary")
    found = trace_module(module, network.input_shape, vocabulary=vocabulary, loss=network.loss)
    return workload.graph(SMALL[name]), found


@pytest.mark.parametrize("name", TRACED)
def test_the_workers_module_is_traced_to_the_same_sums(name: str, worker_network: Any) -> None:
    known, found = traced(worker_network, name)
    assert {f: found.total(f) for f in SUMS} == {f: known.total(f) for f in SUMS}


@pytest.mark.parametrize("name", ["resnet18", "resattnet18", "llama-1b"])
def test_cuts_found_from_the_dataflow_are_those_between_blocks(
    name: str, worker_network: Any
) -> None:
    known, found = traced(worker_network, name)
    crossing = [
        [graph.layers[end - 1].output_bytes for _, end in graph.units[:-1]]
        for graph in (known, found)
    ]
    assert crossing[0] == crossing[1]


def test_layers_of_a_plain_network_are_alike_one_by_one(worker_network: Any) -> None:
    known, found = traced(worker_network, "vgg16")
    fields = ("kind", "input_shape", "output_shape", "weight_shape", "n_parameters", "splits")
    fields += ("forward_flop", "backward_flop", "stored_bytes", "window", "stride")
    fields += ("input_bytes", "output_bytes", "weight_bytes")
    for ours, theirs in zip(known.layers, found.layers, strict=True):
        assert {f: getattr(ours, f) for f in fields} == {f: getattr(theirs, f) for f in fields}


class UNet(nn.Module):
    """A skip over two layers, functions in place, and a grouped convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Conv2d(3, 8, 3, padding=1)
        self.down2 = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.mix = nn.Conv2d(16, 4, 1, groups=2)
        self.head = nn.Linear(256, 5)

    def forward(self, x: Any) -> Any:
        first = nn.functional.relu(self.down1(x), inplace=True)
        second = nn.functional.relu(self.down2(first))
        return self.head(self.mix(torch.cat([first, self.up(second)], 1)).flatten(1))


def test_nothing_is_cut_inside_a_skip() -> None:
    graph = trace_module(UNet(), (3, 8, 8), name="unet")
    units = [[x.name for x in graph.layers[a:b]] for a, b in graph.units]
    skip = ["down2", "activation#2", "up", "concat"]
    assert units == [["down1"], ["activation"], skip, ["mix"], ["head", "loss"]]
    layers = {x.name: x for x in graph.layers}
    assert layers["mix"].splits == ("spatial", "filter")
    assert (layers["up"].weight_shape, layers["up"].stride) == ((8, 8, 2, 2), 2)


class Encoder(nn.Module):
    """torch's own Transformer layers, and an output map that shares the embedding's weight."""

    def __init__(self) -> None:
        super().__init__()
        block = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.tokens = nn.Embedding(50, 32)
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 50)
        self.head.weight = self.tokens.weight

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.tokens(x)))


def test_attention_heads_and_shared_weights_are_found() -> None:
    module = Encoder()
    graph = trace_module(module, (10,), vocabulary=50)
    layers = {x.name: x for x in graph.layers}
    attention = layers["blocks.layers.0.self_attn"]
    assert (attention.kind, attention.n_heads) == ("attention", 4)
    assert (layers["head"].tied, layers["head"].n_parameters) == ("tokens", 50)
    assert graph.total("n_parameters") == sum(p.numel() for p in module.parameters())


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.over_time, self.head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.over_time(x)[0][:, -1])


def pixels() -> Any:
    parts = [nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.Hardswish(), nn.AdaptiveAvgPool2d(2)]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(32, 3))


@pytest.mark.parametrize(
    ("make", "shape", "vocabulary"),
    [(Encoder, (10,), 50), (Recurrent, (6, 8), None), (pixels, (3, 8, 8), None)],
)
def test_what_is_kept_is_what_a_real_step_keeps(
    make: Any, shape: tuple[int, ...], vocabulary: int | None
) -> None:
    graph = trace_module(make(), shape, vocabulary=vocabulary)
    few, more = (really_kept(make(), (n, *shape), vocabulary) for n in (2, 4))
    assert graph.total("stored_bytes") == (more - few) / 2


def really_kept(module: Any, shape: tuple[int, ...], vocabulary: int | None) -> int:
    kept: dict[int, Any] = {}
    own = {p.untyped_storage().data_ptr() for p in module.parameters()}
    x = torch.randint(vocabulary, shape) if vocabulary else torch.rand(shape)

    def pack(tensor: Any) -> Any:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        rows = module(x).flatten(0, -2)
        labels = torch.zeros(len(rows), dtype=torch.long)
        torch.nn.functional.cross_entropy(rows, labels).backward()
    return sum(t.untyped_storage().nbytes() for key, t in kept.items() if key not in own)


def test_what_is_frozen_is_read_and_not_learned() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    module[0].requires_grad_(False)
    graph = trace_module(module, (4,))
    frozen, head, _ = graph.layers
    assert (frozen.n_parameters, frozen.weight_bytes, frozen.backward_flop) == (0, 80, 0)
    assert head.backward_flop == head.forward_flop  # nothing behind it wants a gradient


def test_a_module_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).eval()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    trace_module(module, (4,))
    assert not module.training and not any(m._forward_hooks for m in module.modules())
    assert all(torch.equal(v, before[k]) for k, v in module.state_dict().items())


class Looks(nn.Module):
    """What it does depends on its numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 2))
        self.chosen = Chosen()

    def forward(self, x: Any) -> Any:
        return self.chosen(self.inner(x))


class Chosen(nn.Module):
    def forward(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x


class Pair(nn.Linear):
    def forward(self, x: Any) -> Any:
        return super().forward(x), x


class Lost(nn.Linear):
    def forward(self, x: Any) -> Any:
        return torch.as_tensor(super().forward(x).detach().numpy())


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (Looks(), {}, "'aten._local_scalar_dense.default' in 'chosen' cannot: Tensor.item"),
        (nn.Linear(5, 2), {}, "input of 4 without data, but the operation 'aten.addmm.default'"),
        (Lost(4, 2), {}, "but its Python cannot: can't convert meta device type tensor to numpy"),
        (Pair(4, 2), {}, "must return one tensor, but returned a tuple"),
        (nn.ReLU(), {}, "must have weights that its output depends on"),
        (nn.Sequential(nn.Linear(4, 2), nn.Flatten(0)), {}, "a row of numbers per sample"),
        (nn.Linear(4, 2), {"loss": "mse"}, "as large as the input for the loss 'mse', but is 2"),
        (nn.Linear(4, 2), {"loss": "hinge"}, "`loss` must be one of cross_entropy, mse"),
        (nn.Linear(4, 2), {"shape": (0,)}, "`shape` must be positive whole numbers"),
    ],
)
def test_what_cannot_be_traced_is_refused_with_its_reason(
    module: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        trace_module(module, **{"shape": (4,), **options})
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_counts_that_disagree_are_refused() -> None:
    """A module that does something else when it is exported."""

    class TwoFaced(nn.Linear):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            return y if torch.compiler.is_exporting() else y + super().forward(x)

    with pytest.raises(InvalidInputError, match="64 FLOP for 2 samples where it ran and 32 where"):
        trace_module(TwoFaced(4, 2), (4,))
