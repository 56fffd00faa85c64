"""Accuracy on a folder of measurements: every form and every black box on the same folds.

    python benchmarks/accuracy.py DIR [--foldings 5] [--only NAME] [--members a,b] [-o FILE.json]
                                      [--add] [--jobs 2]
    python benchmarks/accuracy.py DIR --coverage 10 [-o FILE.json]

Every ``NAME.csv`` has a ``NAME.toml`` beside it: `time`, `intrinsic`, `extrinsic`, `categorical`,
perhaps `group` (whose values folds must not share) and `[scale_out]` with `column` and
`fit_up_to`. Rows of one configuration always stay together. The figures are written after every
set; `accuracy_table.py` makes the tables of README.md from them.
"""

from __future__ import annotations

import argparse
import json
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from accuracy_figures import add, rate, summarise, summarise_coverage
from accuracy_table import coverage_table, geometric_means, text_table
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
from progress import Progress
from run import describe_machine
from symbolic import SymbolicRegressor

OTHERS = ("forest", "boosting", "hist-boosting", "svr", "power-law")  # who must be beaten
USUAL = ("auto", "posynomial", *OTHERS)
MORE = ("generic", "extra-p")
OPTIONAL = ("symbolic",)  # slow, and needs an extra
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
        "symbolic": lambda d: SymbolicRegressor(d.categorical),
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
    takes_groups = name not in (*MORE, *OPTIONAL, "power-law") and group is not None
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


def run_set(
    dataset: Dataset, roles: dict, options: argparse.Namespace, progress: Progress
) -> dict[str, object]:
    splits = splits_of(dataset, roles, options.foldings)
    units = {
        (label, name): (name, dataset, roles.get("group"), folds)
        for label, folds in splits.items()
        for name in options.members
    }
    gathered: dict[str, dict[str, list[dict[str, float]]]] = {}
    for (label, name), figures in try_all(units, options.jobs, progress).items():
        gathered.setdefault(label.split()[0], {}).setdefault(name, []).append(figures)
    found = {kind: rate(summarise(runs), OTHERS) for kind, runs in gathered.items()}
    return {"rows": dataset.n_rows, "floor": noise_floor(dataset.y, dataset.groups()), **found}


def coverage_of(
    dataset: Dataset, roles: dict, options: argparse.Namespace, progress: Progress
) -> dict[str, object]:
    """Return how often intervals of `auto` held the measured time, folding by folding."""
    group = roles.get("group")
    units = {
        (f"folding {k}", "auto"): ("auto", dataset, group, folds_of(dataset.groups(group), 5, k))
        for k in range(options.coverage)
    }
    runs = list(try_all(units, options.jobs, progress).values())
    return {"rows": dataset.n_rows, **summarise_coverage(runs)}


def try_all(units: dict[tuple, tuple], n_jobs: int, progress: Progress) -> dict[tuple, dict]:
    """Return the figures of every unit, which are the arguments of `try_member`."""
    found = {}
    for label, figures in each(units, n_jobs):
        found[label] = figures
        _, dataset, _, folds = units[label]
        progress.done(dataset.n_rows * len(folds))
        progress.say(f"{', '.join(label)} done")
    return {label: found[label] for label in units}


def each(units: dict[tuple, tuple], n_jobs: int) -> Iterator[tuple[tuple, dict[str, float]]]:
    """Yield the figures of the units as they are done."""
    if n_jobs == 1:
        yield from ((label, try_quietly(*unit)) for label, unit in units.items())
        return
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(try_quietly, *unit): label for label, unit in units.items()}
        yield from ((futures[future], future.result()) for future in as_completed(futures))


def try_quietly(*unit: object) -> dict[str, float]:
    warnings.simplefilter("ignore", PacelineWarning)
    return try_member(*unit)


def members_of(options: argparse.Namespace, parser: argparse.ArgumentParser) -> list[str]:
    if options.members is None:
        return [*USUAL, *(MORE if options.all else ())]
    names = [name.strip() for name in options.members.split(",")]
    known = (*USUAL, *MORE, *OPTIONAL)
    for name in names:
        if name not in known:
            parser.error(f"no member is called {name!r}; there are {', '.join(known)}.")
    return names


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--foldings", type=int, default=5)
    parser.add_argument("--only", action="append", help="Name of a set; may be given again.")
    parser.add_argument("--members", help=f"Who: {','.join((*USUAL, *MORE, *OPTIONAL))}.")
    parser.add_argument("--all", action="store_true", help="The generic form and Extra-P too.")
    parser.add_argument("--coverage", type=int, metavar="N", help="Only `auto`, N foldings.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes; seconds then grow.")
    parser.add_argument("-o", "--output", type=Path, help="Write the figures as JSON.")
    parser.add_argument("--add", action="store_true", help="Keep what else is in that file.")
    options = parser.parse_args()
    options.members = members_of(options, parser)
    return options


def paths_of(options: argparse.Namespace) -> list[Path]:
    paths = [p for p in sorted(options.folder.glob("*.csv")) if p.with_suffix(".toml").exists()]
    return [p for p in paths if not options.only or p.stem in options.only]


def work_of(loaded: dict[str, tuple[Dataset, dict]], options: argparse.Namespace) -> int:
    """Return the rows of all fits, which is about what their time goes with."""
    total = 0
    for dataset, roles in loaded.values():
        n_fits = (options.coverage or options.foldings) * N_FOLDS
        n_fits += "scale_out" in roles and not options.coverage
        total += dataset.n_rows * n_fits * (1 if options.coverage else len(options.members))
    return total


def main() -> None:
    options = parse()
    loaded = {path.stem: load(path) for path in paths_of(options)}
    progress, results = Progress(work_of(loaded, options)), {}
    for name, (dataset, roles) in loaded.items():
        progress.name = name
        if options.coverage:
            results[name] = coverage_of(dataset, roles, options, progress)
        else:
            results[name] = run_set(dataset, roles, options, progress)
            print(text_table(name, results[name]), flush=True)
        write(results, options)
    print(coverage_table(results) if options.coverage else geometric_means(results)[1])


def write(results: dict, options: argparse.Namespace) -> None:
    if not options.output:
        return
    if options.add and not options.coverage:
        results = add(results, options.output, OTHERS)
    part = "coverage" if options.coverage else "accuracy"
    n_foldings = options.coverage or options.foldings
    figures = {"n_foldings": n_foldings, "n_jobs": options.jobs, "sets": results}
    if not options.coverage:
        figures["geometric_means"] = geometric_means(results)[0]
    record = {"schema": "paceline/benchmark/1", "part": part, **describe_machine()}
    record["figures"] = figures
    options.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
