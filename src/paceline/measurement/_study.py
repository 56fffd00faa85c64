"""What a campaign measures: workloads, executors, space, design, protocol and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.measurement._rules import Limits, Protocol, check_whole
from paceline.space import Parameter, Role, Space

SCHEMA = "paceline/study/1"
DESIGNS = ("random", "latin", "grid", "adaptive")

DEVICES = "n_devices"
BATCHES = ("device_batch", "global_batch")

# what people write, and what is kept instead
_SINGULAR = {"workload": "workloads", "executor": "executors", "parameter": "space"}


@dataclass(frozen=True, kw_only=True)
class Study:
    """What is to be measured, and how.

    Parameters
    ----------
    name
        What the study is called.
    workloads, executors
        Names; every workload is run by every executor with the same trials.
    space
        The parameters that vary. `n_devices` counts the workers (1 when absent);
        `device_batch` or `global_batch` must be among the parameters or in `fixed`.
    n_trials
        Trials that can be built, per workload and executor; None means the whole grid.
    design
        ``random``, ``latin``, ``grid`` or ``adaptive``.
    random_state
        Seed of the trials and of their order.
    fixed
        Values of further parameters of the workload that do not vary.
    data
        Where the samples come from, as in `Job`; empty leaves it to the workload.
    n_samples
        Samples of an epoch; 0 leaves it to the workload.
    module
        The user's own network instead of a workload: `file`, `name`, `input_shape`,
        `n_classes`, `vocabulary` and `loss` (docs/workloads.md).
    options
        Per executor, what it is told beyond its name (such as a command line).
    protocol, limits
        How a trial is measured and what it may cost.
    small
        What `reduced` changes.
    source
        Where the study comes from, for people.

    Raises
    ------
    InvalidInputError
        When one of these rules is broken; names the field.
    """

    name: str
    workloads: tuple[str, ...]
    executors: tuple[str, ...]
    space: Space
    n_trials: int | None = None
    design: str = "random"
    random_state: int = 0
    fixed: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    n_samples: int = 0
    module: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)
    limits: Limits = field(default_factory=Limits)
    small: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("name", "source"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInputError(
                    f"`{name}` must be a text, but got {getattr(self, name)!r}."
                )
        for name in ("fixed", "data", "module", "options", "small"):
            if not isinstance(getattr(self, name), Mapping):
                raise InvalidInputError(
                    f"`{name}` must be a table, but got {getattr(self, name)!r}."
                )
        for name in ("workloads", "executors"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        if not self.name:
            raise InvalidInputError("`name` of a study must not be empty.")
        self._check_design()
        self._check_space()

    def __str__(self) -> str:
        n = "all" if self.n_trials is None else self.n_trials
        return (
            f"{self.name}: {', '.join(self.workloads)} by {', '.join(self.executors)}, "
            f"{n} trials of {self.space.name}, {self.design}"
        )

    @property
    def batch(self) -> str:
        """Which batch the study holds: ``device_batch`` or ``global_batch``."""
        known = {*self.space.names, *self.fixed}
        return next(name for name in BATCHES if name in known)

    @property
    def sampled_space(self) -> Space:
        """The space with the fixed values as parameters of one value."""
        constants = tuple(_constant(name, value) for name, value in self.fixed.items())
        return replace(self.space, parameters=self.space.parameters + constants)

    @property
    def full_space(self) -> Space:
        """The space with `workload` and `executor` as parameters where there are several."""
        extra = (("workload", self.workloads), ("executor", self.executors))
        several = tuple(
            Parameter(name=name, role="intrinsic", kind="categorical", values=values)
            for name, values in extra
            if len(values) > 1
        )
        space = self.sampled_space
        return replace(space, parameters=several + space.parameters)

    def reduced(self) -> Study:
        """Return the small variant of the study that its table ``reduced`` describes.

        Raises
        ------
        InvalidInputError
            When the study has no such table.
        """
        if not self.small:
            raise InvalidInputError(
                f"A study must have a table `reduced` to be reduced, but {self.name!r} has none."
            )
        data = self.to_dict()
        data.pop("reduced")
        data["name"] = f"{self.name}-reduced"
        for one, many in _SINGULAR.items():
            if one in self.small:
                data.pop(many)
        return Study.from_dict(_merge(data, self.small), self.name)

    def with_module(self, module: str) -> Study:
        """Return the study of the user's own network, given as ``FILE:NAME``."""
        from paceline.measurement._own_module import parse_module, read_module

        given = {**self.module, **parse_module(module)}
        found = read_module(given, self.workloads if not self.module else ())
        return replace(self, module=found, workloads=(found["name"],))

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data."""
        data: dict[str, Any] = {"schema": SCHEMA}
        data |= {f.name: getattr(self, f.name) for f in fields(self)}
        data["reduced"] = dict(data.pop("small"))
        if not self.module:
            del data["module"]  # campaigns from before it existed go on
        for name in ("space", "protocol", "limits"):
            data[name] = data[name].to_dict()
        for name in ("workloads", "executors"):
            data[name] = list(data[name])
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], origin: str = "study") -> Study:
        """Return the study that plain data describe; `origin` names the file in errors.

        Raises
        ------
        SchemaError
            When the data are no study; names the field.
        """
        from paceline.measurement._study_file import study_fields

        try:
            return cls(**study_fields(data, origin))
        except SchemaError:
            raise
        except InvalidInputError as error:
            raise SchemaError(origin, str(error)) from error

    def _check_design(self) -> None:
        if self.design not in DESIGNS:
            raise UnknownNameError("design", str(self.design), DESIGNS)
        if self.n_trials is not None:
            check_whole("n_trials", self.n_trials, 1)
        elif self.design != "grid":
            raise InvalidInputError(
                "`n_trials` must be given for every design but the grid, but it is missing."
            )
        check_whole("random_state", self.random_state, 0)
        check_whole("n_samples", self.n_samples, 0)

    def _check_space(self) -> None:
        names = self.space.names
        for name in ("workload", "executor"):
            if name in names:
                raise InvalidInputError(
                    f"`{name}` must be a list of its own and no parameter of the space."
                )
        both = [name for name in names if name in self.fixed]
        if both:
            raise InvalidInputError(f"`fixed.{both[0]}` must not be a parameter of the space too.")
        batches = [name for name in BATCHES if name in {*names, *self.fixed}]
        if len(batches) != 1:
            raise InvalidInputError(
                "A study must have either `device_batch` or `global_batch`, "
                f"but got {' and '.join(batches) or 'neither'}."
            )
        self._check_batches()

    def _check_batches(self) -> None:
        space = self.sampled_space
        for name in (DEVICES, *BATCHES):
            for value in space[name].values if name in space.names else ():
                check_whole(name, value, 1)
        devices = space[DEVICES].values if DEVICES in space.names else (1,)
        if self.batch == "global_batch" and min(space["global_batch"].values) < max(devices):  # type: ignore[operator]
            raise InvalidInputError(
                f"`global_batch >= n_devices` must hold for all trials, but got "
                f"{min(space['global_batch'].values)} for {max(devices)} devices."
            )


def _names(field_name: str, value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names:
        raise InvalidInputError(
            f"`{field_name}` must be a name or a list of names, but got {value!r}."
        )
    for name in names:
        if not isinstance(name, str) or not name or list(names).count(name) > 1:
            raise InvalidInputError(
                f"`{field_name}` must be different names, but got {list(names)!r}."
            )
    return tuple(names)


def _constant(name: str, value: object) -> Parameter:
    if isinstance(value, str):
        return Parameter(name=name, role="intrinsic", kind="categorical", values=(value,))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"`fixed.{name}` must be a number or a text, but got {value!r}.")
    role: Role = "extrinsic" if name in (DEVICES, *BATCHES) else "intrinsic"
    return Parameter(name=name, role=role, kind="numeric", values=(value,))


def _merge(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(data)
    for key, value in changes.items():
        below = merged.get(key)
        both_tables = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(below, value) if both_tables else value  # type: ignore[arg-type]
    return merged
