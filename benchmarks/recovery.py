"""Planted constants recovered, and the error against the floor of the noise."""

from __future__ import annotations

from paceline.estimators import GenericRegressor, score
from paceline.validation import generate_study

N_SEEDS = 5


def measure() -> dict[str, object]:
    figures = {}
    for framework in ("tensorflow", "mxnet"):
        for noise in (0.0, 0.05):
            rows = [recover(framework, noise, seed) for seed in range(N_SEEDS)]
            worst = {name: max(row[name] for row in rows) for name in rows[0]}
            figures[f"{framework}_noise_{noise}"] = worst
            print(f"{framework} noise {noise}: worst of {N_SEEDS}: {worst}")
    return figures


def recover(framework: str, noise: float, seed: int) -> dict[str, float]:
    study = generate_study(framework, n_rows=1000, noise=noise, random_state=seed)
    unseen = generate_study(framework, n_rows=2000, noise=noise, random_state=1000 + seed)
    model = GenericRegressor(study.dataset.extrinsic, study.dataset.categorical)
    model.fit(study.dataset.X, study.dataset.y)
    found = model.expression_.constants()
    gaps = {n: abs(found[n] - v) for n, v in study.truth.canonical().constants().items()}
    error = score(unseen.dataset.y, model.predict(unseen.dataset.X)).mape
    result = {
        "extrinsic_power_gap": max(v for n, v in gaps.items() if n.startswith("q[")),
        "mape": error,
    }
    if noise:
        result["mape_over_floor"] = error / score(unseen.dataset.y, unseen.true_s).mape
    else:
        result["intrinsic_power_gap"] = max(v for n, v in gaps.items() if n.startswith("p["))
    return {name: round(value, 6) for name, value in result.items()}
