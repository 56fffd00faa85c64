"""Phases, speedup and imbalance as text."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import pandas as pd

from paceline.estimators import PHASES, Shares, SpeedupReport
from paceline.explainers import ImbalanceReading
from paceline.reports._table import table
from paceline.units import format_number, format_percent, format_seconds

_WIDTH = 78


def show_phases(phases: pd.DataFrame) -> str:
    """Return a table like 3.2 as text: per network, phases down and frameworks across."""
    blocks = []
    for network, own in phases.groupby("network", sort=False):
        frameworks = list(dict.fromkeys(own["framework"]))
        cells = {
            (r["phase"], r["framework"]): spread(r["mean_s"], r["sd_s"]) for r in records(own)
        }
        names = [p for p in (*PHASES, "step") if p in set(own["phase"])]
        rows = [[name, *(cells.get((name, f), "-") for f in frameworks)] for name in names]
        blocks.append(table([str(network), *frameworks], rows))
    return "\n\n".join(blocks)


def show_aggregation(aggregation: pd.DataFrame) -> str:
    """Return a table like 3.3 as text."""
    header = ["network", "framework", "N", "aggregation", "wait", "transfer", "hidden"]
    rows = [
        [r["network"], r["framework"], str(r["n_workers"]), spread(r["mean_s"], r["sd_s"])]
        + [seconds(x) for x in (r["wait_s"], r["transfer_s"], r["hidden_s"])]
        for r in records(aggregation)
    ]
    return table(header, rows, left=2)


def show_lif(lif: pd.DataFrame) -> str:
    """Return a table like 3.4 as text, with the reasons where there is no figure."""
    rows = [
        [
            r["network"],
            r["framework"],
            str(r["n_workers"]),
            _plain_spread(r["mean"], r["sd"]),
            plain(r["lif_run"]),
        ]
        for r in records(lif)
    ]
    text = table(["network", "framework", "workers", "LIF", "over the run"], rows, left=2)
    return "\n".join([text, *_problems(lif)])


def show_regression(regression: pd.DataFrame) -> str:
    """Return a table like 3.5 as text, with the reasons where there is no fit."""
    header = ["network", "framework", "b0", "b1", "b2", "R2", "adjusted", "dof"]
    fitted = regression[regression["problem"] == ""]
    rows = [
        [r["network"], r["framework"]]
        + [plain(x) for x in (r["b0"], r["b1"], r["b2"])]
        + [
            format_number(r["r2"], 4),
            format_number(r["adjusted_r2"], 4),
            f"{r['degrees_of_freedom']:.0f}",
        ]
        for r in records(fitted)
    ]
    return "\n".join([*([table(header, rows, left=2)] if rows else []), *_problems(regression)])


def show_speedup(report: SpeedupReport) -> str:
    """Return predicted and measured speedup as text."""
    o = report.overlap
    rows: list[tuple[str, float]] = [
        ("measured (3.6)", report.measured),
        ("predicted, compute as on N workers", report.exposed_shared),
        ("predicted, compute as on one worker", report.exposed),
        ("(3.7) as printed, for the record", report.printed),
        ("IUCC (7) as printed, for the record", report.iucc),
    ]
    text = table(["speedup", f"{report.n_workers} workers"], [[n, plain(x)] for n, x in rows])
    hidden = (
        f"Aggregation {format_seconds(o.comm_s)}, of which {format_seconds(o.hidden_s)} "
        f"({format_percent(o.hidden_share)}) hidden: a step takes "
        f"{format_seconds(o.overlapped_s)} with overlap, {format_seconds(o.unoverlapped_s)} "
        "without."
    )
    bounded = " The difference lies outside the aggregation and was bounded by it."
    return f"{text}\n\n{_filled(hidden + (bounded if o.is_bounded else ''))}"


def show_imbalance(reading: ImbalanceReading) -> str:
    """Return where imbalance arises as text."""
    lines = [_filled(sentence) for sentence in reading.sentences]
    if reading.n_workers > 1:
        rows = [[phase, format_number(lif, 4)] for phase, lif in reading.lif_phases.items()]
        lines += ["", table(["phase", "LIF"], rows)]
    return "\n".join(lines)


def show_waiting(waiting: pd.DataFrame) -> str:
    """Return the extrapolated waiting as text."""
    rows = [
        [
            str(r["n_workers"]),
            *(seconds(r[name]) for name in ("own_s", "slowest_s", "waiting_s")),
            format_number(r["lif"], 4),
            "measured" if r["is_measured"] else "extrapolated",
        ]
        for r in records(waiting)
    ]
    return table(["workers", "own work", "slowest", "waiting", "LIF", ""], rows)


def show_shares(shares: Shares) -> str:
    """Return proposed shares as text."""
    rows = [
        [str(i), str(equal), seconds(before), str(share), seconds(after)]
        for i, (equal, before, share, after) in enumerate(
            zip(
                shares.equal_batches,
                shares.equal_own_s,
                shares.device_batches,
                shares.own_s,
                strict=True,
            )
        )
    ]
    text = table(["worker", "equal", "own work", "proposed", "own work"], rows)
    return f"{text}\n\n{_filled(f'Predicted: {shares}.')}"


def _problems(frame: pd.DataFrame) -> list[str]:
    failed = records(frame[frame["problem"] != ""])
    return [_filled(f"{r['network']}, {r['framework']}: {r['problem']}") for r in failed]


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


def spread(mean_s: float, sd_s: float) -> str:
    """Return a time with its standard deviation, where that is known."""
    return seconds(mean_s) if math.isnan(sd_s) else f"{seconds(mean_s)} ± {seconds(sd_s, 2)}"


def _plain_spread(mean: float, sd: float) -> str:
    return plain(mean) if math.isnan(sd) else f"{plain(mean)} ± {format_number(sd, 2)}"


def seconds(value: float, digits: int = 3) -> str:
    """Return a time with its unit; a dash when it is not known."""
    return "-" if math.isnan(value) else format_seconds(value, digits)


def plain(value: float, digits: int = 4) -> str:
    """Return a number; a dash when it is not known."""
    return "-" if math.isnan(value) else format_number(value, digits)


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, subsequent_indent="  ")
