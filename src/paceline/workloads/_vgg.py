"""VGG-16 (Simonyan and Zisserman, arXiv 1409.1556, configuration D) without normalisation."""

from __future__ import annotations

from typing import Any

from paceline.workloads._base import Workload
from paceline.workloads._layers import output_shape
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import activation, conv, dropout, flatten, linear, pool
from paceline.workloads._values import numeric

STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # filters, convolutions
WIDTH = 4096  # of both dense layers


class Vgg16Workload(Workload):
    """VGG-16 on images."""

    def __init__(self) -> None:
        super().__init__(
            "vgg16",
            "VGG-16 on images",
            (
                numeric("image_size", 32, 64, 128, 224),
                numeric("n_classes", 10, 100, 1000),
                numeric("dropout", 0.0, 0.5),
            ),
            {"image_size": 224, "n_classes": 1000, "dropout": 0.5},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        shape = (3, values["image_size"], values["image_size"])
        operations = [*_features(), flatten()]
        n_in = output_shape(operations, shape)[0]
        for i, width in enumerate((n_in, WIDTH), start=1):
            operations += [
                linear(f"dense{i}", width, WIDTH),
                activation(f"activation{i}", "relu"),
                dropout(f"dropout{i}", values["dropout"]),
            ]
        operations += [linear("output", WIDTH, values["n_classes"])]
        sample = {"shape": list(shape), "n_classes": values["n_classes"]}
        return Network(operations=tuple(operations), sample=sample)


def _features() -> list[Operation]:
    operations: list[Operation] = []
    channels = 3
    for stage, (filters, n_convolutions) in enumerate(STAGES, start=1):
        for i in range(1, n_convolutions + 1):
            operations += [
                conv(f"conv{stage}_{i}", (channels, filters), 3, dims=2),
                activation(f"activation{stage}_{i}", "relu"),
            ]
            channels = filters
        operations += [pool(f"pool{stage}", 2, dims=2, stride=2)]
    return operations
