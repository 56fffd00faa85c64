"""What the adaptive design saves: replayed on recorded trials, and on the generated study.

`PACELINE_RECORDED` names the store of a campaign of chapter 4's study to replay; without it only
the generated study is.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from paceline import estimators
from paceline.dataset import Dataset, read_store
from paceline.measurement import Replay, load_study, replay_all
from paceline.validation import generate_study

N_RANDOM, N_ADAPTIVE = 200, (100, 130, 160, 200, 215)
SEEDS, OVERHEAD_S = tuple(range(10)), 0.01  # a run's cost beside its steps
GENERATED_SIZES = (60, 100, 200)


def models(dataset: Dataset) -> dict[str, Any]:
    generic = estimators.GenericRegressor(extrinsic=dataset.extrinsic, cost="relative")
    chosen = {
        "surrogate": None,
        "power_law": estimators.PowerLawRegressor(),
        "generic": generic,
    }
    if hasattr(estimators, "PosynomialRegressor"):
        chosen["posynomial"] = estimators.PosynomialRegressor(extrinsic=dataset.extrinsic)
    return chosen


def recorded() -> Dataset | None:
    """Return the recorded trials, without the repeats for the noise floor."""
    path = os.environ.get("PACELINE_RECORDED")
    if not path:
        return None
    dataset = read_store(path)
    first = ~dataset.X.duplicated().to_numpy()
    return dataset.take(np.flatnonzero(first))


def replay_recorded(dataset: Dataset) -> dict[str, object]:
    protocol = load_study("chapter4").protocol
    keywords: dict[str, Any] = {
        "estimators": models(dataset),
        "n_steps": protocol.lives * (protocol.n_warmup + protocol.n_steps),
        "overhead_s": protocol.lives * OVERHEAD_S,
    }
    random = replay_all(dataset, "random", N_RANDOM, SEEDS, **keywords)
    rows = [replay_all(dataset, "adaptive", n, SEEDS, **keywords) for n in N_ADAPTIVE]
    return {name: compare(name, random[name], [row[name] for row in rows]) for name in random}


def compare(name: str, random: Replay, rows: list[Replay]) -> dict[str, object]:
    """Return what it takes to reach the error of random trials."""
    print(f"{name:10} {random}")
    figures: dict[str, object] = {"random": as_figures(random)}
    for row in rows:
        share = row.measuring_s / random.measuring_s
        reached = row.error <= random.error
        print(f"{'':10} {row}, {share:.2f} of the seconds{', reached' if reached else ''}")
        figures[str(row.n_trials)] = {**as_figures(row), "seconds_ratio": share}
        if reached and "reached" not in figures:
            figures["reached"] = {"n_trials": row.n_trials, "seconds_ratio": share}
    return figures


def as_figures(row: Replay) -> dict[str, float]:
    return {"error": row.error, "measuring_s": row.measuring_s}


def replay_generated() -> dict[str, object]:
    figures = {}
    for framework in ("tensorflow", "mxnet"):
        dataset = generate_study(framework, n_rows=600, noise=0.05, random_state=1).dataset
        generic = {"generic": estimators.GenericRegressor(extrinsic=dataset.extrinsic)}
        for n in GENERATED_SIZES:
            ratio = error_ratio(dataset, n, generic)
            print(f"generated, {framework}, {n} trials: error {ratio:.3f} of random's", flush=True)
            figures[f"{framework}_{n}"] = ratio
    return figures


def error_ratio(dataset: Dataset, n: int, model: Mapping[str, Any]) -> float:
    random, adaptive = (
        replay_all(dataset, design, n, SEEDS[:5], estimators=model, n_steps=1.0, overhead_s=0.0)
        for design in ("random", "adaptive")
    )
    return adaptive["generic"].error / random["generic"].error


def measure() -> dict[str, object]:
    dataset = recorded()
    if dataset is None:
        print("no recorded trials: name a store of chapter 4's study in PACELINE_RECORDED")
        return {"generated": replay_generated()}
    print(f"{len(dataset)} recorded trials")
    return {"recorded": replay_recorded(dataset), "generated": replay_generated()}
