"""Networks of rows: a workload by name, or a Transformer by its shape or its size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from paceline.workloads import LayerGraph, load_workload

Shape = Mapping[str, float]

_HEAD = 128  # width of a head where only the model's width is known
_WIDTH_BY_LAYER = 100.0  # of usual Transformers, where only their size is known
_FLOP_PER_PARAMETER = 6.0  # and token, forward and backward


@lru_cache(maxsize=4096)
def build_graph(workload: str, items: tuple[tuple[str, Any], ...]) -> LayerGraph:
    """Return the network of a workload and its values."""
    return load_workload(workload).graph(dict(items))


def transformer_of(shape: Shape, tensor: int, n_pieces: int) -> tuple[str, tuple[Any, ...]]:
    """Return the workload and the values of the Transformer that a row describes.

    Parameters
    ----------
    shape
        By the roles of `SHAPE_NAMES`: ``width`` and ``layers``, or a size to guess them from.
    tensor, n_pieces
        What a guess has to allow: a degree of tensor parallelism, and pieces of a pipeline.
    """
    values = dict(shape)
    if not {"width", "layers"} <= set(values):
        values |= _guess(values, tensor, n_pieces)
    if "heads" not in values:
        values["heads"] = _heads(int(values["width"]), tensor)
    experts = values.get("experts", 1) > 1
    is_gated = experts or "inner" in values or "key_heads" in values
    name = "mixtral-8x7b" if experts else "llama-7b" if is_gated else "gpt2"
    if is_gated:
        values.setdefault("key_heads", values["heads"])
        values.setdefault("inner", 128 * round(values["width"] * 8 / 3 / 128) or 128)
    known = load_workload(name).defaults
    return name, tuple(sorted((n, int(v)) for n, v in values.items() if n in known))


def _guess(values: Shape, tensor: int, n_pieces: int) -> dict[str, float]:
    """Return layers and width with as many parameters, in the usual proportion."""
    size = values.get("size", values.get("gflop_per_token", 0.0) * 1e9 / _FLOP_PER_PARAMETER)
    layers = values.get("layers") or max(
        float(round((size / 12 / _WIDTH_BY_LAYER**2) ** (1 / 3))), 1.0, n_pieces
    )
    unit = math.lcm(_HEAD, tensor)
    width = values.get("width") or max(unit * round((size / 12 / layers) ** 0.5 / unit), unit)
    if "layers" not in values and "width" in values:
        layers = max(round(size / 12 / width**2), 1, n_pieces)
    return {"layers": layers, "width": width}


def _heads(width: int, tensor: int) -> int:
    """Return heads of the usual width that divide the model's and are divided by `tensor`."""
    divisors = np.array([n for n in range(1, width + 1) if width % n == 0])
    even = divisors[divisors % tensor == 0]
    allowed = even if len(even) else divisors
    return int(allowed[np.abs(np.log(allowed * _HEAD / width)).argmin()])
