"""The phases of a campaign as text: one section per table of chapter 3."""

from __future__ import annotations

import textwrap
from collections import Counter
from itertools import groupby
from typing import Any

import pandas as pd

from paceline.estimators import PHASES
from paceline.explainers import ImbalanceReading, PhaseExplanation
from paceline.reports._phases import (
    plain,
    records,
    show_aggregation,
    show_lif,
    show_regression,
    spread,
)
from paceline.reports._table import table
from paceline.units import format_percent

_WIDTH = 78
_SPEEDUPS = ("measured", "exposed_shared", "exposed", "printed", "iucc")


def show_phase_explanation(explanation: PhaseExplanation) -> str:
    """Return tables like 3.2 to 3.5 as text, with speedup and where imbalance arises."""
    several = bool(len(explanation.lif))
    sections = [
        ("Phases of a step, mean ± standard deviation (table 3.2)", _phases(explanation)),
        ("Steps in ms, predicted by the equations and measured", _steps(explanation)),
    ]
    if several:
        sections += [
            (
                "Aggregation on several workers (table 3.3)",
                show_aggregation(explanation.aggregation),
            ),
            ("Speedup, measured (3.6) and predicted", _speedup(explanation.speedup)),
            ("Load imbalance factor (3.8, table 3.4)", show_lif(explanation.lif)),
            ("Load imbalance factor by phase", _lif_phases(explanation.lif_phases)),
            ("Where imbalance arises", _imbalance(explanation)),
        ]
    sections.append(
        (
            "Epoch time t = b0 + b1 N + b2 LIF in s (3.9, table 3.5)",
            show_regression(explanation.regression),
        )
    )
    named = [f"Networks are named {'/'.join(explanation.named)}."]
    first = named if len(explanation.named) > 1 else []
    return "\n\n".join([*first, *(f"{title}\n\n{text}" for title, text in sections)])


def _phases(explanation: PhaseExplanation) -> str:
    blocks = []
    for (network, framework), own in explanation.phases.groupby(
        ["network", "framework"], sort=False
    ):
        counts = sorted(set(own["n_workers"]))
        cells = {
            (r["phase"], r["n_workers"]): spread(r["mean_s"], r["sd_s"]) for r in records(own)
        }
        names = [p for p in (*PHASES, "step") if p in set(own["phase"])]
        rows = [[name, *(cells.get((name, n), "-") for n in counts)] for name in names]
        header = [f"{network}, {framework}", *(f"N = {n}" for n in counts)]
        blocks.append(table(header, rows))
    return "\n\n".join(blocks)


def _steps(explanation: PhaseExplanation) -> str:
    names = {
        **{name: name for name in ("3.1", "3.2", "3.3", "3.4", "3.5")},
        "measured, no overlap": "apart",
        "measured, overlapped": "real",
    }
    rows = []
    keys = ["network", "framework", "n_workers"]
    for (network, framework, n), own in explanation.steps.groupby(keys, sort=False):
        found = dict(zip(own["equation"], own["step_s"], strict=True))
        rows.append(
            [str(network), str(framework), str(n)]
            + [plain(1e3 * found.get(name, float("nan")), 3) for name in names]
        )
    text = table(["network", "framework", "N", *names.values()], rows, left=2)
    legend = "apart: phases one after the other; real: as a user sees it, with overlap."
    return f"{text}\n{legend}"


def _speedup(speedup: pd.DataFrame) -> str:
    header = ["network", "framework", "N", "measured", "ours", "one", "3.7", "IUCC 7", "hidden"]
    fitted = speedup[speedup["problem"] == ""]
    rows = [
        [r["network"], r["framework"], str(r["n_workers"])]
        + [plain(r[name], 3) for name in _SPEEDUPS]
        + [format_percent(r["hidden_share"])]
        for r in records(fitted)
    ]
    legend = (
        "ours: only the aggregation that is not hidden counts, compute as on N workers; one: "
        "compute as on one worker; 3.7 and IUCC 7 as printed, for the record; hidden: share of "
        "the aggregation."
    )
    problems = _grouped(speedup[speedup["problem"] != ""])
    shown = [table(header, rows, left=2), _filled(legend)] if rows else []
    return "\n".join([*shown, *problems])


def _lif_phases(lif: pd.DataFrame) -> str:
    phases = [p for p in PHASES if p in set(lif["phase"])]
    rows = []
    for (network, framework, n), own in lif.groupby(
        ["network", "framework", "n_workers"], sort=False
    ):
        found = dict(zip(own["phase"], own["lif"], strict=True))
        cells = [plain(found.get(phase, float("nan")), 3) for phase in phases]
        rows.append([str(network), str(framework), str(n), *cells])
    return table(["network", "framework", "N", *phases], rows, left=2)


def _imbalance(explanation: PhaseExplanation) -> str:
    lines = []
    for key, group in groupby(explanation.imbalance, key=lambda pair: pair[0]):
        readings = [reading for _, reading in group]
        lines.append(f"{key[0]}, {key[1]}, N = {key[2]}")
        lines += [textwrap.indent(_filled(text, 2), "  ") for text in _lives(readings)]
    return "\n".join(lines)


def _lives(readings: list[ImbalanceReading | str]) -> list[str]:
    """Return the sentences of every process life; equal ones once, with how often."""
    said = Counter(_sentence(reading) for reading in readings)
    many = len(readings) > 1
    return [f"{n} of {len(readings)} lives: {text}" if many else text for text, n in said.items()]


def _sentence(reading: ImbalanceReading | str) -> str:
    if isinstance(reading, str):
        return reading
    return " ".join(reading.sentences)


def _grouped(frame: pd.DataFrame) -> list[str]:
    failed: list[dict[str, Any]] = records(frame)
    return [_filled(f"{r['network']}, {r['framework']}: {r['problem']}") for r in failed]


def _filled(text: str, indent: int = 0) -> str:
    return textwrap.fill(text, _WIDTH - indent, subsequent_indent="  ")
