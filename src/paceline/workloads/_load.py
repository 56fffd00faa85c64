"""Workloads by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from paceline.errors import UnknownNameError
from paceline.workloads._alexnet import AlexNetWorkload
from paceline.workloads._autoencoder import AutoencoderWorkload
from paceline.workloads._base import Workload
from paceline.workloads._cosmoflow import CosmoFlowWorkload, ParaDLCosmoFlowWorkload
from paceline.workloads._gpt import SIZES as GPT_SIZES
from paceline.workloads._gpt import GptWorkload
from paceline.workloads._lenet5 import LeNet5Workload
from paceline.workloads._llama import SIZES as LLAMA_SIZES
from paceline.workloads._llama import LlamaWorkload
from paceline.workloads._mlp import MlpWorkload
from paceline.workloads._resattnet import ResAttNetWorkload
from paceline.workloads._resnet import ResNetWorkload
from paceline.workloads._vgg import Vgg16Workload

_MEMBERS: Mapping[str, Callable[[], Workload]] = {
    "alexnet": AlexNetWorkload,
    "autoencoder": AutoencoderWorkload,
    "cosmoflow": CosmoFlowWorkload,
    "cosmoflow-paradl": ParaDLCosmoFlowWorkload,
    **{name: partial(GptWorkload, name) for name in GPT_SIZES},
    "lenet5": LeNet5Workload,
    **{name: partial(LlamaWorkload, name) for name in LLAMA_SIZES},
    "mlp": MlpWorkload,
    "resattnet18": lambda: ResAttNetWorkload(18),
    "resattnet34": lambda: ResAttNetWorkload(34),
    "resnet18": lambda: ResNetWorkload(18),
    "resnet50": lambda: ResNetWorkload(50),
    "resnet152": lambda: ResNetWorkload(152),
    "vgg16": Vgg16Workload,
}


def list_workloads() -> list[str]:
    """Return the names of the workloads.

    Examples
    --------
    >>> list_workloads()[:3]
    ['alexnet', 'autoencoder', 'cosmoflow']
    """
    return list(_MEMBERS)


def load_workload(name: str) -> Workload:
    """Return a workload by its name.

    Raises
    ------
    UnknownNameError
        When there is none; suggests the nearest.

    Examples
    --------
    >>> load_workload("lenet5")
    <workload lenet5: LeNet-5 with the parameters of table 4.1>
    """
    if name not in _MEMBERS:
        raise UnknownNameError("workload", name, _MEMBERS)
    return _MEMBERS[name]()
