"""How honest the spreads are: over seeds, and coverage of the bootstrap over noisy redraws."""

from __future__ import annotations

import numpy as np

from paceline.estimators import GenericRegressor, study_stability
from paceline.validation import generate_study

N_REDRAWS = 20


def measure() -> dict[str, object]:
    held: dict[str, list[bool]] = {}
    seed_spread = 0.0
    for redraw in range(N_REDRAWS):
        study = generate_study("tensorflow", n_rows=1000, noise=0.05, random_state=redraw)
        dataset = study.dataset
        model = GenericRegressor(dataset.extrinsic, dataset.categorical)
        model.fit(dataset.X, dataset.y)
        stability = study_stability(model, n_seeds=10, n_bootstrap=50)
        truth = study.truth.canonical().constants()
        for name in stability.identified:
            spread = stability.spreads[name]
            held.setdefault(name, []).append(spread.low <= truth[name] <= spread.high)
            seed_spread = max(seed_spread, spread.seed_sd / abs(spread.seed_mean))
    for name, hits in held.items():
        print(f"{name:20} identified {len(hits):2} times, covered {np.mean(hits):.2f}")
    coverage = float(np.mean([hit for hits in held.values() for hit in hits]))
    n_intervals = sum(map(len, held.values()))
    print(f"coverage of identified constants {coverage:.3f} ({n_intervals} intervals)")
    print(f"largest spread over ten seeds of an identified constant {100 * seed_spread:.4f} %")
    return {
        "coverage": coverage,
        "n_intervals": n_intervals,
        "largest_seed_spread": seed_spread,
        "by_constant": {name: float(np.mean(hits)) for name, hits in held.items()},
    }
