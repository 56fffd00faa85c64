"""AlexNet in its form of one tower (Krizhevsky, arXiv 1404.5997), as torchvision has it.

64, 192, 384, 256 and 256 filters and no normalisation between them: 61 100 840 parameters for
1000 classes. (The network of 2012 is split over two towers and has 60.97 million.)
"""

from __future__ import annotations

from typing import Any

from paceline.workloads._base import Workload
from paceline.workloads._layers import output_shape
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import activation, conv, dropout, flatten, linear, pool
from paceline.workloads._values import numeric

# filters, kernel, stride, padding, and whether a pooling of 3 x 3 / 2 follows
CONVOLUTIONS = (
    (64, 11, 4, 2, True),
    (192, 5, 1, 2, True),
    (384, 3, 1, 1, False),
    (256, 3, 1, 1, False),
    (256, 3, 1, 1, True),
)
WIDTH = 4096  # of both dense layers


class AlexNetWorkload(Workload):
    """AlexNet on images."""

    def __init__(self) -> None:
        super().__init__(
            "alexnet",
            "AlexNet of one tower on images",
            (
                numeric("image_size", 64, 128, 224),
                numeric("n_classes", 10, 100, 1000),
                numeric("dropout", 0.0, 0.5),
            ),
            {"image_size": 224, "n_classes": 1000, "dropout": 0.5},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        shape = (3, values["image_size"], values["image_size"])
        operations = _features()
        operations += classifier(output_shape(operations, shape)[0], WIDTH, values)
        sample = {"shape": list(shape), "n_classes": values["n_classes"]}
        return Network(operations=tuple(operations), sample=sample)


def _features() -> list[Operation]:
    operations: list[Operation] = []
    channels = 3
    for i, (filters, kernel, stride, padding, pools) in enumerate(CONVOLUTIONS, start=1):
        sizes: dict[str, int] = {"stride": stride, "padding": padding}
        operations += [
            conv(f"conv{i}", (channels, filters), kernel, dims=2, **sizes),  # type: ignore[arg-type]
            activation(f"activation{i}", "relu"),
        ]
        operations += [pool(f"pool{i}", 3, dims=2, stride=2)] if pools else []
        channels = filters
    return [*operations, flatten()]


def classifier(n_in: int, width: int, values: dict[str, Any]) -> list[Operation]:
    """Return the three dense layers of AlexNet, its dropout before each of the first two."""
    return [
        dropout("dropout6", values["dropout"]),
        linear("dense6", n_in, width),
        activation("activation6", "relu"),
        dropout("dropout7", values["dropout"]),
        linear("dense7", width, width),
        activation("activation7", "relu"),
        linear("output", width, values["n_classes"]),
    ]
