"""Figures of members over foldings: means, ratios, coverage, and files of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def summarise(found: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, object]]:
    """Return means over the foldings, and the foldings themselves."""
    means: dict[str, dict[str, object]] = {
        name: {key: float(np.mean([r[key] for r in runs])) for key in runs[0]}
        for name, runs in found.items()
    }
    for name, figures in means.items():
        figures["foldings"] = found[name]
    return means


def rate(
    means: dict[str, dict[str, object]], others: Sequence[str]
) -> dict[str, dict[str, object]]:
    """Return the members with the ratio of each to the best other."""
    best = min((means[name]["mean"] for name in others if name in means), default=None)
    return {
        name: {**figures, "ratio": figures["mean"] / best if best else None}
        for name, figures in means.items()
    }


def add(results: dict, path: Path, others: Sequence[str]) -> dict:
    """Return the results with those of a file for the sets and members that they lack."""
    old = json.loads(path.read_text())["figures"]["sets"] if path.exists() else {}
    merged = dict(old)
    for name, found in results.items():
        before = old.get(name, {})
        kinds = {k: {**before.get(k, {}), **found.get(k, {})} for k in ("folds", "scale-out")}
        rated = {kind: rate(means, others) for kind, means in kinds.items() if means}
        merged[name] = {"rows": found["rows"], "floor": found["floor"], **rated}
    return dict(sorted(merged.items()))


def summarise_coverage(runs: list[dict[str, float]]) -> dict[str, object]:
    found = [run["coverage"] for run in runs]
    return {
        "coverage": float(np.mean(found)),
        "spread": float(np.std(found)),
        "mean": float(np.mean([run["mean"] for run in runs])),
        "foldings": found,
    }
