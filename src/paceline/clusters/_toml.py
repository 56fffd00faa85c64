"""A cluster as a TOML file that people can read and write."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from paceline.clusters._cluster import (
    PRECISIONS,
    Cluster,
    Device,
    DeviceGroup,
    Kernel,
    Level,
    Link,
)
from paceline.errors import SchemaError, UnknownNameError
from paceline.files import check_schema, parse_toml

SCHEMA = "paceline/cluster/1"

_TOP = ("schema", *(f.name for f in fields(Cluster)))
# one figure for every number of workers
_BY_COUNT: dict[str, tuple[str, Callable[[float], bool]]] = {
    "slowdowns": ("numbers of at least 1", lambda x: 1 <= x < float("inf")),
    "exchange_slowdowns": ("positive numbers", lambda x: 0 < x < float("inf")),
    "exchange_floors_s": ("numbers of seconds", lambda x: 0 <= x < float("inf")),
}
# figures that may be 0
_MAY_BE_ZERO = (
    *(
        "latency_s",
        "floor_s",
        "message_latency_s",
        "launch_s",
        "half_flop",
        "n_devices",
        "n_cores",
        "size",
    ),
    *("s_per_flop", "s_per_input_byte", "s_per_output_byte", "s_per_weight_byte"),
    "s_per_sample_weight_byte",
)
_WHOLE = ("n_devices", "n_cores", "size", "count")
_AT_LEAST_ONE = ("contention", "oversubscription")
_SHARES = ("memory_efficiency",)


def parse_cluster(text: str, origin: str) -> Cluster:
    """Return the cluster that a TOML text describes; `origin` names the file in errors.

    Raises
    ------
    SchemaError
        When a field is missing or wrong; names the file and the field.
    UnknownNameError
        When a field is not known; suggests the nearest.
    """
    return cluster_from_dict(parse_toml(text, origin), origin)


def cluster_from_dict(data: Mapping[str, Any], origin: str = "cluster") -> Cluster:
    """Return the cluster that plain data describe."""
    check_schema(data.get("schema"), SCHEMA, origin)
    reader = _Reader(origin)
    reader.check_keys(data, _TOP, "")
    found = {f.name: data[f.name] for f in fields(Cluster) if f.name in data}
    reader.require(data, ("name", "device", "levels"), "")
    for name in ("name", "currency"):
        reader.check_text(found, name, "")
    for name in ("n_devices", "n_cores", "price_per_device_hour"):
        reader.check_figure(found, name, "")
    if not isinstance(found.get("unverified", False), bool):
        reader.refuse("unverified", "must be true or false", found["unverified"])
    for name, (rule, holds) in _BY_COUNT.items():
        found[name] = _by_count(reader, found.get(name, ()), name, rule, holds)
    found["device"] = _device(reader, found["device"])
    found["levels"] = _levels(reader, found["levels"])
    found["sources"] = _sources(reader, found.get("sources", {}))
    found["devices"] = _groups(reader, found.get("devices", ()))
    found["n_devices"] = _count(reader, found.get("n_devices", 0), found["devices"])
    _check_room(reader, found["n_devices"], found["levels"])
    return Cluster(**found)


def _by_count(
    reader: _Reader, data: Any, field: str, rule: str, holds: Callable[[float], bool]
) -> tuple[float, ...]:
    if not isinstance(data, list | tuple) or not all(_is_number(x) and holds(x) for x in data):
        reader.refuse(field, f"must be a list of {rule}", data)
    return tuple(float(x) for x in data)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _device(reader: _Reader, data: Any) -> Device:
    reader.check_table(data, "device")
    names = tuple(f.name for f in fields(Device))
    reader.check_keys(data, names, "device.")
    reader.require(data, ("name", "peak_flops", "memory_bytes", "memory_bandwidth"), "device.")
    reader.check_text(data, "name", "device.")
    for name in names:
        if name in ("peak_flops", "efficiency"):
            _check_rates(reader, data, name)
        elif name not in ("name", "kernels"):
            reader.check_figure(data, name, "device.")
    return Device(**{**data, "kernels": _kernels(reader, data.get("kernels", {}))})


def _kernels(reader: _Reader, data: Any) -> dict[str, Kernel]:
    reader.check_table(data, "device.kernels")
    names = tuple(f.name for f in fields(Kernel))
    for kind, table in data.items():
        prefix = f"device.kernels.{kind}."
        reader.check_table(table, prefix[:-1])
        reader.check_keys(table, names, prefix)
        for name in names:
            reader.check_figure(table, name, prefix)
    return {kind: Kernel(**table) for kind, table in data.items()}


def _check_rates(reader: _Reader, data: Mapping[str, Any], name: str) -> None:
    if name not in data:
        return
    table, prefix = data[name], f"device.{name}."
    reader.check_table(table, f"device.{name}")
    if name == "peak_flops":
        reader.check_keys(table, PRECISIONS, prefix)
    if not table:
        reader.refuse(prefix[:-1], "must not be empty", table)
    for key in table:
        reader.check_figure(table, key, prefix)
        if name == "efficiency" and table[key] > 1:
            reader.refuse(prefix + key, "must be a share of at most 1", table[key])


def _levels(reader: _Reader, data: Any) -> tuple[Level, ...]:
    if not isinstance(data, list | tuple) or not data:
        reader.refuse("levels", "must be a list of tables, as in [[levels]]", data)
    levels = tuple(_level(reader, item, f"levels.{i}.") for i, item in enumerate(data))
    for i, level in enumerate(levels[:-1]):
        if not level.size:
            reader.refuse(f"levels.{i}.size", "may be 0 only in the outermost level", 0)
    return levels


def _level(reader: _Reader, data: Any, prefix: str) -> Level:
    reader.check_table(data, prefix[:-1])
    reader.check_keys(data, tuple(f.name for f in fields(Level)), prefix)
    reader.require(data, ("name", "size", "link"), prefix)
    reader.check_text(data, "name", prefix)
    for name in ("size", "oversubscription"):
        reader.check_figure(data, name, prefix)
    return Level(**{**data, "link": _link(reader, data["link"], f"{prefix}link.")})


def _link(reader: _Reader, data: Any, prefix: str) -> Link:
    reader.check_table(data, prefix[:-1])
    names = tuple(f.name for f in fields(Link))
    reader.check_keys(data, names, prefix)
    reader.require(data, ("name", "latency_s", "bandwidth"), prefix)
    reader.check_text(data, "name", prefix)
    for name in names[1:]:
        reader.check_figure(data, name, prefix)
    return Link(**data)


def _groups(reader: _Reader, data: Any) -> tuple[DeviceGroup, ...]:
    if not isinstance(data, list | tuple):
        reader.refuse("devices", "must be a list of tables, as in [[devices]]", data)
    names = tuple(f.name for f in fields(DeviceGroup))
    for i, group in enumerate(data):
        prefix = f"devices.{i}."
        reader.check_table(group, prefix[:-1])
        reader.check_keys(group, names, prefix)
        reader.require(group, ("count",), prefix)
        for name in names:
            reader.check_figure(group, name, prefix)
    return tuple(DeviceGroup(**{**group, "count": int(group["count"])}) for group in data)


def _count(reader: _Reader, n_devices: int, groups: tuple[DeviceGroup, ...]) -> int:
    """Return how many devices there are; groups say so too, and must agree."""
    total = sum(group.count for group in groups)
    if groups and n_devices not in (0, total):
        reader.refuse("n_devices", f"must be the {total} of `devices`, or be left out", n_devices)
    return total or n_devices


def _check_room(reader: _Reader, n_devices: int, levels: tuple[Level, ...]) -> None:
    """Refuse more devices than the levels join; without a size the outermost joins any number."""
    sizes = [int(level.size) for level in levels]
    room = math.prod(sizes)
    if room and n_devices > room:
        product = " * ".join(map(str, sizes)) + (f" = {room}" if len(sizes) > 1 else "")
        rule = f"must be at most {product}, which `levels` have room for"
        reader.refuse("n_devices", rule, n_devices)


def _sources(reader: _Reader, data: Any) -> dict[str, str]:
    reader.check_table(data, "sources")
    for name in data:
        reader.check_text(data, name, "sources.")
    return dict(data)


class _Reader:
    """Says which field of which file is wrong.

    Parameters
    ----------
    origin
        Name of the file.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin

    def refuse(self, field: str, rule: str, got: object) -> None:
        """Raise: this field must hold a rule and does not."""
        raise SchemaError(self.origin, f"`{field}` {rule}, but got {got!r}.")

    def check_keys(self, data: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
        """Refuse a field that is not known."""
        for name in data:
            if name not in known:
                kind = f"field of `{prefix[:-1]}`" if prefix else "field of a cluster"
                raise UnknownNameError(f"{kind} in {self.origin}", str(name), known)

    def require(self, data: Mapping[str, Any], names: tuple[str, ...], prefix: str) -> None:
        """Refuse a table that lacks a field."""
        for name in names:
            if name not in data:
                raise SchemaError(self.origin, f"`{prefix}{name}` must be given, but is missing.")

    def check_table(self, data: Any, field: str) -> None:
        """Refuse what is not a table."""
        if not isinstance(data, Mapping):
            self.refuse(field, "must be a table", data)

    def check_text(self, data: Mapping[str, Any], name: str, prefix: str) -> None:
        """Refuse what is not a text with letters."""
        value = data.get(name, "-")
        if not isinstance(value, str) or not value.strip():
            self.refuse(prefix + name, "must be a text", value)

    def check_figure(self, data: Mapping[str, Any], name: str, prefix: str) -> None:
        """Refuse what is not a number of the right size."""
        if name not in data:
            return
        value, field = data[name], prefix + name
        if not _is_number(value):
            self.refuse(field, "must be a number", value)
        if name in _WHOLE and value != int(value):
            self.refuse(field, "must be a whole number", value)
        if not math.isfinite(value) or value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
            rule = "must not be negative" if name in _MAY_BE_ZERO else "must be positive"
            self.refuse(field, rule, value)
        if name in _AT_LEAST_ONE and value < 1:
            self.refuse(field, "must be at least 1", value)
        if name in _SHARES and value > 1:
            self.refuse(field, "must be a share of at most 1", value)


def format_cluster(cluster: Cluster) -> str:
    """Return a cluster as TOML text that `parse_cluster` reads."""
    lines = [f'schema = "{SCHEMA}"', *_fields(cluster, ("device", "levels", "sources", "devices"))]
    lines += ["", "[device]", *_fields(cluster.device, ("peak_flops", "efficiency", "kernels"))]
    for name in ("peak_flops", "efficiency"):
        lines += ["", f"[device.{name}]", *_table(getattr(cluster.device, name))]
    for kind, kernel in cluster.device.kernels.items():
        lines += ["", f"[device.kernels.{_key(kind)}]", *_fields(kernel, ())]
    for level in cluster.levels:
        lines += ["", "[[levels]]", *_fields(level, ("link",))]
        lines += ["[levels.link]", *_fields(level.link, ())]
    for group in cluster.devices:
        lines += ["", "[[devices]]", *_fields(group, ())]
    if cluster.sources:
        lines += ["", "[sources]", *_table(cluster.sources)]
    return "\n".join(lines) + "\n"


def cluster_to_dict(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as plain data that `cluster_from_dict` reads."""
    return tomllib.loads(format_cluster(cluster))


def _fields(noun: Any, left_out: tuple[str, ...]) -> list[str]:
    named = {f.name: getattr(noun, f.name) for f in fields(noun) if f.name not in left_out}
    return _table({name: value for name, value in named.items() if value is not None})


def _table(data: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_literal(value)}" for key, value in data.items()]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _literal(key)


def _literal(value: object) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's; only DEL may stand bare in JSON and not in TOML.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value) if isinstance(value, int) else repr(float(value))  # type: ignore[arg-type]
