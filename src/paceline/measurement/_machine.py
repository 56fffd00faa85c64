"""The state of the machine that measures; its name is nobody's business and is left out."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_GIT_TIMEOUT_S = 5.0


def load_average() -> list[float]:
    """Return the load of the last 1, 5 and 15 minutes; empty where there is none."""
    try:
        return [round(load, 2) for load in os.getloadavg()]
    except (AttributeError, OSError):
        return []


def describe_machine() -> dict[str, Any]:
    """Return what stays the same during a campaign: processors, threads, versions, commit."""
    return {
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "n_processors": os.cpu_count(),
        "affinity": _affinity(),
        "threads": {name: os.environ[name] for name in _THREADS if name in os.environ},
        "versions": {"python": platform.python_version(), "paceline": version("paceline")},
        "commit": _commit(),
    }


def _affinity() -> list[int]:
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:
        return []  # not told by every system


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> str:
    """Return the commit of the folder that the campaign is started in; empty outside of git."""
    git = shutil.which("git")
    if git is None:
        return ""
    try:
        done = subprocess.run(
            [git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=_GIT_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
