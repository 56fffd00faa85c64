"""Attention, embeddings and experts of PyTorch networks (docs/executors.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Operation = Mapping[str, Any]
_CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_BASE = 10000.0  # of rotary positions


class SelfAttention(nn.Module):
    """Attention of 3D-ResAttNet: every position looks at every other; starts as identity."""

    def __init__(self, operation: Operation) -> None:
        super().__init__()
        conv, channels, inner = (
            _CONVOLUTIONS[operation["dims"]],
            operation["channels"],
            operation["inner"],
        )
        self.key, self.query = conv(channels, inner, 1), conv(channels, inner, 1)
        self.value, self.result = conv(channels, channels, 1), conv(channels, channels, 1)
        self.gamma = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """Return what every position gathers, added to the input."""
        key, query, value = (f(x).flatten(2) for f in (self.key, self.query, self.value))
        attention = torch.softmax(key.transpose(1, 2) @ query, dim=1)
        weighted = (value @ attention).view_as(x)
        return self.gamma * self.result(weighted) + x  # type: ignore[no-any-return]


class Embedding(nn.Module):
    """Rows of a table for tokens and, unless ``positions`` is false, of one for positions."""

    def __init__(self, operation: Operation) -> None:
        super().__init__()
        width = operation["width"]
        self.tokens = nn.Embedding(operation["vocabulary"], width)
        self.positions: nn.Parameter | None = None
        if operation.get("positions", True):
            self.positions = nn.Parameter(0.02 * torch.randn(operation["length"], width))

    def forward(self, x: Tensor) -> Tensor:
        """Return a row of numbers per token."""
        rows: Tensor = self.tokens(x)
        return rows if self.positions is None else rows + self.positions[: x.shape[1]]


class CausalAttention(nn.Module):
    """Attention of GPT-2, without dropout."""

    def __init__(self, operation: Operation) -> None:
        super().__init__()
        width = operation["width"]
        self.size = width // operation["heads"]
        self.inputs, self.result = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return what every position gathers from itself and those before."""
        parts = self.inputs(x).view(*x.shape[:2], 3, -1, self.size)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.result(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


class RotaryAttention(nn.Module):
    """Attention of Llama: rotary positions, several heads of queries to one of keys, no bias."""

    def __init__(self, operation: Operation) -> None:
        super().__init__()
        width = operation["width"]
        self.size = width // operation["heads"]
        inner = self.size * operation["key_heads"]
        self.query, self.result = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, inner, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """Return what every position gathers from itself and those before."""
        query, key, value = (
            f(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        angles = _angles(x, self.size)
        mixed = functional.scaled_dot_product_attention(
            _rotated(query, *angles),
            _rotated(key, *angles),
            value,
            is_causal=True,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        return self.result(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


def _angles(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of all positions, one per number of a head."""
    powers = torch.arange(0, size, 2, device=x.device, dtype=x.dtype) / size
    angles = torch.outer(torch.arange(x.shape[1], device=x.device, dtype=x.dtype), _BASE**-powers)
    both = torch.cat((angles, angles), dim=-1)
    return both.cos(), both.sin()


def _rotated(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat((-second, first), dim=-1) * sines


class Experts(nn.Module):
    """A mixture of gated experts, each of which takes the tokens that suit it best.

    All experts take equally many, so every shape is known before it runs.
    """

    def __init__(self, operation: Operation) -> None:
        super().__init__()
        width, inner, n = operation["width"], operation["inner"], operation["experts"]
        self.chosen = operation["chosen"]
        self.router = nn.Linear(width, n, bias=False)
        self.gate, self.up = (_maps(n, width, inner) for _ in range(2))
        self.down = _maps(n, inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of what the experts make of the tokens they took."""
        (batch, length, width), n = x.shape, self.router.out_features
        n_tokens = -(-length * self.chosen // n)
        shares = self.router(x).softmax(-1).transpose(1, 2)
        weights, chosen = shares.topk(n_tokens, dim=-1)
        index = chosen.flatten(1).unsqueeze(-1).expand(-1, -1, width)
        taken = x.gather(1, index).view(batch, n, n_tokens, width).transpose(0, 1)
        taken = taken.reshape(n, batch * n_tokens, width)
        hidden = functional.silu(taken @ self.gate) * (taken @ self.up)
        given = (hidden @ self.down).view(n, batch, n_tokens, width).transpose(0, 1)
        weighted = (given * weights.unsqueeze(-1)).flatten(1, 2)
        return torch.zeros_like(x).scatter_add(1, index, weighted)


def _maps(n: int, n_in: int, n_out: int) -> nn.Parameter:
    bound = n_in**-0.5
    return nn.Parameter(torch.empty(n, n_in, n_out).uniform_(-bound, bound))
