"""The served folder: what is in it, and no way out of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError

_MOST_FILES = 2000
_DEEPEST = 3
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}")
_SCHEMA = re.compile(rb"paceline/([a-z-]+)/\d+")
_SUFFIXES = {".csv": "table", ".tsv": "table", ".db": "store"}
_KINDS_BY_SCHEMA = {b"model": "model", b"plan": "plan", b"cluster": "cluster"}
_HEAD_BYTES = 4096


class NoSuchFileError(InvalidInputError):
    """A file that is not in the folder, or may not be seen."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is served.

    Parameters
    ----------
    path
        Where it is.
    """

    path: Path

    def find(self, name: str) -> Path:
        """Return a file inside the folder.

        Raises
        ------
        NoSuchFileError
            When there is none, or the name leads outside, be it by a link.
        """
        try:
            root = self.path.resolve()
            path = (root / name).resolve()
            is_inside = path.is_relative_to(root) and path.is_file()
        except (OSError, ValueError):  # names that no file can have
            is_inside = False
        if not name or not is_inside:
            raise NoSuchFileError(f"A file must be in the folder, but {name[:100]!r} is not.")
        return path

    def place(self, name: str, *suffixes: str) -> Path:
        """Return where a new file may be written: a plain name, directly in the folder.

        Raises
        ------
        InvalidInputError
            When the name has anything but letters, digits, spaces and ``. _ -``.
        """
        if not _NAME.fullmatch(name) or not name.endswith(suffixes) or ".." in name:
            raise InvalidInputError(
                "A new file must be named by letters, digits, spaces and . _ - and end in "
                f"{' or '.join(suffixes)}, but got {name[:100]!r}."
            )
        path = self.path.resolve() / name
        if path.is_symlink():
            raise InvalidInputError(f"A new file must not be a link, but {name!r} is one.")
        return path

    def files(self) -> list[dict[str, Any]]:
        """Return what can be used here: name, kind, size and time of change; newest first."""
        found = []
        for path in self._walk():
            try:
                kind, status = _kind(path), path.stat()
            except OSError:
                continue  # gone since it was listed
            if kind:
                name = path.relative_to(self.path).as_posix()
                found.append(
                    {
                        "name": name,
                        "kind": kind,
                        "n_bytes": status.st_size,
                        "changed": status.st_mtime,
                    }
                )
        return sorted(found, key=lambda entry: (-entry["changed"], entry["name"]))

    def names(self, *kinds: str) -> list[str]:
        """Return the names of all files of some kinds."""
        return [entry["name"] for entry in self.files() if entry["kind"] in kinds]

    def _walk(self) -> Iterator[Path]:
        n_seen = 0
        for root, folders, names in os.walk(self.path):
            depth = len(Path(root).relative_to(self.path).parts)
            kept = sorted(f for f in folders if not f.startswith("."))
            folders[:] = kept if depth < _DEEPEST else []
            for name in sorted(n for n in names if not n.startswith(".")):
                n_seen += 1
                if n_seen > _MOST_FILES:
                    return
                path = Path(root) / name
                if path.resolve().is_relative_to(self.path.resolve()):
                    yield path


def _kind(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix not in (".json", ".toml"):
        return None
    with path.open("rb") as file:
        match = _SCHEMA.search(file.read(_HEAD_BYTES))
    return _KINDS_BY_SCHEMA.get(match[1]) if match else None
