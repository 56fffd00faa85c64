"""The multilayer perceptron of chapter 3, on MNIST.

The thesis gives no layers. Ours: `hidden` layers of `width` with `activation`, then 10 classes.
"""

from __future__ import annotations

import math
from typing import Any

from paceline.workloads._base import Workload
from paceline.workloads._network import Network
from paceline.workloads._operations import activation, flatten, linear
from paceline.workloads._values import ACTIVATIONS, categorical, numeric

INPUT_SHAPE = (1, 28, 28)
N_CLASSES = 10


class MlpWorkload(Workload):
    """A multilayer perceptron on images of MNIST."""

    def __init__(self) -> None:
        super().__init__(
            "mlp",
            "multilayer perceptron of chapter 3 on MNIST",
            (
                numeric("hidden", 1, 2, 3, 4),
                numeric("width", 64, 128, 256, 512, 1024),
                categorical("activation", *ACTIVATIONS),
            ),
            {"hidden": 2, "width": 512, "activation": "relu"},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        operations = [flatten()]
        n_in = math.prod(INPUT_SHAPE)
        for i in range(1, values["hidden"] + 1):
            operations += [
                linear(f"dense{i}", n_in, values["width"]),
                activation(f"activation{i}", values["activation"]),
            ]
            n_in = values["width"]
        operations.append(linear("output", n_in, N_CLASSES))
        return Network(
            operations=tuple(operations),
            sample={"shape": list(INPUT_SHAPE), "n_classes": N_CLASSES},
        )
