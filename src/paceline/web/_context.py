"""What the routes share: the folder, the jobs and the models that were read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Query, Request

from paceline.errors import InvalidInputError
from paceline.web._folder import Folder
from paceline.web._jobs import Jobs
from paceline.web._settings import Settings

if TYPE_CHECKING:
    from paceline.estimators import FitResult

_MOST_MODELS = 16


@dataclass
class Context:
    """One running application."""

    settings: Settings
    folder: Folder
    jobs: Jobs
    _fits: dict[Path, tuple[tuple[int, int], Any]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, settings: Settings) -> Context:
        """Return the context of an application that starts."""
        folder = Folder(settings.folder.resolve())
        return cls(settings=settings, folder=folder, jobs=Jobs(max_running=settings.max_jobs))

    def fit(self, name: str) -> FitResult:
        """Return a fitted model of the folder, read once until it changes."""
        from paceline.estimators import load_fit

        path = self.folder.find(name)
        if path.suffix.lower() != ".json":
            raise InvalidInputError(f"A model must end in .json, but got {name[:100]!r}.")
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size)
        with self._lock:
            known = self._fits.get(path)
            if known is None or known[0] != stamp:
                while len(self._fits) >= _MOST_MODELS:
                    self._fits.pop(next(iter(self._fits)))
                known = self._fits[path] = (stamp, load_fit(path))
        fit: FitResult = known[1]
        return fit

    def without_path(self, message: str) -> str:
        """Return a message that does not say where on this machine the folder is."""
        return message.replace(f"{self.folder.path}/", "")


def context_of(request: Request) -> Context:
    """Return the context of the application that was asked."""
    context: Context = request.app.state.context
    return context


Here = Annotated[Context, Depends(context_of)]
FileName = Annotated[str, Query(max_length=500, description="Name of a file in the folder.")]
