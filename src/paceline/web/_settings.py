"""What the application serves, to whom, and within which limits."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import InvalidInputError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
WILDCARDS = ("0.0.0.0", "::")
_MB = 1_000_000


def _fresh_token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a folder is served.

    Parameters
    ----------
    folder
        Nothing outside of it is read or written.
    host
        Where it listens: a loopback name, unless other machines shall reach it.
    max_upload_bytes
        Largest table that is taken.
    token
        What requests that change something must carry; made anew when not given.
    max_jobs
        Fits and comparisons that may run at once.
    """

    folder: Path
    host: str = "127.0.0.1"
    max_upload_bytes: int = 20 * _MB
    token: str = field(default_factory=_fresh_token, repr=False)
    max_jobs: int = 2

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InvalidInputError(
                f"A folder must be given to serve, but {str(self.folder)!r} is not one."
            )
        if self.max_upload_bytes < 1:
            raise InvalidInputError(
                f"The largest upload must be positive, but got {self.max_upload_bytes} bytes."
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK
