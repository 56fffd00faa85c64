"""How far the campaigns of a folder are, read beside the process that runs them."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.dataset import open_store, read_meta

_MOST_TRIALS = 300
_RATE_RUNS = 50


def view_study(path: Path, *, with_trials: bool = False) -> dict[str, Any]:
    """Return the progress of a store, with its newest trials when asked.

    Raises
    ------
    SchemaError
        When the file is no store of ours.
    """
    with open_store(path) as connection:
        meta = read_meta(connection, path)
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        view = _observed(connection, meta)
        if "campaign_trials" in tables:
            view |= _campaign(connection, meta)
        view["is_running"] = is_owned(path)
        if with_trials:
            view["trials"] = _trials(connection)
            view["parameters"] = _parameters(connection)
    return view


def is_owned(path: Path) -> bool:
    """Return whether a living process holds the lock of a campaign; takes no lock itself."""
    try:
        owner = int(path.with_name(path.name + ".lock").read_text(encoding="utf-8"))
        os.kill(owner, 0)
    except PermissionError:
        return True  # somebody else's, but alive
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _observed(connection: sqlite3.Connection, meta: dict[str, Any]) -> dict[str, Any]:
    query = "SELECT count(*), sum(reason != ''), max(created) FROM observations"
    n, n_failed, last = connection.execute(query).fetchone()
    return {
        "study": str(meta.get("provenance", {}).get("study", "")),
        "is_campaign": False,
        "done": n,
        "failed": n_failed or 0,
        "total": n,
        "last": last,
        "remaining_s": None,
    }


def _campaign(connection: sqlite3.Connection, meta: dict[str, Any]) -> dict[str, Any]:
    states = dict(connection.execute("SELECT state, count(*) FROM campaign_trials GROUP BY state"))
    notes, study = meta.get("campaign", {}), meta.get("study", {})
    n_unplanned = int(notes.get("n_unplanned", 0))
    n_open = states.get("open", 0) + n_unplanned
    lives = int(study.get("protocol", {}).get("lives", 2))
    query = (
        "SELECT count(*) FROM campaign_runs WHERE trial IN "
        "(SELECT number FROM campaign_trials WHERE state = 'open')"
    )
    runs_to_go = max(n_open * lives - connection.execute(query).fetchone()[0], 0)
    return {
        "is_campaign": True,
        "done": states.get("done", 0) + states.get("failed", 0),
        "failed": states.get("failed", 0),
        "total": sum(states.values()) - states.get("dropped", 0) + n_unplanned,
        "infeasible": int(notes.get("n_infeasible", 0)),
        "remaining_s": _remaining_s(connection, runs_to_go),
        "workloads": study.get("workloads", []),
        "executors": study.get("executors", []),
    }


def _remaining_s(connection: sqlite3.Connection, runs_to_go: int) -> float | None:
    """Return the seconds to go at the pace of the newest runs of the last session."""
    query = (
        "SELECT created FROM campaign_runs WHERE session = (SELECT session FROM campaign_runs "
        "ORDER BY created DESC LIMIT 1) ORDER BY created DESC LIMIT ?"
    )
    times = [datetime.fromisoformat(row[0]) for row in connection.execute(query, (_RATE_RUNS,))]
    if len(times) < 2:
        return None
    return runs_to_go * (times[0] - times[-1]).total_seconds() / (len(times) - 1)


def _parameters(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    query = 'SELECT name, role, kind, "values" FROM parameters ORDER BY position'
    return [
        {"name": name, "role": role, "kind": kind, "n_values": len(json.loads(values))}
        for name, role, kind, values in connection.execute(query)
    ]


def _trials(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the newest observations; failed ones are always among them."""
    query = (
        'SELECT id, "values", times_s, reason, other, created FROM observations '
        "ORDER BY reason = '', id DESC LIMIT ?"
    )
    return [
        {
            "trial": json.loads(other).get("trial", number),
            "values": json.loads(values),
            "time_s": statistics.median(json.loads(times_s)) if json.loads(times_s) else None,
            "reason": reason,
            "created": created,
        }
        for number, values, times_s, reason, other, created in connection.execute(
            query, (_MOST_TRIALS,)
        )
    ]
