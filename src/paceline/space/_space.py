"""Parameters with the values they may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.files import check_schema, parse_toml, read_text
from paceline.space._designs import Trial, count_combinations, sample
from paceline.space._parameter import Parameter
from paceline.space._toml import SCHEMA, format_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The parameters of a study and the values they may take.

    Parameters
    ----------
    name
        What the space is called.
    parameters
        At least one `Parameter`; names must differ.
    source
        Where the space comes from, for people.

    Examples
    --------
    >>> devices = Parameter(name="n_devices", role="extrinsic", kind="numeric", values=(1, 2))
    >>> space = Space(name="small", parameters=(devices,))
    >>> space.sample(None, design="grid")
    [{'n_devices': 1}, {'n_devices': 2}]
    """

    name: str
    parameters: tuple[Parameter, ...]
    source: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInputError(f"A space's `name` must be a text, but got {self.name!r}.")
        if not isinstance(self.source, str):
            raise InvalidInputError(f"`source` must be a text, but got {self.source!r}.")
        object.__setattr__(self, "parameters", tuple(self.parameters))
        if not self.parameters:
            raise InvalidInputError(f"The space {self.name!r} must have at least one parameter.")
        repeated = [name for i, name in enumerate(self.names) if name in self.names[:i]]
        if repeated:
            raise InvalidInputError(
                f"Names of parameters must differ, but got {repeated[0]!r} twice."
            )

    def __str__(self) -> str:
        return (
            f"{self.name}: {len(self.intrinsic)} intrinsic and {len(self.extrinsic)} extrinsic "
            f"parameters, {self.n_combinations} combinations"
        )

    def __getitem__(self, name: str) -> Parameter:
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise UnknownNameError("parameter", name, self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def intrinsic(self) -> tuple[str, ...]:
        """Names of the parameters that say what the job is."""
        return tuple(p.name for p in self.parameters if p.role == "intrinsic")

    @property
    def extrinsic(self) -> tuple[str, ...]:
        """Names of the parameters that say how the job is scaled."""
        return tuple(p.name for p in self.parameters if p.role == "extrinsic")

    @property
    def n_combinations(self) -> int:
        """How many different trials there are."""
        return count_combinations(self.parameters)

    def sample(
        self, n: int | None = None, *, design: str = "random", random_state: int = 0
    ) -> list[Trial]:
        """Draw trials.

        Parameters
        ----------
        n
            How many; None means all, for the design ``grid`` only.
        design
            ``random`` (independent uniform draws), ``latin`` (each value of each parameter as
            evenly often as possible) or ``grid`` (every combination when `n` allows it, else
            `n` different ones spread over the grid).
        random_state
            Same seed, same trials.

        Returns
        -------
        list of Trial
            One value per parameter each, in the order of the parameters.

        Raises
        ------
        UnknownNameError
            For an unknown design.
        InvalidInputError
            When `n` is not a positive whole number.
        """
        return sample(self.parameters, n, design, random_state)

    def to_dict(self) -> dict[str, Any]:
        """Return the space as plain data."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "source": self.source,
            "parameters": [parameter.to_dict() for parameter in self.parameters],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Space:
        """Return the space that `to_dict` described."""
        return cls._from_data(data, "space")

    def to_toml(self) -> str:
        """Return the space as TOML text; `from_toml` gives an equal space back."""
        return format_toml(self.to_dict())

    @classmethod
    def from_toml(cls, source: str | Path) -> Space:
        """Return the space in a TOML text or file.

        Parameters
        ----------
        source
            A path, or the text itself (a text has several lines).

        Raises
        ------
        SchemaError
            When it is no space, or one made by a newer Paceline.
        """
        # No space fits on one line, so a line break tells a text from a path.
        if isinstance(source, str) and "\n" in source:
            return cls._from_data(parse_toml(source, "space"), "space")
        return cls._from_data(
            parse_toml(read_text(Path(source), "A space file"), str(source)), str(source)
        )

    @classmethod
    def _from_data(cls, data: Mapping[str, Any], origin: str) -> Space:
        check_schema(data.get("schema"), SCHEMA, origin)
        known = ("schema", "name", "source", "parameters")
        for field in data:
            if field not in known:
                raise UnknownNameError(f"field of the space in {origin}", str(field), known)
        parameters = data.get("parameters", ())
        if not isinstance(parameters, list | tuple):
            raise SchemaError(origin, f"`parameters` must be a list, but got {parameters!r}.")
        return cls(
            name=data.get("name", ""),
            parameters=tuple(Parameter.from_dict(item) for item in parameters),
            source=data.get("source", ""),
        )
