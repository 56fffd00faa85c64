"""A small GPT: a decoder of pre-norm blocks that guesses the next token.

As GPT-2 without dropout; its output map is of its own, not the embedding's.
"""

from __future__ import annotations

from typing import Any

from paceline.workloads._base import Workload
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import (
    activation,
    causal_attention,
    embedding,
    layer_norm,
    linear,
    residual,
)
from paceline.workloads._values import numeric


class GptWorkload(Workload):
    """A small GPT on tokens."""

    def __init__(self) -> None:
        super().__init__(
            "gpt",
            "small GPT on tokens",
            (
                numeric("layers", 2, 4, 6, 8, 12),
                numeric("width", 64, 128, 256, 512, 768),
                numeric("heads", 2, 4, 8, 12),
                numeric("length", 32, 64, 128, 256),
                numeric("vocabulary", 256, 1024, 4096),
            ),
            {"layers": 4, "width": 128, "heads": 4, "length": 64, "vocabulary": 1024},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        width, vocabulary = values["width"], values["vocabulary"]
        operations = [embedding("embedding", vocabulary, width, values["length"])]
        for i in range(1, values["layers"] + 1):
            operations += _block(f"block{i}", width, values["heads"])
        operations += [
            layer_norm("norm", width),
            linear("output", width, vocabulary, bias=False),
        ]
        sample = {
            "shape": [values["length"]],
            "n_classes": vocabulary,
            "vocabulary": vocabulary,
        }
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
