"""Studies as TOML files that people write; some are shipped with the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.files import check_schema, parse_toml, read_text
from paceline.measurement._own_module import read_module
from paceline.measurement._rules import Limits, Protocol
from paceline.measurement._study import SCHEMA, Study
from paceline.space import Parameter, Space, load_space

# what a file may hold; the singular forms are what people write
_PLAIN = ("name", "source", "n_trials", "design", "random_state", "n_samples")
_KNOWN = (
    *("schema", "workload", "workloads", "executor", "executors", "space", "parameter"),
    *("restrict", "fixed", "data", "module", "options", "protocol", "limits", "reduced"),
    *_PLAIN,
)


def list_studies() -> list[str]:
    """Return the names of the shipped studies.

    Examples
    --------
    >>> list_studies()
    ['chapter3', 'chapter4', 'chapter5', 'demo']
    """
    names = [item.name for item in (files("paceline.measurement") / "studies").iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_study(name_or_path: str | Path) -> Study:
    """Return a shipped study by its name, or the one in a TOML file.

    Raises
    ------
    UnknownNameError
        When it is neither.
    SchemaError
        When the file holds no study; names the field.

    Examples
    --------
    >>> print(load_study("chapter4"))
    chapter4: lenet5 by torch, 1500 trials of table_4_1, random
    """
    name = str(name_or_path)
    if name in list_studies():
        shipped = files("paceline.measurement") / "studies" / f"{name}.toml"
        return Study.from_dict(parse_toml(shipped.read_text(encoding="utf-8"), name), name)
    path = Path(name_or_path)
    if path.suffix != ".toml" and not path.exists():
        raise UnknownNameError("study", name, list_studies())
    return Study.from_dict(parse_toml(read_text(path, "A study file"), name), name)


def study_fields(data: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Return the arguments of `Study` that plain data describe."""
    check_schema(data.get("schema"), SCHEMA, origin)
    for name in data:
        if name not in _KNOWN:
            raise UnknownNameError(f"field of the study in {origin}", str(name), _KNOWN)
    found = {name: data[name] for name in _PLAIN if name in data}
    found["module"] = _module(data, origin)
    found["workloads"] = _workloads(data, origin)
    found["executors"] = _one_of(data, "executor", "executors", origin)
    found["space"] = _restrict(_space(data, origin), data.get("restrict", {}))
    found["protocol"] = Protocol.from_dict(data.get("protocol", {}))
    found["limits"] = Limits.from_dict(data.get("limits", {}))
    found |= {name: data[name] for name in ("fixed", "data", "options") if name in data}
    found["small"] = data.get("reduced", {})
    return {"name": "", **found}


def _space(data: Mapping[str, Any], origin: str) -> Space:
    if ("space" in data) == ("parameter" in data):
        raise SchemaError(
            origin, "`space` (a name or a file) or `[[parameter]]` must be given, and not both."
        )
    if "parameter" in data:
        return _inline_space(data["parameter"], str(data.get("name") or "study"))
    given = data["space"]
    if isinstance(given, Mapping):
        return Space.from_dict(given)
    if not isinstance(given, str):
        raise SchemaError(origin, f"`space` must be a name or a file, but got {given!r}.")
    beside = Path(origin).parent / given
    return load_space(beside if given.endswith(".toml") and beside.exists() else given)


def _inline_space(parameters: object, name: str) -> Space:
    if not isinstance(parameters, list):
        raise InvalidInputError("`parameter` must be a list of tables, as in `[[parameter]]`.")
    return Space(name=name, parameters=tuple(Parameter.from_dict(item) for item in parameters))


def _restrict(space: Space, restrict: object) -> Space:
    """Return the space with only some values of some parameters."""
    if not isinstance(restrict, Mapping):
        raise InvalidInputError(f"`restrict` must be a table, but got {restrict!r}.")
    for name in restrict:
        space[name]  # an unknown name is refused with the nearest one
    return replace(
        space,
        parameters=tuple(
            replace(p, values=restrict[p.name]) if p.name in restrict else p
            for p in space.parameters
        ),
    )


def _module(data: Mapping[str, Any], origin: str) -> dict[str, Any]:
    named = data.get("workload", data.get("workloads", ()))
    return read_module(
        data.get("module", {}), (named,) if isinstance(named, str) else named, origin
    )


def _workloads(data: Mapping[str, Any], origin: str) -> Any:
    if data.get("module"):
        return (str(data["module"].get("name", "module")),)
    executors = data.get("executor", data.get("executors"))
    if executors in ("command", ["command"]) and not {"workload", "workloads"} & set(data):
        return ("script",)  # a name for what only the script knows
    return _one_of(data, "workload", "workloads", origin)


def _one_of(data: Mapping[str, Any], one: str, many: str, origin: str) -> Any:
    if (one in data) == (many in data):
        raise SchemaError(origin, f"`{one}` or `{many}` must be given, and not both.")
    return data[one] if one in data else data[many]
