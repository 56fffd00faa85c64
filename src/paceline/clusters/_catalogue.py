"""Machines by name, and cluster files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from paceline.clusters._cluster import Cluster
from paceline.clusters._toml import format_cluster, parse_cluster
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.files import read_text


def list_clusters() -> list[str]:
    """Return the names of the machines in the catalogue.

    Examples
    --------
    >>> "abci" in list_clusters()
    True
    """
    names = [item.name for item in (files("paceline.clusters") / "catalogue").iterdir()]
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_cluster(name_or_path: str | Path) -> Cluster:
    """Return a machine of the catalogue by its name, or the one in a TOML file.

    Raises
    ------
    UnknownNameError
        When it is neither; suggests the nearest name.
    SchemaError
        When a figure is missing or wrong; names the file and the field.

    Examples
    --------
    >>> load_cluster("abci").device.name
    'Tesla V100-SXM2-16GB'
    """
    name = str(name_or_path)
    if name in list_clusters():
        shipped = files("paceline.clusters") / "catalogue" / f"{name}.toml"
        return parse_cluster(shipped.read_text(encoding="utf-8"), f"{name}.toml")
    path = Path(name_or_path)
    if path.suffix != ".toml" and not path.is_file():
        raise UnknownNameError("cluster", name, list_clusters())
    return parse_cluster(read_text(path, "A cluster file"), name)


def save_cluster(cluster: Cluster, path: str | Path) -> None:
    """Write a cluster as a TOML file that `load_cluster` reads."""
    try:
        Path(path).write_text(format_cluster(cluster), encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(
            f"A cluster file must be writable, but {str(path)!r} is not: {error.strerror}."
        ) from error
