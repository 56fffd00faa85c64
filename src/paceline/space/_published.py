"""Spaces of published studies, shipped with the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from paceline.errors import UnknownNameError
from paceline.space._space import Space


def list_spaces() -> list[str]:
    """Return the names of the published spaces.

    Examples
    --------
    >>> list_spaces()
    ['table_4_1', 'table_5_1']
    """
    folder = files("paceline.space") / "published"
    names = [item.name for item in folder.iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_space(name_or_path: str | Path) -> Space:
    """Return a published space by its name, or the one in a TOML file.

    Raises
    ------
    UnknownNameError
        When it is neither.
    SchemaError
        When the file holds no space.

    Examples
    --------
    >>> print(load_space("table_5_1"))
    table_5_1: 9 intrinsic and 2 extrinsic parameters, 10368 combinations
    """
    name = str(name_or_path)
    if name in list_spaces():
        shipped = files("paceline.space") / "published" / f"{name}.toml"
        return Space.from_toml(shipped.read_text(encoding="utf-8"))
    path = Path(name_or_path)
    if path.suffix != ".toml" and not path.exists():
        raise UnknownNameError("space", name, list_spaces())
    return Space.from_toml(path)
