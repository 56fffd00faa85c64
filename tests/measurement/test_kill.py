"""Campaigns that are killed at any moment, and files that cannot be written."""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.measurement.small_studies import small_study

from paceline.dataset import read_observations
from paceline.errors import InvalidInputError
from paceline.measurement import Campaign

ROOT = Path(__file__).parents[2]


class Server:
    """Starts campaigns that can be killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.measurement.campaign_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def start(self, path: Path, **request: Any) -> int:
        """Start a campaign and return its process id."""
        log = path.with_suffix(".log")
        request = {"path": str(path), "log": str(log), **request}
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def wait(self) -> int:
        """Return the exit status of the campaign that was started last."""
        assert self._process.stdout
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def logged(path: Path) -> list[str]:
    log = path.with_suffix(".log")
    return log.read_text().splitlines() if log.exists() else []


def runs_in(path: Path) -> set[tuple[int, int, int]]:
    """Return trial, attempt and life of every run in the file, after a check that it is sound."""
    if not path.exists() or not path.stat().st_size:
        return set()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if "campaign_runs" not in tables:
            return set()
        return set(connection.execute("SELECT trial, attempt, life FROM campaign_runs"))


def told(path: Path) -> list[tuple[int, int, int]]:
    """Return trial, attempt and life of every run that a campaign saw committed, in order."""
    words = [line.partition(":")[0].replace(",", "").split() for line in logged(path)]
    return [(int(w[1]), int(w[3]), int(w[5])) for w in words]


def test_thirty_kills_lose_no_finished_trial_and_repeat_none(
    tmp_path: Path, server: Server
) -> None:
    path, rng, n_kills = tmp_path / "runs.db", random.Random(5), 0
    study = {"n_trials": 150, "protocol": {"recycle_every": 50, "remeasure_share": 0.0}}
    while n_kills < 30:
        pid = server.start(path, study=study, pause_s=0.02)
        time.sleep(rng.uniform(0.0, 0.25))
        os.kill(pid, signal.SIGKILL)
        if server.wait() == -signal.SIGKILL:
            n_kills += 1
        else:
            break
        kept = runs_in(path)
        assert set(told(path)) <= kept  # nothing that was finished is lost
    server.start(path, study=study)
    assert server.wait() == 0
    assert n_kills == 30
    assert len(told(path)) == len(set(told(path)))  # none was measured twice
    trials = [seen.provenance["trial"] for seen in read_observations(path)]
    assert sorted(trials) == list(range(150 + 38))
    assert runs_in(path) == {(trial, 0, life) for trial in trials for life in range(2)}


def test_the_lock_of_a_killed_campaign_is_taken_over(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "runs.db"
    pid = server.start(path, hold=True)
    while not logged(path):
        time.sleep(0.01)
    with pytest.raises(InvalidInputError, match=f"Only one campaign may write.*process {pid}"):
        Campaign(small_study(), path)
    os.kill(pid, signal.SIGKILL)
    server.wait()
    Campaign(small_study(), path).close()


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "runs.db"
    server.start(path, study={"n_trials": 60}, file_bytes=150_000)
    assert server.wait() == 2
    *lines, error = logged(path)
    assert "must be able to write" in error and "finished trials are kept" in error
    path.with_suffix(".log").write_text("".join(f"{line}\n" for line in lines))
    assert len(lines) > 3 and set(told(path)) <= runs_in(path)
    server.start(path, study={"n_trials": 60})  # there is room again
    assert server.wait() == 0
    assert len(told(path)) == len(set(told(path))) and len(read_observations(path)) == 75


def test_a_folder_that_cannot_be_written_is_said(server: Server) -> None:
    folder = Path(tempfile.mkdtemp())  # not below a folder that only its owner may enter
    try:
        folder.chmod(0o555)
        path = folder / "runs.db"
        log = Path(tempfile.gettempdir()) / f"{folder.name}.log"
        server.start(path, unprivileged=True, log=str(log))
        assert server.wait() == 2
        text = log.read_text()
        assert "must be able to write beside" in text and "Permission denied" in text
        assert not list(folder.iterdir())
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
        with contextlib.suppress(OSError):
            log.unlink()


def test_a_campaign_killed_in_its_first_moment_leaves_a_file_that_can_be_used(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    path.touch()
    with Campaign(small_study(), path) as campaign:
        assert campaign.ask() is not None
