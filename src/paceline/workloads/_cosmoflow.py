"""CosmoFlow on cubes of four channels: four numbers of a universe from its matter.

``cosmoflow`` is the reference of MLPerf HPC (github.com/mlcommons/hpc, cosmoflow/models and
configs/cosmo.yaml): five convolutions of 2 x 2 x 2 with ``same`` padding, 32 filters and twice
as many in each next one, leaky ReLU and maxima of 2 x 2 x 2, dense layers of 128 and 64.
``cosmoflow-paradl`` is that of ParaDL's logs (github.com/ankahira/paraDL,
cosmoflow/models/sequential_cosmoflow.py): seven convolutions without bias, averages between.

Both are our reading of that code. The output's ``tanh`` scaled by 1.2 is left unscaled, and the
loss is the cross entropy of four classes in place of the squared error: neither has weights.
"""

from __future__ import annotations

from typing import Any

from paceline.workloads._base import Workload
from paceline.workloads._layers import output_shape
from paceline.workloads._network import Network, Operation
from paceline.workloads._operations import activation, conv, dropout, flatten, linear, pool
from paceline.workloads._values import numeric

N_CHANNELS = N_CLASSES = 4
N_CONVOLUTIONS = 5
DENSE = (128, 64)
# ParaDL: filters, kernel, stride, padding, and whether averages of 2 x 2 x 2 follow
PARADL_CONVOLUTIONS = (
    (16, 3, 1, 0, True),
    (32, 3, 1, 0, True),
    (64, 3, 1, 1, True),
    (128, 3, 2, 1, True),
    (256, 2, 1, 1, True),
    (256, 2, 1, 1, True),
    (128, 2, 1, 1, False),
)
PARADL_DENSE = (2048, 256)
SLOPE = "leaky_relu"


class CosmoFlowWorkload(Workload):
    """The reference of MLPerf HPC."""

    def __init__(self) -> None:
        super().__init__(
            "cosmoflow",
            "CosmoFlow of MLPerf HPC on cubes",
            (
                numeric("volume", 64, 128, 256),
                numeric("filters", 16, 32),
                numeric("kernel_size", 2, 3),
                numeric("dropout", 0.0, 0.5),
            ),
            {"volume": 128, "filters": 32, "kernel_size": 2, "dropout": 0.5},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        operations: list[Operation] = []
        channels = N_CHANNELS
        for i in range(1, N_CONVOLUTIONS + 1):
            filters = values["filters"] * 2 ** (i - 1)
            operations += [
                conv(f"conv{i}", (channels, filters), values["kernel_size"], dims=3),
                activation(f"activation{i}", SLOPE),
                pool(f"pool{i}", 2, dims=3, stride=2),
            ]
            channels = filters
        operations = _with_dense([*operations, flatten()], values, DENSE, values["dropout"])
        return _network([*operations, activation("tanh", "tanh")], values)


class ParaDLCosmoFlowWorkload(Workload):
    """The network of ParaDL's logs."""

    def __init__(self) -> None:
        super().__init__(
            "cosmoflow-paradl",
            "CosmoFlow of ParaDL on cubes",
            (numeric("volume", 128, 256, 512),),
            {"volume": 256},
        )

    def _network(self, values: dict[str, Any]) -> Network:
        operations: list[Operation] = []
        channels = N_CHANNELS
        for i, (filters, kernel, stride, padding, pools) in enumerate(PARADL_CONVOLUTIONS, 1):
            operations += [
                conv(
                    f"conv{i}",
                    (channels, filters),
                    kernel,
                    dims=3,
                    stride=stride,
                    padding=padding,
                    bias=False,
                ),
                activation(f"activation{i}", SLOPE),
            ]
            if pools:
                operations += [pool(f"pool{i}", 2, dims=3, stride=2, kind="average")]
            channels = filters
        return _network(_with_dense([*operations, flatten()], values, PARADL_DENSE, 0.0), values)


def _with_dense(
    operations: list[Operation], values: dict[str, Any], widths: tuple[int, ...], share: float
) -> list[Operation]:
    width = output_shape(operations, _shape(values))[0]
    for i, n_out in enumerate(widths, start=1):
        operations += [
            linear(f"dense{i}", width, n_out),
            activation(f"dense{i}.activation", SLOPE),
        ]
        operations += [dropout(f"dropout{i}", share)] if share else []
        width = n_out
    return [*operations, linear("output", width, N_CLASSES)]


def _shape(values: dict[str, Any]) -> tuple[int, ...]:
    return (N_CHANNELS, *(values["volume"],) * 3)


def _network(operations: list[Operation], values: dict[str, Any]) -> Network:
    sample = {"shape": list(_shape(values)), "n_classes": N_CLASSES}
    return Network(operations=tuple(operations), sample=sample)
