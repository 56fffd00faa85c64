"""ResNet-18, -50 and -152 (He et al., arXiv 1512.03385) for images.

The stride of a bottleneck is at its 3 x 3 convolution, as in torchvision. `filters` is the width
of the stem; 64, 224 x 224 and 1000 classes are the published network.
"""

from __future__ import annotations

from typing import Any

from paceline.workloads._base import Workload
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import (
    activation,
    batch_norm,
    conv,
    global_pool,
    linear,
    pool,
    residual,
)
from paceline.workloads._values import numeric

BLOCKS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3), 152: (3, 8, 36, 3)}
EXPANSION = {18: 1, 50: 4, 152: 4}  # channels of a block's output by those of its inside


class ResNetWorkload(Workload):
    """A residual network on images, 18, 50 or 152 layers deep."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__(
            f"resnet{depth}",
            f"ResNet-{depth} on images",
            (
                numeric("image_size", 32, 64, 128, 224),
                numeric("n_classes", 10, 100, 1000),
                numeric("filters", 16, 32, 64),
            ),
            {"image_size": 224, "n_classes": 1000, "filters": 64},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        filters, side = values["filters"], values["image_size"]
        operations = _stem(filters)
        channels = filters
        for stage, n_blocks in enumerate(BLOCKS[self.depth], start=1):
            width = filters * 2 ** (stage - 1)
            for i in range(1, n_blocks + 1):
                stride = 2 if i == 1 and stage > 1 else 1
                operations += self._block(f"stage{stage}.block{i}", channels, width, stride)
                channels = width * EXPANSION[self.depth]
        operations += [
            global_pool("global_pool", dims=2),
            linear("output", channels, values["n_classes"]),
        ]
        sample = {"shape": [3, side, side], "n_classes": values["n_classes"]}
        return Network(operations=tuple(operations), sample=sample)

    def _block(self, name: str, n_in: int, width: int, stride: int) -> list[Operation]:
        n_out = width * EXPANSION[self.depth]
        make_body = _basic if self.depth < 50 else _bottleneck
        shortcut = _normed(f"{name}.shortcut.", "", (n_in, n_out), 1, stride)
        needed = stride > 1 or n_in != n_out
        return [
            residual(name, make_body(name, n_in, width, stride), shortcut if needed else ()),
            activation(f"{name}.activation", "relu"),
        ]


def _stem(filters: int) -> list[Operation]:
    return [
        *_normed("stem.", "", (3, filters), 7, 2),
        activation("stem.activation", "relu"),
        pool("stem.pool", 3, dims=2, stride=2, padding=1),
    ]


def _basic(name: str, n_in: int, width: int, stride: int) -> list[Operation]:
    return [
        *_normed(f"{name}.", "1", (n_in, width), 3, stride),
        activation(f"{name}.activation1", "relu"),
        *_normed(f"{name}.", "2", (width, width), 3, 1),
    ]


def _bottleneck(name: str, n_in: int, width: int, stride: int) -> list[Operation]:
    return [
        *_normed(f"{name}.", "1", (n_in, width), 1, 1),
        activation(f"{name}.activation1", "relu"),
        *_normed(f"{name}.", "2", (width, width), 3, stride),
        activation(f"{name}.activation2", "relu"),
        *_normed(f"{name}.", "3", (width, width * EXPANSION[50]), 1, 1),
    ]


def _normed(
    prefix: str, suffix: str, channels: tuple[int, int], kernel: int, stride: int
) -> list[Operation]:
    """Return a convolution without bias and its batch normalisation."""
    return [
        conv(f"{prefix}conv{suffix}", channels, kernel, dims=2, stride=stride, bias=False),
        batch_norm(f"{prefix}norm{suffix}", channels[1], dims=2),
    ]
