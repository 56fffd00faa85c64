"""The same networks in torch, built from their operations on the meta device: the truth here."""

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from paceline.workloads import Network

Operation = Mapping[str, Any]
HOW_TO_INSTALL = "torch is not installed. Try: pip install -c constraints.txt 'paceline[torch]'"
BATCH = 2


class Counted(NamedTuple):
    output_shape: tuple[int, ...]
    n_parameters: int
    forward_flop: float


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    return pytest.importorskip("torch", reason=HOW_TO_INSTALL)


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

    def run(self, operations: Sequence[Operation], x: Any) -> Any:
        for operation in operations:
            x = self.run_one(operation, x)
        return x

    def run_one(self, operation: Operation, x: Any) -> Any:
        module = self.builder.build(operation)
        n_parameters = sum(p.numel() for p in module.parameters())
        if operation["op"] == "residual":
            body, shortcut = self.run(operation["body"], x), self.run(operation["shortcut"], x)
            inner = self.builder.sequence([*operation["body"], *operation["shortcut"]])
            n_parameters -= sum(p.numel() for p in inner.parameters())
            y, flop = body + shortcut, 0
        else:
            with self.counter(display=False) as counter:
                y = module(x)
            flop = counter.get_total_flops()
        self.counted[operation["name"]] = Counted(tuple(y.shape[1:]), n_parameters, flop / BATCH)
        return y


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

    def _module(self, function: Callable[[Any], Any], **parts: Any) -> Any:
        module = self.nn.Module()
        for name, part in parts.items():
            module.add_module(name, part)
        module.forward = function
        return module
