"""The same networks in torch, built from their operations on the meta device: the truth here."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from paceline.workloads import Network

Operation = Mapping[str, Any]
HOW_TO_INSTALL = "torch is not installed. Try: pip install -c constraints.txt 'paceline[torch]'"
BATCH = 2
WORKERS = Path(__file__).parents[2] / "src" / "paceline" / "executors" / "workers"


class Counted(NamedTuple):
    output_shape: tuple[int, ...]
    n_parameters: int
    forward_flop: float
    backward_flop: float


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    return pytest.importorskip("torch", reason=HOW_TO_INSTALL)


@pytest.fixture(scope="session")
def worker_network(torch: ModuleType) -> Any:
    """The torch worker's own way from operations to a module."""
    sys.path.insert(0, str(WORKERS))
    try:
        import torch_network
    finally:
        sys.path.remove(str(WORKERS))
    return torch_network


@pytest.fixture(scope="session")
def build(torch: ModuleType) -> Callable[[Operation], Any]:
    """A function from an operation to a module on the meta device."""
    return TorchBuilder(torch).build


@pytest.fixture(scope="session")
def count(torch: ModuleType) -> Callable[[Network], dict[str, Counted]]:
    """A function from a network to what torch counts of each layer, for one sample."""

    def count(network: Network) -> dict[str, Counted]:
        counted: dict[str, Counted] = {}
        TorchCounter(torch, counted).run(network.operations, make_input(torch, network))
        return counted

    return count


def make_input(torch: ModuleType, network: Network, batch: int = BATCH) -> Any:
    kind = torch.long if "vocabulary" in network.sample else torch.float32
    return torch.empty(batch, *network.sample["shape"], dtype=kind, device="meta")


class TorchCounter:
    """Run operations one by one and note what each gives and costs."""

    def __init__(self, torch: ModuleType, counted: dict[str, Counted]) -> None:
        from torch.utils.flop_counter import FlopCounterMode

        self.counter = FlopCounterMode
        self.builder = TorchBuilder(torch)
        self.counted = counted
        self.measured: dict[Any, Any] = {}  # blocks repeat: each kind is run once

    def run(self, operations: Sequence[Operation], x: Any) -> Any:
        for operation in operations:
            x = self.run_one(operation, x)
        return x

    def run_one(self, operation: Operation, x: Any) -> Any:
        joins = operation["op"] in ("residual", "product")
        y, n_parameters, flop = self.join(operation, x) if joins else self.recall(operation, x)
        self.counted[operation["name"]] = Counted(tuple(y.shape[1:]), n_parameters, *flop)
        return y.detach().requires_grad_(y.requires_grad)

    def join(self, operation: Operation, x: Any) -> tuple[Any, int, tuple[float, float]]:
        body, shortcut = self.run(operation["body"], x), self.run(operation["shortcut"], x)
        y = body + shortcut if operation["op"] == "residual" else body * shortcut
        return y, 0, (0, 0)

    def recall(self, operation: Operation, x: Any) -> tuple[Any, int, tuple[float, float]]:
        kind = (str({**operation, "name": ""}), x.shape, x.requires_grad)
        if kind not in self.measured:
            self.measured[kind] = self.measure(operation, x)
        return self.measured[kind]  # type: ignore[no-any-return]

    def measure(self, operation: Operation, x: Any) -> tuple[Any, int, tuple[float, float]]:
        module = self.builder.build(operation)
        with self.counter(display=False) as forward:
            y = module(x)
        with self.counter(display=False) as backward:
            if y.requires_grad:
                y.sum().backward()
        n_parameters = sum(p.numel() for p in module.parameters())
        if "tied" in operation:
            n_parameters -= module.weight.numel()
        flop = forward.get_total_flops() / BATCH, backward.get_total_flops() / BATCH
        return y, n_parameters, flop


