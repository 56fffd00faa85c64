"""3D-ResAttNet-18 and -34 with the parameters of table 5.1, on cubes of one channel.

Our reading of Zhang et al. (arXiv 2008.04024), whose code is not public: a stem of convolution,
batch normalisation, `activation` and maximum pooling; four stages of basic residual blocks, the
first of `filters` channels and each next one twice as wide at half the side; attention between
positions after stages 3 and 4; mean over positions; two classes.

Table 5.1 says nothing of where its values go. Fixed here: `kernel_size` and `padding` are of the
stem's convolution (blocks keep 3 x 3 x 3 with ``same``, or nothing could be summed), `pool_size`
is the window of the stem's pooling, `stride` that of both, `filters` the width of everything.
The defaults are the network of the paper, 7³/2 with 64 filters, then 3³/2.
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
    self_attention,
)
from paceline.workloads._values import ACTIVATIONS, categorical, numeric

N_CLASSES = 2
BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}
ATTENTION_AFTER = (3, 4)  # stages
INNER_SHARE = 8  # keys and queries have an eighth of the channels


class ResAttNetWorkload(Workload):
    """3D-ResAttNet on brain scans, 18 or 34 layers deep."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        super().__init__(
            f"resattnet{depth}",
            f"3D-ResAttNet-{depth} with the parameters of table 5.1",
            (
                numeric("kernel_size", 2, 3, 4, 5),
                numeric("pool_size", 1),
                categorical("activation", *ACTIVATIONS),
                categorical("dataset", "adni"),
                numeric("filters", 16, 32, 64),
                categorical("padding", "valid", "same"),
                numeric("stride", 2),
                numeric("volume", 96, 128),
            ),
            {
                "kernel_size": 7,
                "pool_size": 3,
                "activation": "relu",
                "dataset": "adni",
                "filters": 64,
                "padding": "same",
                "stride": 2,
                "volume": 96,
            },
        )

    def _network(self, values: dict[str, Any]) -> Network:
        operations = _stem(values)
        channels = values["filters"]
        for stage, n_blocks in enumerate(BLOCKS[self.depth], start=1):
            width = values["filters"] * 2 ** (stage - 1)
            operations += _stage(stage, n_blocks, (channels, width), values["activation"])
            channels = width
        operations += [
            global_pool("global_pool", dims=3),
            linear("output", channels, N_CLASSES),
        ]
        shape = [1, values["volume"], values["volume"], values["volume"]]
        return Network(
            operations=tuple(operations), sample={"shape": shape, "n_classes": N_CLASSES}
        )


def _stem(values: dict[str, Any]) -> list[Operation]:
    stride, window = values["stride"], values["pool_size"]
    return [
        conv(
            "stem.conv",
            (1, values["filters"]),
            values["kernel_size"],
            dims=3,
            stride=stride,
            padding=values["padding"],
            bias=False,
        ),
        batch_norm("stem.norm", values["filters"], dims=3),
        activation("stem.activation", values["activation"]),
        pool("stem.pool", window, dims=3, stride=stride, padding=(window - 1) // 2),
    ]


def _stage(stage: int, n_blocks: int, channels: tuple[int, int], function: str) -> list[Operation]:
    operations: list[Operation] = []
    for i in range(1, n_blocks + 1):
        first = i == 1
        operations += _block(
            f"stage{stage}.block{i}",
            channels if first else (channels[1], channels[1]),
            2 if first and stage > 1 else 1,
            function,
        )
    if stage in ATTENTION_AFTER:
        width = channels[1]
        operations.append(
            self_attention(f"attention{stage}", width, dims=3, inner=width // INNER_SHARE)
        )
    return operations


def _block(name: str, channels: tuple[int, int], stride: int, function: str) -> list[Operation]:
    width = channels[1]
    body = [
        conv(f"{name}.conv1", channels, 3, dims=3, stride=stride, bias=False),
        batch_norm(f"{name}.norm1", width, dims=3),
        activation(f"{name}.activation1", function),
        conv(f"{name}.conv2", (width, width), 3, dims=3, bias=False),
        batch_norm(f"{name}.norm2", width, dims=3),
    ]
    shortcut = [
        conv(f"{name}.shortcut.conv", channels, 1, dims=3, stride=stride, bias=False),
        batch_norm(f"{name}.shortcut.norm", width, dims=3),
    ]
    needed = stride > 1 or channels[0] != width
    return [
        residual(name, body, shortcut if needed else ()),
        activation(f"{name}.activation2", function),
    ]
