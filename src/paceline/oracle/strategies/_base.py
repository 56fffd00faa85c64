"""What every way to divide a step says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._columns import Columns

Array = NDArray[np.float64]

# causes of communication, as verdicts name them
GRADIENTS, LAYERWISE, HALO, TRANSFERS = (
    "gradient exchange",
    "layer-wise collectives",
    "halo exchange",
    "pipeline transfers",
)

# from the inside out: members of the first are neighbours; stages lie outside the replicas
PLACING = ("filter", "channel", "tensor", "spatial", "context", "expert", "data", "pipeline")
# or within each of them, where nothing but data and what divides weights is used besides
PLACING_INSIDE = (
    "filter",
    "channel",
    "tensor",
    "pipeline",
    "spatial",
    "context",
    "expert",
    "data",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The largest degree that a network takes.

    Parameters
    ----------
    largest
        1: the strategy is of no use to it.
    layer
        Which limits; empty for none.
    reason
        Why, in words that follow the layer's name.
    divisors_only
        Whether the degree must also divide `largest`.
    takes
        Says of a degree up to `largest` whether it is possible; None: all are.
    """

    largest: int
    layer: str = ""
    reason: str = ""
    divisors_only: bool = False
    takes: Callable[[int], bool] | None = None

    def allows(self, degree: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which degrees are possible."""
        within = np.asarray(degree <= self.largest)
        if self.divisors_only:
            within &= self.largest % degree == 0
        if self.takes is not None:
            values, which = np.unique(degree, return_inverse=True)
            within &= np.array([self.takes(int(n)) for n in values], dtype=bool)[which]
        return within

    def __str__(self) -> str:
        return f"layer {self.layer!r} {self.reason}" if self.layer else self.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What one device has of each layer, as a share of all; rows are degrees.

    Parameters
    ----------
    compute
        Of the FLOP.
    activation
        Of the bytes in and out, and of what is kept for the backward pass.
    weight
        Of the parameters.
    """

    compute: Array
    activation: Array
    weight: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent while a layer runs, which waits for it.

    Parameters
    ----------
    cause
        One of the causes above.
    collective
        A function of `paceline.clusters`.
    n_bytes
        Of one sample by degree (rows) and layer (columns), as that function takes them.
    n, stride
        Of the group, by degree, the stride in units of that of the strategy itself.
    forward, backward
        How many are sent in each pass.
    of_samples
        Whether the bytes are of one sample, or of all of a micro-batch at once.
    made_bytes
        Of the tensor that a device makes of what it received; None: as many as `n_bytes`.
    """

    cause: str
    collective: str
    n_bytes: Array
    n: NDArray[np.int64]
    stride: NDArray[np.int64]
    forward: int = 0
    backward: int = 0
    of_samples: bool = True
    made_bytes: Array | None = None


class Division(ABC):
    """A degree that divides work inside layers.

    Attributes
    ----------
    degree
        Its name in a `Strategy`.
    summary
        One line for people.
    moves_samples
        Whether devices hold different samples or places of them: then gradients of the weights
        that they share are exchanged among them, and others' messages shrink.
    """

    degree: str
    summary: str
    moves_samples: bool = False

    @abstractmethod
    def limit(self, columns: Columns) -> Limit:
        """Return the largest degree, and the layer that sets it."""

    @abstractmethod
    def shares(self, columns: Columns, degree: NDArray[np.int64]) -> Shares:
        """Return what one device has of every layer, by degree."""

    @abstractmethod
    def messages(self, columns: Columns, degree: NDArray[np.int64]) -> tuple[Message, ...]:
        """Return what is sent, by degree."""


def share_of(n: Array, degree: NDArray[np.int64], mask: NDArray[np.bool_]) -> Array:
    """Return the largest share of `n` things (columns) that are dealt out, 1 where not `mask`.

    Five filters on four devices are two on one of them: a share of 2 / 5.
    """
    whole = np.maximum(n, 1.0)
    share = np.ceil(whole / degree[:, None]) / whole
    return np.where(mask, share, 1.0)


def one(columns: Columns, degree: NDArray[np.int64]) -> Array:
    """Return shares of all of every layer."""
    return np.ones((len(degree), len(columns)))


def smallest(
    columns: Columns, mask: NDArray[np.bool_], field: str, what: str, *, divisors: bool = False
) -> Limit:
    """Return the limit that the smallest `field` among some layers sets."""
    places = np.flatnonzero(mask)
    if not len(places):
        return Limit(largest=1, reason=f"no layer has {what} to divide")
    i = int(places[np.argmin(columns[field][places])])
    n = int(columns[field][i])
    reason = f"({columns.layers[i].kind}) has {n} {what}"
    return Limit(
        largest=max(n, 1), layer=columns.layers[i].name, reason=reason, divisors_only=divisors
    )


def strides(
    degrees: Mapping[str, NDArray[np.int64]], *, inside: bool = False
) -> dict[str, NDArray[np.int64]]:
    """Return how far apart the members of each degree's groups are, in devices.

    Parameters
    ----------
    degrees
        By name.
    inside
        Whether the stages of a pipeline are neighbours, instead of its replicas.
    """
    found: dict[str, NDArray[np.int64]] = {}
    step = np.ones_like(degrees[PLACING[0]])
    for name in PLACING_INSIDE if inside else PLACING:
        found[name] = step
        step = step * degrees[name]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What replicas send each other, once a step or once a micro-batch.

    Parameters
    ----------
    collective
        A function of `paceline.clusters`.
    what
        ``gradients``, ``weights`` or ``buffers``: how many bytes.
    when
        ``forward``, ``backward`` or ``step``: what it may hide behind.
    every_micro_batch
        Whether every micro-batch needs it, or the last one alone.
    overlaps
        Whether it runs beside compute.
    """

    collective: str
    what: str
    when: str
    every_micro_batch: bool = False
    overlaps: bool = True
