"""One campaign per file: a lock that the system lets go when its owner dies."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInputError

fcntl: Any
try:
    import fcntl
except ImportError:  # pragma: no cover - systems without POSIX locks
    fcntl = None


class FileLock:
    """Own a file until `release`, or until the process ends in whatever way.

    The lock lives in a file beside the data, since closing a second handle of a database would
    drop SQLite's own locks. It names its owner's process for the message that others get.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        self._owned_by = path
        self._handle = self._acquire()

    def release(self) -> None:
        """Give the lock back; once is enough."""
        if self._handle is None:
            return
        with contextlib.suppress(OSError):
            self.path.unlink()  # while it is still ours, so that nobody else's is removed
        os.close(self._handle)
        self._handle = None

    def _acquire(self) -> int | None:
        while True:
            handle = self._open()
            try:
                self._lock(handle)
                if _is_same_file(handle, self.path):
                    os.ftruncate(handle, 0)
                    os.write(handle, str(os.getpid()).encode())
                    return handle
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # the former owner removed it in between

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise InvalidInputError(
                f"A campaign must be able to write beside {str(self._owned_by)!r}, "
                f"but it cannot: {error.strerror}."
            ) from error

    def _lock(self, handle: int) -> None:
        if fcntl is None:  # pragma: no cover - systems without POSIX locks
            return
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(handle, 20, 0).decode(errors="replace").strip() or "another"
            raise InvalidInputError(
                f"Only one campaign may write to {str(self._owned_by)!r}, but process {owner} "
                "does; wait for it, or choose another file."
            ) from error


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False
