"""GPT: a decoder of pre-norm blocks that guesses the next token.

``gpt`` is small and has an output map of its own; ``gpt2`` and its larger ones (Radford et al.,
2019) share the embedding's weight with the output map. None has dropout.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paceline.workloads._base import Workload
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import (
    activation,
    causal_attention,
    embedding,
    layer_norm,
    linear,
    residual,
    tied_linear,
)
from paceline.workloads._values import numeric


class Size(NamedTuple):
    """Defaults of a GPT, and whether its output map shares the embedding's weight."""

    layers: int
    width: int
    heads: int
    length: int = 1024
    vocabulary: int = 50257
    is_tied: bool = True


SIZES = {
    "gpt": Size(4, 128, 4, 64, 1024, is_tied=False),
    "gpt2": Size(12, 768, 12),
    "gpt2-medium": Size(24, 1024, 16),
    "gpt2-large": Size(36, 1280, 20),
    "gpt2-xl": Size(48, 1600, 25),
}


class GptWorkload(Workload):
    """A GPT on tokens."""

    def __init__(self, name: str = "gpt") -> None:
        size = SIZES[name]
        self._is_tied = size.is_tied
        super().__init__(
            name,
            "small GPT on tokens" if name == "gpt" else f"{name.upper()} on tokens",
            (
                numeric("layers", 2, 4, 6, 8, 12),
                numeric("width", 64, 128, 256, 512, 768),
                numeric("heads", 2, 4, 8, 12),
                numeric("length", 32, 64, 128, 256),
                numeric("vocabulary", 256, 1024, 4096),
            ),
            {key: value for key, value in size._asdict().items() if key != "is_tied"},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        width, vocabulary = values["width"], values["vocabulary"]
        operations = [embedding("embedding", vocabulary, width, values["length"])]
        for i in range(1, values["layers"] + 1):
            operations += _block(f"block{i}", width, values["heads"])
        operations += [layer_norm("norm", width), output_map(width, vocabulary, self._is_tied)]
        return token_network(operations, values)


def output_map(width: int, vocabulary: int, is_tied: bool) -> Operation:
    """Return the map from the width to a number per token, perhaps the embedding's."""
    if is_tied:
        return tied_linear("output", width, vocabulary, tied="embedding")
    return linear("output", width, vocabulary, bias=False)


def token_network(operations: list[Operation], values: dict[str, Any]) -> Network:
    """Return a network that guesses every next token."""
    vocabulary = values["vocabulary"]
    sample = {"shape": [values["length"]], "n_classes": vocabulary, "vocabulary": vocabulary}
    return Network(operations=tuple(operations), sample=sample)


def _block(name: str, width: int, heads: int) -> list[Operation]:
    attention = [
        layer_norm(f"{name}.norm1", width),
        causal_attention(f"{name}.attention", width, heads),
    ]
    feed_forward = [
        layer_norm(f"{name}.norm2", width),
        linear(f"{name}.dense1", width, 4 * width),
        activation(f"{name}.activation", "gelu"),
        linear(f"{name}.dense2", 4 * width, width),
    ]
    return [residual(f"{name}.sum1", attention), residual(f"{name}.sum2", feed_forward)]
