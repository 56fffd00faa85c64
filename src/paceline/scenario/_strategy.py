"""How one step is divided among devices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from paceline.errors import InvalidInputError, UnknownNameError

DEGREES = ("data", "spatial", "pipeline", "filter", "channel", "tensor", "context", "expert")
SCHEDULES = ("gpipe", "1f1b", "interleaved", "sequential", "unlocked")
_MOST = 2**40  # of a degree or of pieces: arrays hold what a million devices make of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """Degrees of parallelism whose product is the number of devices.

    Parameters
    ----------
    data
        Replicas, each with its share of the samples.
    spatial
        Parts of height, width or depth of every sample, with halo exchange.
    pipeline
        Stages of layers.
    filter, channel
        Parts of the output or the input channels of convolutions and linear maps.
    tensor
        Parts of a Transformer's heads and feed-forward widths (Megatron-like).
    context
        Parts of a sequence.
    expert
        Parts of the experts of a mixture.
    shard
        What replicas share out instead of each holding all: 0 nothing, 1 the optimizer's state,
        2 gradients too, 3 weights too (ZeRO; 3 is FSDP).
    micro_batches
        Pieces of a replica's batch that follow each other through the stages, or that gradients
        are accumulated over.
    schedule
        ``gpipe``, ``1f1b``, ``interleaved``, ``sequential``: one stage at a time, or
        ``unlocked``: both passes at once, with late gradients.
    virtual_stages
        Pieces of the network per stage, for ``interleaved``.
    recompute
        Whether activations are computed again in the backward pass instead of being stored.
    """

    data: int = 1
    spatial: int = 1
    pipeline: int = 1
    filter: int = 1
    channel: int = 1
    tensor: int = 1
    context: int = 1
    expert: int = 1
    shard: int = 0
    micro_batches: int = 1
    schedule: str = "1f1b"
    virtual_stages: int = 1
    recompute: bool = False

    def __post_init__(self) -> None:
        for name in (*DEGREES, "micro_batches", "virtual_stages"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidInputError(
                    f"`{name}` must be a positive whole number, but got {value!r}."
                )
            if value > _MOST:
                raise InvalidInputError(f"`{name}` must be at most {_MOST}, but got {value}.")
        if self.shard not in (0, 1, 2, 3):
            raise InvalidInputError(f"`shard` must be 0, 1, 2 or 3, but got {self.shard!r}.")
        if self.schedule not in SCHEDULES:
            raise UnknownNameError("schedule", str(self.schedule), SCHEDULES)

    @property
    def n_devices(self) -> int:
        """Product of all degrees."""
        return math.prod(getattr(self, name) for name in DEGREES)

    def __str__(self) -> str:
        degrees = [f"{name} {getattr(self, name)}" for name in DEGREES if getattr(self, name) > 1]
        extras = [f"ZeRO-{self.shard}"] if self.shard else []
        if self.micro_batches > 1:
            extras.append(f"{self.micro_batches} micro-batches")
        if self.pipeline > 1:
            extras.append(self.schedule)
        if self.virtual_stages > 1:
            extras.append(f"{self.virtual_stages} pieces a stage")
        if self.recompute:
            extras.append("recompute")
        return ", ".join([" x ".join(degrees) or "serial", *extras])

    def to_dict(self) -> dict[str, Any]:
        """Return the strategy as plain data."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Strategy:
        """Return the strategy that `to_dict` wrote."""
        known = tuple(f.name for f in fields(cls))
        for name in data:
            if name not in known:
                raise UnknownNameError("part of a strategy", str(name), known)
        return cls(**data)
