"""A network as plain data: its operations, one input, and what is known of each layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import InvalidInputError

Operation = dict[str, Any]
Shape = tuple[int, ...]

BYTES_PER_NUMBER = 4  # float32 throughout
JOINS = ("residual", "product")  # operations with a body and a shortcut


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What is trained, the same for every framework.

    Parameters
    ----------
    operations
        As docs/executors.md lists them; sizes are of one sample, without the batch.
    sample
        One input: ``{"shape": [...], "n_classes": n}``, with ``"vocabulary"`` for tokens.
    loss
        ``"cross_entropy"``, or ``"mse"`` against the input itself.
    """

    operations: tuple[Operation, ...]
    sample: Mapping[str, Any]
    loss: str = "cross_entropy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "operations", tuple(self.operations))
        if not self.operations:
            raise InvalidInputError("A network must have at least one operation.")
        if self.loss not in ("cross_entropy", "mse"):
            raise InvalidInputError(
                f"`loss` must be 'cross_entropy' or 'mse', but got {self.loss!r}."
            )
        _check_shape(self.sample)

    def __str__(self) -> str:
        shape = format_shape(self.input_shape)
        return f"{len(self.operations)} operations on {shape}, {self.loss}"

    @property
    def input_shape(self) -> Shape:
        """Shape of one input."""
        return tuple(self.sample["shape"])

    def to_dict(self) -> dict[str, Any]:
        """Return the network as plain data."""
        return {
            "operations": list(self.operations),
            "sample": dict(self.sample),
            "loss": self.loss,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Network:
        """Return the network that `to_dict` described."""
        return cls(operations=tuple(data["operations"]), sample=data["sample"], loss=data["loss"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer of a network, for one sample in float32.

    Parameters
    ----------
    name
        As in the operations.
    kind
        Which operation it is.
    block
        Name of the outermost operation it belongs to; its own unless inside a residual.
    output_shape
        Without the batch.
    n_parameters, weight_bytes
        What is learned.
    forward_flop
        Floating-point operations of the forward pass of one sample, 2 per multiply-add.
    activation_bytes
        Size of the output for one sample.
    """

    name: str
    kind: str
    block: str
    output_shape: Shape
    n_parameters: int
    weight_bytes: int
    forward_flop: int
    activation_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.kind}) -> {format_shape(self.output_shape)}: "
            f"{self.forward_flop} FLOP, {self.n_parameters} parameters"
        )


def format_shape(shape: Shape) -> str:
    """Return a shape as people write it."""
    return " x ".join(map(str, shape)) or "one number"


def _check_shape(sample: Mapping[str, Any]) -> None:
    shape = sample.get("shape", ())
    if not shape or any(not isinstance(size, int) or size < 1 for size in shape):
        raise InvalidInputError(
            f"`shape` of a sample must be positive whole numbers, but got {shape!r}."
        )
