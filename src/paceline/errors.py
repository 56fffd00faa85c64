"""What can go wrong, as a tree.

::

    PacelineError
    ├── InvalidInputError (ValueError)     an argument, file or setting breaks a stated rule
    │   ├── UnknownNameError               carries .known and suggests the nearest
    │   └── SchemaError                    a file that is not what it should be; carries .path
    ├── InfeasibleError                    right question, no answer; carries .reason
    ├── ExecutionError                     a run started and failed; carries .reason and .log_tail
    │   ├── DeviceMemoryError              it ran out of memory
    │   └── RunTimeoutError                it exceeded its time limit
    └── MissingDependencyError (ImportError)
    PacelineWarning (UserWarning)
    ├── BoundWarning                       a constant sits at its limit
    ├── ConvergenceWarning                 the data cannot determine all constants
    └── ExtrapolationWarning               a question outside the measured range

Every message says the rule that must hold, what was got and, where known, what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PacelineError(Exception):
    """Root of all errors that Paceline raises on purpose."""


class InvalidInputError(PacelineError, ValueError):
    """An argument, a file or a setting breaks a stated rule."""


class UnknownNameError(InvalidInputError):
    """A name that is not known; suggests the nearest one that is."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(known)
        super().__init__(f"No {kind} is called {name!r}. {_suggestion(name, self.known)}")


class SchemaError(InvalidInputError):
    """A file does not hold what its kind of file must hold."""

    def __init__(self, path: object, problem: str) -> None:
        self.path = str(path)
        super().__init__(f"{self.path}: {problem}")


class InfeasibleError(PacelineError):
    """The question is right, but there is no answer: this cannot be built or placed."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ExecutionError(PacelineError):
    """A run was started and failed."""

    def __init__(self, reason: str, log_tail: str = "") -> None:
        self.reason = reason
        self.log_tail = log_tail
        super().__init__(reason)


class DeviceMemoryError(ExecutionError):
    """A run needed more memory than it may have."""


class RunTimeoutError(ExecutionError):
    """A run took longer than it may."""


class MissingDependencyError(PacelineError, ImportError):
    """An optional package is needed for what was asked."""

    def __init__(self, feature: str, package: str, extra: str, *, remedy: str = "") -> None:
        super().__init__(
            f"{feature} needs {package}, which is not installed. Try: "
            + (remedy or f"pip install 'paceline[{extra}]'")
        )


class PacelineWarning(UserWarning):
    """Root of all warnings that Paceline issues."""


class BoundWarning(PacelineWarning):
    """A fitted constant sits at its limit."""


class ConvergenceWarning(PacelineWarning):
    """The data cannot determine all constants of the expression."""


class ExtrapolationWarning(PacelineWarning):
    """A prediction was asked for outside the measured range."""


def _suggestion(name: str, known: tuple[str, ...]) -> str:
    nearest = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.5)
    if nearest:
        match = next(k for k in known if k.lower() == nearest[0])
        return f"Did you mean {match!r}? Known: {', '.join(known)}."
    return f"Known: {', '.join(known) or 'none'}."
