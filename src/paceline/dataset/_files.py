"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from paceline.errors import InvalidInputError

# SQLite keeps these beside a database while it is open.
_COMPANIONS = ("", "-wal", "-shm", "-journal")


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it on success, remove it on failure."""
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"The folder of a new file must exist, but {str(path.parent)!r} does not."
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise InvalidInputError(
            f"A file must be writable, but {str(path)!r} is not: {error.strerror or error}."
        ) from error
    finally:
        for companion in _COMPANIONS:
            temporary.with_name(temporary.name + companion).unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file so that it is there whole or not at all."""
    with written_whole(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")
