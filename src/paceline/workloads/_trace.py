"""The layer graph of any PyTorch module, without running it on data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from paceline.errors import InvalidInputError, MissingDependencyError
from paceline.workloads._graph import GraphLayer, LayerGraph
from paceline.workloads._module import LOSSES
from paceline.workloads._network import Shape

if TYPE_CHECKING:
    from torch import Tensor, nn

    from paceline.workloads._torch_record import Key, Place

BATCH = 2
LARGER_BATCH = 4  # what is kept is told apart from what no batch changes by a second size


def trace_module(
    module: nn.Module,
    shape: Sequence[int],
    *,
    vocabulary: int | None = None,
    name: str = "module",
    loss: str = "cross_entropy",
) -> LayerGraph:
    """Return the layers of a module, found by running it on the meta device.

    Neither data nor memory are needed, and the module is left as it is. A layer is a module
    without parts, or what a module with parts does between two of them. The network may be cut
    where exactly one tensor crosses. FLOP are those of torch's counter; where the module can be
    exported, the exported one must have as many.

    Parameters
    ----------
    module
        Any module that takes one batch and returns one tensor, a row of numbers per sample.
    shape
        Of one sample, without the batch.
    vocabulary
        Number of tokens when the samples are tokens.
    name
        Of the graph.
    loss
        ``"cross_entropy"``, or ``"mse"`` against the input itself.

    Raises
    ------
    InvalidInputError
        When the module cannot be traced; names the operation.
    MissingDependencyError
        Without PyTorch.
    """
    try:
        from paceline.workloads import _torch_run
    except ImportError as error:
        raise MissingDependencyError("Tracing a module", "PyTorch", "torch") from error
    if loss not in LOSSES:
        raise InvalidInputError(f"`loss` must be one of {', '.join(LOSSES)}, but got {loss!r}.")
    sizes = _checked_shape(shape)
    places, output = _torch_run.counted(module, sizes, vocabulary, loss, BATCH)
    few, more = (
        _torch_run.kept(module, sizes, vocabulary, loss, n) for n in (BATCH, LARGER_BATCH)
    )
    kept = {key: (more[key] - few.get(key, 0)) // (LARGER_BATCH - BATCH) for key in more}
    layers = _Assembly(places, kept, output).layers()
    return LayerGraph(name=name, layers=layers, loss=loss)


def _checked_shape(shape: Sequence[int]) -> Shape:
    if not shape or any(not isinstance(size, int) or size < 1 for size in shape):
        raise InvalidInputError(f"`shape` must be positive whole numbers, but got {shape!r}.")
    return tuple(shape)


class _Assembly:
    """Layers from places, in the order in which they ran."""

    def __init__(
        self, places: Mapping[Key, Place], kept: Mapping[Key, int], output: Tensor
    ) -> None:
        self._places = [(key, place) for key, place in places.items() if _matters(place)]
        self._kept = _moved(kept, list(places), [key for key, _ in self._places])
        self._output = output
        self._owners: dict[int, str] = {}  # of weights and buffers: the first that uses them
        self._names: Counter[str] = Counter()

    def layers(self) -> tuple[GraphLayer, ...]:
        layers = [self._layer(key, place) for key, place in self._places]
        blocks = _blocks([place for _, place in self._places], [x.name for x in layers])
        return tuple(
            replace(layer, block=block) for layer, block in zip(layers, blocks, strict=True)
        )

    def _layer(self, key: Key, place: Place) -> GraphLayer:
        from paceline.workloads import _torch_kinds as kinds

        kind = kinds.kind_of(place)
        name = self._unique(kinds.label_of(place, kind))
        given, returned = _ends(place)
        output_shape = () if kind == "loss" else _sample_shape(returned)
        splits = kinds.splits_of(place, kind, output_shape)
        if kind == "loss" and self._output.ndim > 2:
            splits = ("sequence",)
        return GraphLayer(
            name=name,
            kind=kind,
            block=name,
            input_shape=_sample_shape(given),
            output_shape=output_shape,
            weight_shape=kinds.weight_shape(place, kind),
            forward_flop=place.forward_flop // BATCH,
            backward_flop=place.backward_flop // BATCH,
            input_bytes=sum(map(_sample_bytes, place.reads.values())),
            output_bytes=0 if kind == "loss" else _sample_bytes(returned),
            stored_bytes=self._kept.get(key, 0),
            splits=splits,
            n_heads=kinds.n_heads(place, kind, BATCH),
            **self._held(place, name),
            **kinds.window(place),
        )

    def _unique(self, name: str) -> str:
        self._names[name] += 1
        return name if self._names[name] == 1 else f"{name}#{self._names[name]}"

    def _held(self, place: Place, name: str) -> dict[str, Any]:
        """Return what of weights and buffers no layer before has, and whose weight is shared."""
        new = {k: w for k, w in place.weights.items() if k not in self._owners}
        buffers = {k: b for k, b in place.buffers.items() if k not in self._owners}
        shared = [k for k, w in place.weights.items() if k in self._owners and w.ndim > 1]
        tied = self._owners[shared[0]] if shared else ""
        self._owners |= dict.fromkeys([*new, *buffers], name)
        return {
            "n_parameters": sum(w.numel() for w in new.values() if w.requires_grad),
            "weight_bytes": sum(map(_bytes, new.values())),
            "buffer_bytes": sum(map(_bytes, buffers.values())),
            "tied": tied,
        }


def _matters(place: Place) -> bool:
    """Return whether a place is a layer: views between modules and constants are none."""
    if place.forward_flop or place.backward_flop:
        return True
    flows = bool(place.reads or place.weights)
    return flows and (place.is_leaf or not place.views_only)


def _moved(kept: Mapping[Key, int], order: Sequence[Key], layers: Sequence[Key]) -> dict[Key, int]:
    """Give what is kept where no layer is to the layer before."""
    found: dict[Key, int] = dict.fromkeys(layers, 0)
    ranks = sorted(layers, key=lambda key: key[1])
    for key, n_bytes in kept.items():
        before = [other for other in ranks if other[1] <= key[1]]
        target = key if key in found else (before[-1] if before else ranks[0])
        found[target] += n_bytes
    return found


def _ends(place: Place) -> tuple[Tensor, Tensor]:
    """Return the first tensor that a layer reads and the last that it writes."""
    read = place.given if place.given is not None else next(iter(place.reads.values()), None)
    last = next(reversed(place.writes.values()), None) if place.writes else None
    written = place.returned if place.returned is not None else last
    some = read if read is not None else written
    assert some is not None  # it reads or writes something, or it would be no layer
    return (some, written if written is not None else some)


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _sample_bytes(tensor: Tensor) -> int:
    return _bytes(tensor) // BATCH


def _sample_shape(tensor: Tensor) -> Shape:
    """Return a shape without the batch, which may be folded into the first axis."""
    shape = tuple(tensor.shape)
    if not shape or shape[0] % BATCH:
        return shape
    return shape[1:] if shape[0] == BATCH else (shape[0] // BATCH, *shape[1:])


def _blocks(places: Sequence[Place], names: Sequence[str]) -> list[str]:
    """Return the block of every layer: a new one begins where one tensor crosses."""
    last_read = {key: i for i, place in enumerate(places) for key in place.reads}
    written: set[int] = set()
    blocks, block = [], names[0]
    for i, (place, name) in enumerate(zip(places, names, strict=True)):
        crossing = {key for key in written if last_read.get(key, -1) >= i}
        if i and len(crossing) == 1 and name != "loss":
            block = name
        blocks.append(block)
        written |= {*place.writes, *(place.reads if i == 0 else ())}
    return blocks
