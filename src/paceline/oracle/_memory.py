"""What the fullest device holds when it holds most.

Alive at once are tensors as PyTorch's autograd keeps them: through the backward pass activations
go and gradients of weights come, so that the peak lies anywhere between the loss and the first
layer; or in the optimizer's step, whose temporaries are those of `torch.optim`: Adam makes two of
one tensor's size on a CPU, where it takes one tensor after another, and one of all weights' size
on other devices, where it takes them together. What libraries and allocators take besides
(workspaces of convolutions, fragments) is not modelled.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._block import Block
from paceline.oracle._keys import distinct
from paceline.oracle._overlap import BUCKET_BYTES
from paceline.oracle._passes import in_flight
from paceline.oracle.strategies import DIVISIONS
from paceline.oracle.strategies.sharded import held_shares

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

PARTS = ("weights", "gradients", "state", "activations", "buffers")


def hold_memory(block: Block) -> dict[str, Array]:
    """Return the bytes of the fullest device of every row at its peak, by part.

    ``weights``, ``gradients`` and the optimizer's ``state`` by what replicas share out;
    ``activations`` that are left for the backward pass, of all micro-batches in flight;
    ``buffers``: what is not learned, buckets of gradients, and temporaries.
    """
    parts = held_by_device(block)
    fullest = sum(parts.values()).argmax(axis=1)  # type: ignore[union-attr]
    rows = np.arange(len(block))
    return {name: part[rows, fullest] for name, part in parts.items()}


def held_by_device(block: Block) -> dict[str, Array]:
    """Return the bytes by part, row and device of a stage, each at its own peak."""
    kept = held_shares(block.table["shard"], block.replicas)
    weights = block.devices(block.sums(np.atleast_2d(block.parameter_bytes)))
    per_weight = block.numbers.state / block.numbers.weight
    held = {
        "weights": weights * kept["weights"][:, None] + _gathered(block),
        "state": weights * per_weight * kept["state"][:, None],
    }
    gradients = weights * kept["gradients"][:, None]
    constant = _constant(block, weights)
    backward = _backward(block, gradients, constant, kept["gradients"])
    update = _update(block, gradients, constant, kept["state"][:, None])
    later = np.asarray(sum(update.values()) > sum(backward.values()))
    changing = {name: np.where(later, update[name], backward[name]) for name in backward}
    parts = held | changing
    return {name: np.broadcast_to(parts[name], later.shape) for name in PARTS}


def _backward(block: Block, gradients: Array, constant: Array, kept: Array) -> dict[str, Array]:
    """Return the worst moment of the backward pass, on every device.

    `kept` is the share of gradients that stays when replicas have shared them out.
    """
    whole = (len(block), block.n_stages)
    found = {name: np.zeros(whole) for name in ("gradients", "activations", "buffers")}
    flying = np.broadcast_to(in_flight(block), whole)
    for rows, way in _alike(block):
        pairs = block.samples[rows] * block.numbers.scale, kept[rows]
        different = distinct(pairs)
        which = different.which
        left, at_work, made = way.worst(*(x[different.first] for x in pairs))
        held = flying[rows] * way.whole * (block.samples[rows, None] * block.numbers.scale)
        found["activations"][rows] = held + left[which]
        found["buffers"][rows] = at_work[which]
        found["gradients"][rows] = made[which] if way.is_growing else gradients[rows]
    found["buffers"] += constant
    return found


def _alike(block: Block) -> Iterator[tuple[Integers, _WayBack]]:
    """Yield rows that differ in samples alone, with the way back that they share."""
    table = block.table
    # gradients grow through the backward pass, but stay from one micro-batch to the next
    grows = table["micro_batches"] == 1
    degrees = [table[division.degree] for division in DIVISIONS]
    groups = distinct([grows, table["recompute"], *degrees])
    order = np.argsort(groups.which, kind="stable")
    ends = np.cumsum(np.bincount(groups.which, minlength=len(groups)))
    for low, high, first in zip([0, *ends[:-1]], ends, groups.first, strict=True):
        way = _WayBack(
            block,
            int(block.key[first]),
            is_growing=bool(grows[first]),
            is_again=bool(table["recompute"][first]),
        )
        yield order[low:high], way


class _WayBack:
    """What is there at every layer when the backward pass comes to it.

    Parameters
    ----------
    block
        Of which rows.
    key
        A distinct scenario; all with the same degrees share this.
    is_growing
        Whether gradients of weights come as the pass goes back, or are there already.
    is_again
        Whether activations are computed again, unit by unit.

    Attributes
    ----------
    whole
        Bytes that one sample leaves behind on every device.
    """

    def __init__(self, block: Block, key: int, *, is_growing: bool, is_again: bool) -> None:
        self.is_growing, self._block = is_growing, block
        columns, memory = block.columns, block.columns.memory
        self._bounds = columns.layer_bounds(block.n_parts)
        share, weight = (_row(x, key)[columns.which] for x in self._shares())
        self._stored, self._pieces = self._storage(share, is_again)
        self._at_work = memory.at_work * share + memory.lasting
        weight = weight * block.numbers.weight
        self._still, self._grown = memory.copies * weight, memory.made * weight
        if is_growing:
            self._grown = _from_behind(self._grown, self._bounds)
        else:
            self._still, self._grown = self._still + self._grown, np.zeros(len(weight))
        self.whole = self._by_device(self._pieces).sum(axis=0)

    def worst(self, samples: Array, kept: Array) -> tuple[Array, Array, Array]:
        """Return activations beyond `whole`, temporaries and gradients, by samples and device.

        Parameters
        ----------
        samples
            Different numbers of them, each times the size of a number by four bytes.
        kept
            The share of gradients that stays, for each.
        """
        column = samples[:, None]
        grown = kept[:, None] * self._grown
        total = column * (self._stored + self._at_work) + (self._still + grown)
        places = _places_of_most(total, self._bounds)
        left = column * (self._stored[places] - self._pieces)
        work = column * self._at_work[places] + self._still[places]
        made = np.take_along_axis(grown, places, axis=1)
        parts = [self._by_device(part) for part in (left, work, made)]
        worst = np.sum(parts, axis=0).argmax(axis=-2)[..., None, :]
        left, work, made = (np.take_along_axis(p, worst, axis=-2)[..., 0, :] for p in parts)
        return left, work, made

    def _shares(self) -> tuple[Array, Array]:
        shares = self._block.costs.shares
        return shares.activation, shares.weight

    def _storage(self, share: Array, is_again: bool) -> tuple[Array, Array]:
        """Return what one sample has stored at every layer, and in every piece."""
        columns = self._block.columns
        stored = (columns["stored_bytes"][columns.which] + columns.memory.besides) * share
        if not is_again:
            pieces = np.add.reduceat(stored, self._bounds[:-1])
            return _so_far(stored, self._bounds), pieces
        units, inputs = columns.layer_bounds(), np.zeros_like(stored)
        inputs[units[:-1]] = (columns["input_bytes"][columns.which] * share)[units[:-1]]
        pieces = np.add.reduceat(inputs, self._bounds[:-1])
        return _so_far(inputs, self._bounds) + _so_far(stored, units), pieces

    def _by_device(self, pieces: Array) -> Array:
        """Return pieces by round and device: piece i is on device i mod S."""
        block = self._block
        return pieces.reshape(*pieces.shape[:-1], block.virtual_stages, block.n_stages)


def _row(figures: Array, key: int) -> Array:
    found: Array = figures[key if len(figures) > 1 else 0]
    return found


def _so_far(figures: Array, bounds: Integers) -> Array:
    """Return sums from the beginning of each piece, the layer itself included."""
    sums = np.cumsum(figures)
    before = (sums - figures)[bounds[:-1]]
    return sums - np.repeat(before, np.diff(bounds))


def _from_behind(figures: Array, bounds: Integers) -> Array:
    """Return sums to the end of each piece, the layer itself included."""
    sums = np.cumsum(figures)
    return np.repeat(sums[bounds[1:] - 1], np.diff(bounds)) - sums + figures


def _places_of_most(total: Array, bounds: Integers) -> Integers:
    """Return the place of the largest figure in every piece, by row."""
    pieces = itertools.pairwise(bounds)
    return np.stack([total[:, a:b].argmax(axis=1) + a for a, b in pieces], axis=1)


def _update(block: Block, gradients: Array, constant: Array, share: Array) -> dict[str, Array]:
    """Return what is there while the optimizer works."""
    columns, numbers = block.columns, block.numbers
    samples = (block.samples * block.micro_batches)[:, None]
    per_sample = columns["input_bytes"][columns.which[0]] + columns.memory.lasting
    batch = per_sample * samples * numbers.scale
    weights = block.costs.shares.weight * numbers.update
    if block.cluster.n_cores:
        largest = np.zeros(len(columns))
        np.maximum.at(largest, columns.which, columns.memory.largest)
        one = (2 * largest * weights).max(axis=1)
        temporary = (one[block.key] if len(one) > 1 else one[0])[..., None] * share
    else:
        temporary = block.devices(block.sums(columns["n_parameters"] * weights)) * share
    return {
        "gradients": gradients,
        "activations": np.zeros((1, 1)),
        "buffers": constant + batch + temporary,
    }


def _gathered(block: Block) -> Array:
    """Weights of the unit at work, gathered from all replicas that share them out (ZeRO-3)."""
    sharded = block.table["shard"] == 3
    if not sharded.any():
        return np.zeros((1, 1))
    by_unit = block.sums(np.atleast_2d(block.parameter_bytes), block.columns.unit_counts)
    return np.where(sharded, by_unit.max(axis=1), 0.0)[:, None]


def _constant(block: Block, weights: Array) -> Array:
    """Return what is there all the time: what is not learned, and buckets of gradients.

    DistributedDataParallel keeps all gradients in buckets besides, others one bucket at a time.
    """
    unlearned = block.devices(block.sums(block.columns["buffer_bytes"][None, :]))
    sends = (block.replicas > 1)[:, None]
    whole = sends & (block.table["shard"] == 0)[:, None]
    buckets = np.where(whole, weights, np.where(sends, np.minimum(weights, BUCKET_BYTES), 0.0))
    found: Array = unlearned + buckets
    return found
