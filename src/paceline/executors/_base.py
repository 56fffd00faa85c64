"""What every executor promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Protocol, Self

from paceline.executors._job import PHASES, Job, RunRecord


class Pool(Protocol):
    """Workers that run jobs one after the other."""

    n_workers: int

    @property
    def is_alive(self) -> bool:
        """Whether all workers run."""
        ...

    def run(self, job: Job, timeout_s: float) -> RunRecord:
        """Run a job on all workers within a time limit."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class BaseExecutor(ABC):
    """A way to run jobs on workers.

    Attributes
    ----------
    name
        How users call it.
    """

    name: str

    @property
    def capabilities(self) -> frozenset[str]:
        """Phases that it times apart; of the others, a record says where their time went."""
        return frozenset(PHASES)

    @property
    def has_layer_times(self) -> bool:
        """Whether it times forward and backward per layer."""
        return False

    @abstractmethod
    def readiness(self) -> str:
        """Return nothing when it is ready, else why not and what makes it ready."""

    @abstractmethod
    def open(self, n_workers: int, *, memory_bytes: int | None = None) -> Pool:
        """Start workers.

        Parameters
        ----------
        n_workers
            How many.
        memory_bytes
            Resident memory that each may use; None for no limit.
        """

    def warm(self) -> BaseExecutor:
        """Return an executor that starts workers faster, to be closed; this one where none does.

        All its workers may share what a process keeps for life, such as the layout of its
        memory: for independent process lives ask for another one.
        """
        return self

    def close(self) -> None:  # noqa: B027  # most have nothing to let go of
        """Let go of what `warm` started; does not touch workers."""
