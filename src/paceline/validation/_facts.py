"""What has been published about expression and phases, and where it contradicts itself."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.resources import files
from typing import Any, Literal

from paceline.errors import SchemaError, UnknownNameError
from paceline.estimators import GenericExpression
from paceline.validation._printed import Column, Table

SCHEMA = "paceline/validation/1"
SOURCES = (
    "thesis_chapter4",
    "thesis_chapter5",
    "ssci2022",
    "journal",
    "thesis_chapter3",
    "iucc2021",
)

Bounds = Mapping[str, tuple[Decimal, Decimal]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Printed figures that disagree with each other or with the text.

    Parameters
    ----------
    name
        What we call it.
    where, what
        Where it stands, and what disagrees.
    status
        What we do about it.
    recorded
        The disagreement in figures, one sentence each.
    stated
        What the text says instead, by framework.
    """

    name: str
    where: str
    what: str
    status: str
    recorded: tuple[str, ...]
    stated: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedTime:
    """A time that follows from printed constants, recorded so that a wrong digit shows."""

    name: str
    table: str
    framework: str
    extreme: Literal["shortest", "longest"]
    time_s: float
    tolerance_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the files of published figures hold.

    Parameters
    ----------
    tables
        Tables by name; one that repeats another holds the same figures.
    repeats
        Names of tables that repeat another, with the name of that one.
    bounds
        The thesis' limits of coefficients, powers and the constant C.
    contradictions, derived
        What is kept although it disagrees, and what follows from the figures.
    """

    tables: Mapping[str, Table]
    repeats: Mapping[str, str]
    bounds: Bounds
    contradictions: tuple[Contradiction, ...]
    derived: tuple[DerivedTime, ...]

    def table(self, name: str) -> Table:
        """Return a table by its name."""
        if name not in self.tables:
            raise UnknownNameError("published table", name, self.tables)
        return self.tables[name]

    def column(self, table: str, framework: str) -> Column:
        """Return the constants of one framework in one table."""
        known = {name: t for name, t in self.tables.items() if t.kind == "constants"}
        if table not in known:
            raise UnknownNameError("published table of constants", table, known)
        columns = known[table].columns
        if framework not in columns:
            raise UnknownNameError(f"framework in table {table}", framework, columns)
        return columns[framework]

    def columns(self) -> list[tuple[str, str, Column]]:
        """Return every column of constants once, with its table and framework."""
        own = [table for name, table in self.tables.items() if name not in self.repeats]
        return [(t.name, name, column) for t in own for name, column in t.columns.items()]


def load_facts() -> Facts:
    """Return the published figures that ship with the package."""
    return build_facts([read_source(name) for name in SOURCES])


def list_tables() -> list[str]:
    """Return the names of the published tables.

    Examples
    --------
    >>> list_tables()[:3]
    ['4.2', '4.3', '4.4']
    """
    return list(load_facts().tables)


def published_expression(framework: str, table: str = "4.3") -> GenericExpression:
    """Return the generic expression with printed constants, in the thesis' redundant form.

    Parameters
    ----------
    framework
        ``tensorflow``, ``mxnet`` or ``pytorch``; only ``pytorch`` in table 5.2.
    table
        ``4.2`` (no penalty), ``4.3`` (L2), ``5.2`` (3D-ResAttNet), or a table of the journal
        version that repeats one of these.

    Raises
    ------
    UnknownNameError
        When there is no such column of constants.

    Examples
    --------
    >>> published_expression("tensorflow").powers["n_devices"]
    -0.74
    """
    return load_facts().column(table, framework).to_expression()


def read_source(name: str) -> dict[str, Any]:
    """Return the plain data of one shipped file, numbers as decimals."""
    path = files("paceline.validation") / "published" / f"{name}.toml"
    return parse_source(path.read_text(encoding="utf-8"), path.name)


def parse_source(text: str, origin: str) -> dict[str, Any]:
    """Return the plain data of a file of published figures; `origin` names it in errors."""
    data = tomllib.loads(text, parse_float=Decimal)  # keeps the printed digits
    if data.get("schema") != SCHEMA:
        raise SchemaError(origin, f'`schema` must be "{SCHEMA}", but got {data.get("schema")!r}.')
    return data


def build_facts(sources: list[dict[str, Any]]) -> Facts:
    """Return the facts in the plain data of several files."""
    tables, repeats = _tables(sources)
    return Facts(
        tables=tables,
        repeats=repeats,
        bounds=_bounds(sources),
        contradictions=tuple(_contradiction(c) for c in _entries(sources, "contradiction")),
        derived=tuple(_derived(d) for d in _entries(sources, "derived")),
    )


def _tables(sources: list[dict[str, Any]]) -> tuple[dict[str, Table], dict[str, str]]:
    tables: dict[str, Table] = {}
    repeats: dict[str, str] = {}
    for document, entry in ((s["source"]["document"], e) for s in sources for e in s["table"]):
        name = entry["id"]
        if "same_as" in entry:
            repeats[name] = entry["same_as"]
            tables[name] = replace(tables[repeats[name]], name=name, document=document)
        else:
            tables[name] = Table.from_toml(entry, document)
    return tables, repeats


def _entries(sources: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [entry for source in sources for entry in source.get(key, [])]


def _bounds(sources: list[dict[str, Any]]) -> Bounds:
    pairs = [pair for source in sources for pair in source.get("bounds", {}).items()]
    return {name: (Decimal(low), Decimal(high)) for name, (low, high) in pairs}


def _contradiction(entry: Mapping[str, Any]) -> Contradiction:
    return Contradiction(
        name=entry["id"],
        where=entry["where"],
        what=entry["what"],
        status=entry["status"],
        recorded=tuple(entry["recorded"]),
        stated={name: str(value) for name, value in entry.get("stated", {}).items()},
    )


def _derived(entry: Mapping[str, Any]) -> DerivedTime:
    return DerivedTime(
        name=entry["id"],
        table=entry["table"],
        framework=entry["framework"],
        extreme=entry["extreme"],
        time_s=float(entry["time_s"]),
        tolerance_s=float(entry["tolerance_s"]),
    )
