"""Nouns of a publication: the figure, the column of constants and the table, as printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from paceline.errors import InvalidInputError
from paceline.estimators import GenericExpression, Term

TableKind = Literal["constants", "cells"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One printed figure; decimals keep every printed digit.

    Parameters
    ----------
    mean
        The figure, or its mean; None when it cannot be read.
    sd
        Its standard deviation, where one is printed.
    text
        What stands in the source when that is no clean number.
    is_unreadable
        Whether the source cannot be read; there is no number then.

    Examples
    --------
    >>> print(Figure.from_toml([Decimal("-4.10"), Decimal("0.70")]))
    -4.10 ± 0.70
    """

    mean: Decimal | None
    sd: Decimal | None = None
    text: str = ""
    is_unreadable: bool = False

    def __post_init__(self) -> None:
        if self.is_unreadable != (self.mean is None):
            raise InvalidInputError(
                f"A figure must have a number unless it is unreadable, but got {self.mean!r}."
            )

    def __str__(self) -> str:
        if self.mean is None:
            return self.text
        return str(self.mean) if self.sd is None else f"{self.mean} ± {self.sd}"

    @property
    def number(self) -> Decimal:
        """The mean; an unreadable figure has none and is refused."""
        if self.mean is None:
            raise InvalidInputError(f"A figure must be readable, but got {self.text!r}.")
        return self.mean

    @property
    def last_digit(self) -> float:
        """What one more in the last printed digit is worth."""
        return float(Decimal((0, (1,), int(self.number.as_tuple().exponent))))

    @classmethod
    def from_toml(cls, cell: Any) -> Figure:
        """Return the figure in a cell: a number, ``[mean, sd]``, or a table of fields."""
        if isinstance(cell, list):
            mean, sd = cell
            return cls(mean=Decimal(mean), sd=Decimal(sd))
        if isinstance(cell, Mapping):
            mean = cell.get("mean")
            return cls(
                mean=None if mean is None else Decimal(mean),
                text=str(cell["text"]),
                is_unreadable=bool(cell.get("unreadable", False)),
            )
        return cls(mean=Decimal(cell))


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The constants of one framework.

    Parameters
    ----------
    terms
        Coefficient a and power p of every numeric intrinsic parameter.
    levels
        Coefficient of every level of every categorical parameter.
    powers
        Power q of every extrinsic parameter.
    constant
        The floor C.
    """

    terms: Mapping[str, tuple[Figure, Figure]]
    levels: Mapping[str, Mapping[str, Figure]]
    powers: Mapping[str, Figure]
    constant: Figure

    @classmethod
    def from_toml(cls, data: Mapping[str, Any]) -> Column:
        """Return the column in a table of a TOML file."""
        figure = Figure.from_toml
        return cls(
            terms={n: (figure(t["a"]), figure(t["p"])) for n, t in data["terms"].items()},
            levels={
                name: {level: figure(cell) for level, cell in group.items()}
                for name, group in data["levels"].items()
            },
            powers={name: figure(cell) for name, cell in data["powers"].items()},
            constant=figure(data["constant"]),
        )

    @property
    def coefficients(self) -> dict[str, Figure]:
        """Every coefficient by name, those of levels included."""
        named = {f"a[{name}]": a for name, (a, _) in self.terms.items()}
        for name, group in self.levels.items():
            named |= {f"level[{name}={level}]": cell for level, cell in group.items()}
        return named

    @property
    def all_powers(self) -> dict[str, Figure]:
        """Every power by name, intrinsic ones first."""
        named = {f"p[{name}]": p for name, (_, p) in self.terms.items()}
        return named | {f"q[{name}]": q for name, q in self.powers.items()}

    @property
    def figures(self) -> dict[str, Figure]:
        """Every constant by name."""
        return {**self.coefficients, **self.all_powers, "C": self.constant}

    def to_expression(self) -> GenericExpression:
        """Return the means as an expression, in the thesis' redundant form."""
        return GenericExpression(
            terms=tuple(
                Term(name=name, coefficient_s=float(a.number), power=float(p.number))
                for name, (a, p) in self.terms.items()
            ),
            levels={
                name: {level: float(cell.number) for level, cell in group.items()}
                for name, group in self.levels.items()
            },
            powers={name: float(q.number) for name, q in self.powers.items()},
            constant_s=float(self.constant.number),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A printed table.

    Parameters
    ----------
    name
        ``4.2`` for one of the thesis, else with its document: ``SSCI I``, ``journal 5``.
    kind
        ``constants`` (one `Column` per framework) or ``cells``.
    document
        Where it is printed.
    describes
        What it holds, in our words.
    space
        The published space of its study; empty for cells.
    columns
        Constants by framework.
    cells
        Figures by row and framework.
    """

    name: str
    kind: TableKind
    document: str
    describes: str
    space: str = ""
    columns: Mapping[str, Column]
    cells: Mapping[str, Mapping[str, Figure]]

    def __str__(self) -> str:
        return f"table {self.name}: {self.describes}"

    @classmethod
    def from_toml(cls, data: Mapping[str, Any], document: str) -> Table:
        """Return the table in an entry of a TOML file."""
        columns, cells = data.get("columns", {}), data.get("cells", {})
        return cls(
            name=data["id"],
            kind=data["kind"],
            document=document,
            describes=data["describes"],
            space=data.get("space", ""),
            columns={name: Column.from_toml(column) for name, column in columns.items()},
            cells={
                row: {name: Figure.from_toml(cell) for name, cell in figures.items()}
                for row, figures in cells.items()
            },
        )
