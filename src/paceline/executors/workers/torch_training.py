"""What every way of training with PyTorch shares: batches as tensors, losses, optimizers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from paceline.executors.workers import protocol
    from paceline.executors.workers.samples import Samples
else:
    import protocol  # a neighbour: Paceline is not installed here

_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "momentum": partial(torch.optim.SGD, momentum=0.9),
    "sgd": torch.optim.SGD,
}


def make_optimizer(
    wanted: dict[str, Any], parameters: list[nn.Parameter]
) -> torch.optim.Optimizer:
    """Return the optimizer that a job names.

    Raises
    ------
    RefusedError
        When there is none of that name.
    """
    name = wanted["name"]
    if name not in _OPTIMIZERS:
        known = ", ".join(sorted(_OPTIMIZERS))
        raise protocol.RefusedError(f"`optimizer.name` must be one of {known}, but got {name!r}.")
    optimizer: torch.optim.Optimizer = _OPTIMIZERS[name](parameters, lr=wanted["learning_rate"])
    return optimizer


def tensors_of(
    samples: Samples, raw: bytearray, labels: Any, loss: str, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of samples that were read."""
    shape = (-1, *samples.shape)
    if samples.item == "i":
        tokens = torch.frombuffer(raw, dtype=torch.int32).view(shape).to(device).long()
        return tokens[:, :-1], tokens[:, 1:]
    if samples.item == "f":
        inputs = torch.frombuffer(raw, dtype=torch.float32).view(shape).to(device)
    else:
        pixels = torch.frombuffer(raw, dtype=torch.uint8).view(shape).to(device)
        inputs = pixels.float().mul_(1 / 255)
    if loss == "mse":
        return inputs, inputs.flatten(1)
    return inputs, torch.frombuffer(labels, dtype=torch.int64).to(device)


def loss_of(kind: str, outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss of a batch."""
    if kind == "mse":
        return functional.mse_loss(outputs.flatten(1), targets)
    return functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
