"""Llama-like decoders and a mixture of experts on tokens.

Normalisation by the root mean square, rotary positions, several queries to a key, gated
feed-forward maps, no biases (Touvron et al., arXiv 2302.13971 and 2307.09288; Llama 3, arXiv
2407.21783; Mixtral, arXiv 2401.04088). In our mixture every expert chooses its tokens (Zhou et
al., arXiv 2202.09368), so that all experts have equal work, as an oracle assumes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paceline.workloads._base import Workload
from paceline.workloads._gpt import output_map, token_network
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import (
    activation,
    embedding,
    experts,
    linear,
    product,
    residual,
    rms_norm,
    rotary_attention,
)
from paceline.workloads._values import numeric


class Size(NamedTuple):
    """Defaults of a decoder; `experts` above 1 make it a mixture."""

    layers: int
    width: int
    heads: int
    key_heads: int
    inner: int
    vocabulary: int
    length: int
    summary: str
    is_tied: bool = False
    experts: int = 1
    chosen: int = 1


SIZES = {
    "llama-1b": Size(16, 2048, 32, 8, 8192, 128256, 2048, "Llama 3.2 1B", is_tied=True),
    "llama-7b": Size(32, 4096, 32, 32, 11008, 32000, 2048, "Llama 7B"),
    "llama-8b": Size(32, 4096, 32, 8, 14336, 128256, 2048, "Llama 3 8B"),
    "llama-70b": Size(80, 8192, 64, 8, 28672, 32000, 2048, "Llama 2 70B"),
    "mixtral-8x7b": Size(32, 4096, 32, 8, 14336, 32000, 2048, "Mixtral 8x7B", experts=8, chosen=2),
}


class LlamaWorkload(Workload):
    """A Llama-like decoder on tokens."""

    def __init__(self, name: str) -> None:
        size = SIZES[name]
        self._is_tied = size.is_tied
        mixed = {"experts": (4, 8), "chosen": (1, 2)} if size.experts > 1 else {}
        studied = {
            "layers": (2, 4, 8),
            "width": (64, 128, 256, 512),
            "heads": (4, 8),
            "key_heads": (2, 4, 8),
            "inner": (128, 256, 512, 1024),
            "vocabulary": (256, 1024, 4096),
            "length": (32, 64, 128, 256),
            **mixed,
        }
        super().__init__(
            name,
            f"{size.summary} on tokens",
            tuple(numeric(key, *values) for key, values in studied.items()),
            {key: getattr(size, key) for key in studied},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        width, vocabulary = values["width"], values["vocabulary"]
        length = values["length"]
        operations = [embedding("embedding", vocabulary, width, length, positions=False)]
        for i in range(1, values["layers"] + 1):
            operations += _block(f"block{i}", values)
        operations += [rms_norm("norm", width), output_map(width, vocabulary, self._is_tied)]
        return token_network(operations, values)


def _block(name: str, values: dict[str, Any]) -> list[Operation]:
    width, heads = values["width"], values["heads"]
    attention = [
        rms_norm(f"{name}.norm1", width),
        rotary_attention(f"{name}.attention", width, heads, values["key_heads"]),
    ]
    feed_forward = [rms_norm(f"{name}.norm2", width), *_feed_forward(name, values)]
    return [residual(f"{name}.sum1", attention), residual(f"{name}.sum2", feed_forward)]


def _feed_forward(name: str, values: dict[str, Any]) -> list[Operation]:
    width, inner = values["width"], values["inner"]
    if "experts" in values:
        return [experts(f"{name}.experts", width, inner, values["experts"], values["chosen"])]
    gate = [
        linear(f"{name}.gate", width, inner, bias=False),
        activation(f"{name}.activation", "silu"),
    ]
    up = [linear(f"{name}.up", width, inner, bias=False)]
    return [
        product(f"{name}.gated", gate, up),
        linear(f"{name}.down", inner, width, bias=False),
    ]
