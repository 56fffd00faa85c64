"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paceline.errors import InvalidInputError

# SQLite keeps these beside a database while it is open.
_COMPANIONS = ("", "-wal", "-shm", "-journal")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it on success, remove it on failure."""
    path = path.resolve()  # what a link points to is written, the link stays
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"The folder of a new file must exist, but {str(path.parent)!r} does not."
        )
    if path.exists() and not path.is_file():
        raise InvalidInputError(f"A file must be named to write to, but {str(path)!r} is not one.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except OSError as error:
        raise InvalidInputError(
            f"A file must be writable, but {str(path)!r} is not: {error.strerror or error}."
        ) from error
    finally:
        for companion in _COMPANIONS:
            with suppress(OSError):  # must not hide why the writing failed
                temporary.with_name(temporary.name + companion).unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file so that it is there whole or not at all; a device or pipe as it is."""
    if _is_stream(Path(path)):
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidInputError(
                f"A file must be writable, but {str(path)!r} is not: {error.strerror or error}."
            ) from error
        return
    with written_whole(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _is_stream(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)
