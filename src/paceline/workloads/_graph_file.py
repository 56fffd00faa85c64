"""A layer graph as a TOML file that people can read and write.

What follows from other fields may be left out: a block of its own, bytes of four-byte numbers, a
backward pass of twice the forward one.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError, SchemaError
from paceline.files import check_schema, parse_toml, read_text
from paceline.workloads._graph import SPLITS, GraphLayer, LayerGraph
from paceline.workloads._module import LOSSES
from paceline.workloads._network import BYTES_PER_NUMBER

SCHEMA = "paceline/graph/1"
_TOP = ("schema", "name", "loss", "values", "layer")
_TEXTS = ("name", "kind", "block", "tied")
_SHAPES = ("input_shape", "output_shape", "weight_shape", "window")
_FIELDS = tuple(field.name for field in fields(GraphLayer))
_NEEDED = ("name", "kind", "input_shape", "output_shape")
_WORKING = ("conv", "conv_transpose", "linear", "attention", "experts", "recurrent")
_KINDS = (
    *_WORKING,
    *("activation", "batch_norm", "concat", "dropout", "embedding", "flatten", "global_pool"),
    *("group_norm", "layer_norm", "loss", "pool", "product", "residual", "rms_norm"),
)
_AT_LEAST_ONE = ("stride", "n_heads", "n_experts")
_DEFAULTS = {f.name: f.default for f in fields(GraphLayer) if f.default is not MISSING}


def save_graph(graph: LayerGraph, path: str | Path) -> None:
    """Write a graph as TOML.

    Raises
    ------
    InvalidInputError
        When the file cannot be written.
    """
    lines = [f"schema = {_literal(SCHEMA)}", f"name = {_literal(graph.name)}"]
    lines += [f"loss = {_literal(graph.loss)}"]
    if graph.values:
        lines += ["", "[values]", *(f"{_key(k)} = {_literal(v)}" for k, v in graph.values)]
    for layer in graph.layers:
        lines += ["", "[[layer]]"]
        given = {name: getattr(layer, name) for name in _FIELDS}
        implied = _DEFAULTS | _implied(given)
        needed = (*_NEEDED, "forward_flop") if layer.kind in _WORKING else _NEEDED
        lines += [
            f"{name} = {_literal(value)}"
            for name, value in given.items()
            if name in needed or value != implied[name]
        ]
    try:
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"The graph must go to a file that can be written, but {str(path)!r} cannot: "
            f"{error.strerror}."
        ) from error


def load_graph(path: str | Path) -> LayerGraph:
    """Return the graph that a TOML file describes.

    Raises
    ------
    SchemaError
        When a field is missing, unknown or wrong; names the file, the layer and the field.
    """
    data = parse_toml(read_text(Path(path), "A graph file"), str(path))
    _check_keys(data, _TOP, str(path), "the file")
    check_schema(data.get("schema"), SCHEMA, path)
    if data.get("loss", LOSSES[0]) not in LOSSES:
        raise SchemaError(
            path, f"`loss` must be one of {', '.join(LOSSES)}, but got {data['loss']!r}."
        )
    rows = data.get("layer")
    if not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        raise SchemaError(path, f"`layer` must be one or more tables [[layer]], but got {rows!r}.")
    layers = tuple(_layer(row, str(path), i) for i, row in enumerate(rows, start=1))
    _check_order(layers, str(path))
    values = data.get("values", {})
    if not isinstance(values, dict):
        raise SchemaError(path, f"`values` must be a table, but got {values!r}.")
    name = data.get("name", Path(path).stem)
    if not isinstance(name, str):
        raise SchemaError(path, f"`name` must be a text, but got {name!r}.")
    loss = data.get("loss", LOSSES[0])
    return LayerGraph(name=name, layers=layers, values=tuple(values.items()), loss=loss)


def _layer(row: Mapping[str, Any], path: str, number: int) -> GraphLayer:
    where = f"layer {row.get('name', number)!r}"
    _check_keys(row, _FIELDS, path, where)
    for name in _NEEDED:
        if name not in row:
            raise SchemaError(path, f"{where}: `{name}` must be given, but is missing.")
    for name, value in row.items():
        rule = _broken_rule(name, value)
        if rule:
            raise SchemaError(path, f"{where}: `{name}` must be {rule}, but got {value!r}.")
    _check_work(row, path, where)
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return GraphLayer(**(_implied(given) | given))


def _check_work(row: Mapping[str, Any], path: str, where: str) -> None:
    """Refuse a kind that is another misspelt, and layers that do not say what they work."""
    kind = row["kind"]
    near = difflib.get_close_matches(kind, _KINDS, 1)
    if kind not in _KINDS and near:
        raise SchemaError(path, f"{where}: no `kind` is called {kind!r}. Did you mean {near[0]}?")
    if kind in _WORKING and "forward_flop" not in row:
        rule = f"`forward_flop` must be given of a layer of kind {kind}, but is missing."
        raise SchemaError(path, f"{where}: {rule}")


def _implied(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what follows from a layer's other fields."""
    size = BYTES_PER_NUMBER
    return {
        "block": given["name"],
        "backward_flop": 2 * given.get("forward_flop", 0),
        "input_bytes": size * math.prod(given["input_shape"]),
        "output_bytes": size * math.prod(given["output_shape"]),
        "weight_bytes": size * given.get("n_parameters", 0),
    }


def _broken_rule(name: str, value: Any) -> str:
    """Return what a field must be, and is not."""
    if name in _TEXTS:
        good = isinstance(value, str) and bool(value or name == "tied")
        return "" if good else "a text that is not empty"
    if name == "splits":
        known = isinstance(value, list) and all(item in SPLITS for item in value)
        return "" if known else f"a list of some of {', '.join(SPLITS)}"
    if name in _SHAPES:
        good = isinstance(value, list) and all(_is_count(size, 1) for size in value)
        return "" if good else "a list of positive whole numbers"
    least = 1 if name in _AT_LEAST_ONE else 0
    return "" if _is_count(value, least) else f"a whole number of at least {least}"


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _check_keys(row: Mapping[str, Any], known: tuple[str, ...], path: str, where: str) -> None:
    for key in row:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}."
            raise SchemaError(path, f"{where} must have known fields only, not `{key}`: {hint}")


def _check_order(layers: tuple[GraphLayer, ...], path: str) -> None:
    names: set[str] = set()
    ended: set[str] = set()
    for before, layer in zip((None, *layers), layers, strict=False):
        if layer.name in names:
            raise SchemaError(path, f"`name` of layers must differ, but {layer.name!r} repeats.")
        names.add(layer.name)
        if before is not None and before.block != layer.block:
            ended.add(before.block)
        if layer.block in ended:
            raise SchemaError(
                path,
                f"layer {layer.name!r}: layers of one `block` must follow each other, but "
                f"{layer.block!r} had ended before.",
            )


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else _literal(name)


def _literal(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's; only DEL may stand bare in JSON and not in TOML.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
