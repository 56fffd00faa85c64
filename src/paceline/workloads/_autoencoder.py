"""The autoencoder of chapter 3, on MNIST.

The thesis gives no layers. Ours: an encoder of `hidden` layers, the first of `width` and every
next one half as wide, and its mirror image as decoder, with `activation` after each layer but
the last; the loss is the squared distance from the input.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from paceline.errors import InfeasibleError
from paceline.workloads._base import Workload
from paceline.workloads._network import Network
from paceline.workloads._operations import activation, flatten, linear
from paceline.workloads._values import ACTIVATIONS, categorical, numeric

INPUT_SHAPE = (1, 28, 28)


class AutoencoderWorkload(Workload):
    """An autoencoder on images of MNIST."""

    def __init__(self) -> None:
        super().__init__(
            "autoencoder",
            "autoencoder of chapter 3 on MNIST",
            (
                numeric("hidden", 1, 2, 3, 4),
                numeric("width", 64, 128, 256, 512),
                categorical("activation", *ACTIVATIONS),
            ),
            {"hidden": 2, "width": 256, "activation": "relu"},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        widths = _widths(values["hidden"], values["width"])
        operations = [flatten()]
        for i, (n_in, n_out) in enumerate(pairwise(widths), start=1):
            operations += [
                linear(f"dense{i}", n_in, n_out),
                activation(f"activation{i}", values["activation"]),
            ]
        return Network(
            operations=tuple(operations[:-1]),  # the output may be any number
            sample={"shape": list(INPUT_SHAPE), "n_classes": 10},
            loss="mse",
        )


def _widths(hidden: int, width: int) -> list[int]:
    """Return the widths from the input to the output."""
    if hidden > width.bit_length():
        raise InfeasibleError(
            f"dense{hidden}: a width of {width} cannot be halved {hidden - 1} times; take fewer "
            f"hidden layers or a larger width."
        )
    encoder = [math.prod(INPUT_SHAPE), *(width >> i for i in range(hidden))]
    return encoder + encoder[-2::-1]