class TorchBuilder:
    """Modules on the meta device, written anew from docs/executors.md."""

    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch
        self.nn = torch.nn

    def build(self, operation: Operation) -> Any:
        with self.torch.device("meta"):
            return getattr(self, operation["op"])(operation)

    def sequence(self, operations: Sequence[Operation]) -> Any:
        return self.nn.Sequential(*(self.build(operation) for operation in operations))

    def conv(self, o: Operation) -> Any:
        make = {2: self.nn.Conv2d, 3: self.nn.Conv3d}[o["dims"]]
        pad = self.nn.ZeroPad2d if o["dims"] == 2 else self.nn.ZeroPad3d
        return self.nn.Sequential(
            pad(tuple(o["padding"]) * o["dims"]),
            make(o["in"], o["out"], o["kernel"], o["stride"], bias=o["bias"]),
        )

    def pool(self, o: Operation) -> Any:
        name = {"max": "MaxPool", "average": "AvgPool"}[o["kind"]] + f"{o['dims']}d"
        return getattr(self.nn, name)(o["kernel"], o["stride"], o["padding"][0])

    def linear(self, o: Operation) -> Any:
        return self.nn.Linear(o["in"], o["out"], bias=o["bias"])

    def activation(self, o: Operation) -> Any:
        names = {"relu": "ReLU", "tanh": "Tanh", "sigmoid": "Sigmoid", "gelu": "GELU"}
        names |= {"silu": "SiLU", "leaky_relu": "LeakyReLU"}
        return getattr(self.nn, names[o["function"]])()

    def dropout(self, o: Operation) -> Any:
        return self.nn.Dropout(o["share"])

    def flatten(self, o: Operation) -> Any:
        return self.nn.Flatten()

    def batch_norm(self, o: Operation) -> Any:
        return getattr(self.nn, f"BatchNorm{o['dims']}d")(o["features"])

    def layer_norm(self, o: Operation) -> Any:
        return self.nn.LayerNorm(o["features"])

    def global_pool(self, o: Operation) -> Any:
        pool = getattr(self.nn, f"AdaptiveAvgPool{o['dims']}d")(1)
        return self.nn.Sequential(pool, self.nn.Flatten())

    def residual(self, o: Operation) -> Any:
        body, shortcut = self.sequence(o["body"]), self.sequence(o["shortcut"])
        return self._module(lambda x: body(x) + shortcut(x), body=body, shortcut=shortcut)

    def product(self, o: Operation) -> Any:
        body, shortcut = self.sequence(o["body"]), self.sequence(o["shortcut"])
        return self._module(lambda x: body(x) * shortcut(x), body=body, shortcut=shortcut)

    def rms_norm(self, o: Operation) -> Any:
        return self.nn.RMSNorm(o["features"])

    def self_attention(self, o: Operation) -> Any:
        make = {2: self.nn.Conv2d, 3: self.nn.Conv3d}[o["dims"]]
        key, query = make(o["channels"], o["inner"], 1), make(o["channels"], o["inner"], 1)
        value, project = (make(o["channels"], o["channels"], 1) for _ in range(2))
        gamma = self.nn.ParameterList([self.torch.zeros(1)])

        def attend(x: Any) -> Any:
            scores = self.torch.bmm(key(x).flatten(2).transpose(1, 2), query(x).flatten(2))
            mixed = self.torch.bmm(value(x).flatten(2), scores.softmax(1))
            return gamma[0] * project(mixed.view_as(x)) + x

        return self._module(
            attend, key=key, query=query, value=value, project=project, gamma=gamma
        )

    def embedding(self, o: Operation) -> Any:
        tokens = self.nn.Embedding(o["vocabulary"], o["width"])
        if not o.get("positions", True):
            return tokens
        positions = self.nn.Embedding(o["length"], o["width"])

        def embed(x: Any) -> Any:
            return tokens(x) + positions(self.torch.arange(x.shape[1], device=x.device))

        return self._module(embed, tokens=tokens, positions=positions)

    def causal_attention(self, o: Operation) -> Any:
        width, heads = o["width"], o["heads"]
        maps, project = self.nn.Linear(width, 3 * width), self.nn.Linear(width, width)

        def attend(x: Any) -> Any:
            parts = maps(x).unflatten(-1, (3, heads, width // heads)).permute(2, 0, 3, 1, 4)
            mixed = self.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
            return project(mixed.transpose(1, 2).flatten(2))

        return self._module(attend, maps=maps, project=project)

    def rotary_attention(self, o: Operation) -> Any:
        width, size = o["width"], o["width"] // o["heads"]
        widths = [o["heads"] * size, o["key_heads"] * size, o["key_heads"] * size]
        maps = self.nn.ModuleList(self.nn.Linear(width, n, bias=False) for n in widths)
        project = self.nn.Linear(width, width, bias=False)

        def attend(x: Any) -> Any:  # rotation multiplies number by number: nothing is counted
            parts = (f(x).unflatten(-1, (-1, size)).transpose(1, 2) for f in maps)
            mixed = self.nn.functional.scaled_dot_product_attention(
                *parts, is_causal=True, enable_gqa=True
            )
            return project(mixed.transpose(1, 2).flatten(2))

        return self._module(attend, maps=maps, project=project)

    def experts(self, o: Operation) -> Any:
        n, sizes = o["experts"], (o["width"], o["inner"])
        router = self.nn.Linear(o["width"], n, bias=False)
        maps = self.nn.ParameterList(self.torch.empty(n, *sizes) for _ in range(3))

        def mix(x: Any) -> Any:
            n_tokens = -(-x.shape[1] * o["chosen"] // n)
            weights, index = router(x).softmax(-1).topk(n_tokens, dim=1)
            rows = self.torch.arange(x.shape[0], device=x.device)[:, None, None]
            taken = x[rows, index.transpose(1, 2)]  # sample, expert, token
            gate, up = (self.torch.einsum("bnti,nio->bnto", taken, m) for m in maps[:2])
            hidden = self.nn.functional.silu(gate) * up
            given = self.torch.einsum("bnto,nio->bnti", hidden, maps[2])
            return x + (given * weights.transpose(1, 2)[..., None]).sum((1, 2))[:, None]

        return self._module(mix, router=router, maps=maps)

    def _module(self, function: Callable[[Any], Any], **parts: Any) -> Any:
        module = self.nn.Module()
        for name, part in parts.items():
            module.add_module(name, part)
        module.forward = function
        return module
