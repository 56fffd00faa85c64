"""Accuracy on a folder of measurements: every form and every black box on the same folds.

    python benchmarks/accuracy.py DIR [--foldings 5] [--only NAME] [-o accuracy.json]

Every ``NAME.csv`` has a ``NAME.toml`` beside it: `time`, `intrinsic`, `extrinsic`, `categorical`,
perhaps `group` (whose values folds must not share) and `[scale_out]` with `column` and
`fit_up_to`. Rows of one configuration always stay together.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from paceline.dataset import Dataset, load_dataset
from paceline.errors import PacelineWarning
from paceline.estimators import (
    BlackBoxRegressor,
    ExtraPRegressor,
    GenericRegressor,
    PosynomialRegressor,
    PowerLawRegressor,
    fit,
    folds_of,
    noise_floor,
    score,
)

OTHERS = ("forest", "boosting", "hist-boosting", "svr", "power-law")
N_FOLDS = 5


def load(path: Path) -> tuple[Dataset, dict]:
    roles = tomllib.loads(path.with_suffix(".toml").read_text())
    dataset = load_dataset(
        path,
        time=roles["time"],
        intrinsic=roles["intrinsic"],
        extrinsic=roles["extrinsic"],
        categorical=roles["categorical"],
        group=roles.get("group"),
    )
    return dataset, roles


def plain(name: str) -> Callable[[Dataset], object]:
    makers = {
        "posynomial": lambda d: PosynomialRegressor(d.extrinsic, d.categorical),
        "generic": lambda d: GenericRegressor(d.extrinsic, d.categorical, cost="relative"),
        "power-law": lambda d: PowerLawRegressor(d.extrinsic, d.categorical),
        "extra-p": lambda d: ExtraPRegressor(d.extrinsic, d.categorical),
    }
    return makers.get(name, lambda d: BlackBoxRegressor(name, d.categorical))


def predict(name: str, dataset: Dataset, group: str | None, train, test) -> dict[str, np.ndarray]:
    """Return what a member predicts of unseen rows; of `auto` the interval too."""
    part, rows = dataset.take(train), dataset.X.iloc[test]
    if name == "auto":
        result = fit(part, group=group, n_seeds=1)
        found = result.predict(rows)
        return {c: found[c].to_numpy() for c in ("predicted_s", "lower_s", "upper_s")}
    model = plain(name)(dataset)
    takes_groups = name not in ("generic", "power-law", "extra-p") and group is not None
    more = {"groups": part.groups(group)} if takes_groups else {}
    return {"predicted_s": model.fit(part.X, part.y, **more).predict(rows)}


def try_member(name: str, dataset: Dataset, group: str | None, folds) -> dict[str, float]:
    start, measured = time.perf_counter(), dataset.y.to_numpy()
    held_out = np.concatenate([test for _, test in folds])
    parts = [predict(name, dataset, group, train, test) for train, test in folds]
    found = {key: np.concatenate([p[key] for p in parts]) for key in parts[0]}
    scores = score(measured[held_out], found["predicted_s"])
    figures = {
        "mean": scores.mape,
        "median": scores.median_ape,
        "seconds": (time.perf_counter() - start) / len(folds),
    }
    if "lower_s" in found:
        y = measured[held_out]
        inside = (found["lower_s"] <= y) & (y <= found["upper_s"])
        figures["coverage"] = float(inside.mean())
    return figures


def splits_of(dataset: Dataset, roles: dict, n_foldings: int) -> dict[str, list]:
    groups = dataset.groups(roles.get("group"))
    splits = {f"folds {k}": folds_of(groups, N_FOLDS, k) for k in range(n_foldings)}
    if "scale_out" in roles:
        column, limit = roles["scale_out"]["column"], roles["scale_out"]["fit_up_to"]
        small = (dataset.X[column] <= limit).to_numpy()
        splits["scale-out"] = [(np.flatnonzero(small), np.flatnonzero(~small))]
    return splits


def run_set(path: Path, n_foldings: int, members: list[str]) -> dict[str, object]:
    dataset, roles = load(path)
    group = roles.get("group")
    floor = noise_floor(dataset.y, dataset.groups())
    print(f"\n{path.stem}: {dataset.n_rows} rows, noise floor "
          f"{'unknown' if floor is None else f'{100 * floor:.1f} %'}", flush=True)  # fmt: skip
    gathered: dict[str, dict[str, list[dict[str, float]]]] = {}
    for label, folds in splits_of(dataset, roles, n_foldings).items():
        kind = label.split()[0]
        for name in members:
            figures = try_member(name, dataset, group, folds)
            gathered.setdefault(kind, {}).setdefault(name, []).append(figures)
    return {kind: summarise(kind, found) for kind, found in gathered.items()}


def summarise(kind: str, found: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return means over the foldings, with each member's ratio to the best other."""
    means = {
        name: {key: float(np.mean([r[key] for r in runs])) for key in runs[0]}
        for name, runs in found.items()
    }
    best = min(means[name]["mean"] for name in OTHERS if name in means)
    print(f"  {kind:10} {'mean':>8} {'median':>8} {'ratio':>6} {'cover':>6} {'s/fit':>6}")
    for name, figures in sorted(means.items(), key=lambda pair: pair[1]["mean"]):
        figures["ratio"] = figures["mean"] / best
        cover = f"{figures['coverage']:.3f}" if "coverage" in figures else ""
        errors = f"{100 * figures['mean']:7.2f}% {100 * figures['median']:7.2f}%"
        print(f"  {name:14}{errors} {figures['ratio']:6.2f} {cover:>6} {figures['seconds']:6.1f}")
    return means


def geometric_means(results: dict) -> dict[str, float]:
    found = {}
    for kind in ("folds", "scale-out"):
        for name in ("auto", "posynomial"):
            ratios = [r[kind][name]["ratio"] for r in results.values() if name in r.get(kind, {})]
            if ratios:
                found[f"{kind} {name}"] = float(np.exp(np.mean(np.log(ratios))))
                print(f"{kind}, {name}: geometric mean {found[f'{kind} {name}']:.3f}, "
                      f"worst {max(ratios):.2f}")  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--foldings", type=int, default=5)
    parser.add_argument("--only", action="append", help="Name of a set; may be given again.")
    parser.add_argument("--all", action="store_true", help="The generic form and Extra-P too.")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", PacelineWarning)
    members = ["auto", "posynomial", *OTHERS, *(["generic", "extra-p"] if options.all else [])]
    paths = [p for p in sorted(options.folder.glob("*.csv")) if p.with_suffix(".toml").exists()]
    if options.only:
        paths = [p for p in paths if p.stem in options.only]
    results = {path.stem: run_set(path, options.foldings, members) for path in paths}
    print()
    figures = {"sets": results, "geometric_means": geometric_means(results)}
    if options.output:
        record = {"schema": "paceline/benchmark/1", "part": "accuracy", "figures": figures}
        options.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
