"""LeNet-5 with every parameter of table 4.1.

The thesis does not say how the table's values map onto the network. Fixed here: two blocks of
convolution (`kernel_size`, `stride`, `padding`; `filters`, then twice as many), `activation` and
maximum pooling (window and stride both `pool_size`, never padded), then dense layers of 120, 84
and 10 with `activation` between them and `dropout` before the last. `dataset` fixes the input.
With ``valid`` padding 13 of the 48 choices of kernel, pool and stride can be built on 28 x 28
and 17 on 32 x 32.
"""

from __future__ import annotations

from typing import Any

from paceline.workloads._base import Workload
from paceline.workloads._layers import output_shape
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import activation, conv, dropout, flatten, linear, pool
from paceline.workloads._values import ACTIVATIONS, categorical, numeric

INPUT_SHAPES = {"mnist": (1, 28, 28), "fashion-mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
N_CLASSES = 10


class LeNet5Workload(Workload):
    """LeNet-5 on images of MNIST, Fashion-MNIST or CIFAR-10."""

    def __init__(self) -> None:
        super().__init__(
            "lenet5",
            "LeNet-5 with the parameters of table 4.1",
            (
                numeric("kernel_size", 2, 3, 4, 5),
                numeric("pool_size", 2, 3, 4, 5),
                categorical("activation", *ACTIVATIONS),
                categorical("dataset", *INPUT_SHAPES),
                numeric("filters", 4, 8, 16, 32, 64),
                categorical("padding", "valid", "same"),
                numeric("stride", 1, 2, 3),
                numeric("dropout", 0.2, 0.5, 0.8),
            ),
            {
                "kernel_size": 5,
                "pool_size": 2,
                "activation": "relu",
                "dataset": "mnist",
                "filters": 8,
                "padding": "valid",
                "stride": 1,
                "dropout": 0.5,
            },
        )

    def _network(self, values: dict[str, Any]) -> Network:
        shape = INPUT_SHAPES[values["dataset"]]
        filters = values["filters"]
        maps = [
            *_block(1, (shape[0], filters), values),
            *_block(2, (filters, 2 * filters), values),
            flatten(),
        ]
        (n_features,) = output_shape(maps, shape)
        operations = (*maps, *_head(n_features, values))
        return Network(
            operations=operations, sample={"shape": list(shape), "n_classes": N_CLASSES}
        )


def _block(number: int, channels: tuple[int, int], values: dict[str, Any]) -> list[Operation]:
    size = values["pool_size"]
    return [
        conv(
            f"conv{number}",
            channels,
            values["kernel_size"],
            dims=2,
            stride=values["stride"],
            padding=values["padding"],
        ),
        activation(f"activation{number}", values["activation"]),
        pool(f"pool{number}", size, dims=2, stride=size),
    ]


def _head(n_features: int, values: dict[str, Any]) -> list[Operation]:
    return [
        linear("dense1", n_features, 120),
        activation("activation3", values["activation"]),
        linear("dense2", 120, 84),
        activation("activation4", values["activation"]),
        dropout("dropout", values["dropout"]),
        linear("dense3", 84, N_CLASSES),
    ]
