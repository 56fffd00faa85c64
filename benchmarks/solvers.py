"""The fast solver beside SciPy's differential evolution, on the thesis' own problem.

Both minimise the same vectorised cost over precomputed logarithms, in the thesis' form,
bounds and units: 1000 rows of table 4.1 from table 4.3's TensorFlow constants, 5 % noise.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from paceline.errors import BoundWarning
from paceline.estimators import GenericRegressor
from paceline.validation import generate_study

N_SEEDS = 10


def fit_seconds(solver: str, penalty: str, seed: int, study: object) -> tuple[float, float]:
    dataset = study.dataset
    model = GenericRegressor(
        dataset.extrinsic,
        dataset.categorical,
        penalty=penalty,
        strength=0.001,
        units="thesis",
        solver=solver,
        random_state=seed,
    )
    start = time.perf_counter()
    model.fit(dataset.X, dataset.y)
    return time.perf_counter() - start, model.cost_


def measure() -> dict[str, object]:
    warnings.simplefilter("ignore", BoundWarning)
    study = generate_study("tensorflow", n_rows=1000, noise=0.05, random_state=0)
    fit_seconds("fast", "none", 0, study)  # warm up
    figures = {}
    for penalty in ("none", "l2"):
        fast, evolved = [], []
        for seed in range(N_SEEDS):
            fast.append(fit_seconds("fast", penalty, seed, study))
            evolved.append(fit_seconds("de", penalty, seed, study))
            print(
                f"penalty {penalty:4} seed {seed}: fast {fast[-1][0]:.3f} s cost {fast[-1][1]:.6f}"
                f"   de {evolved[-1][0]:.1f} s cost {evolved[-1][1]:.6f}",
                flush=True,
            )
        figures[penalty] = summarise(fast, evolved)
        print(f"penalty {penalty}: {figures[penalty]}")
    return figures


def summarise(
    fast: list[tuple[float, float]], evolved: list[tuple[float, float]]
) -> dict[str, float]:
    fast_s, fast_cost = np.array(fast).T
    de_s, de_cost = np.array(evolved).T
    return {
        "fast_median_s": round(float(np.median(fast_s)), 4),
        "fast_max_s": round(float(fast_s.max()), 4),
        "de_median_s": round(float(np.median(de_s)), 2),
        "speedup_median": round(float(np.median(de_s) / np.median(fast_s)), 1),
        "speedup_min": round(float(np.min(de_s / fast_s)), 1),
        "worst_cost_ratio": float(np.max(fast_cost / de_cost)),
        "fast_cost_spread": float(fast_cost.max() / fast_cost.min() - 1),
    }
