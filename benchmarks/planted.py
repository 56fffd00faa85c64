"""Fifty planted expressions: the error of `auto` over the error of the truth itself.

    python benchmarks/planted.py [--n 50] [--first 0] [--form auto] [--noise 0.05]
                                 [--uniform] [-o planted.json]

Each has 1 to 3 terms of three numbers and one label, with powers that Extra-P does not know, and
100 random points with 5 % noise. Fresh points with the same noise judge it; the planted truth
itself on those is the floor. Beside it stands what knowing the terms would give: the planted ones
with all their constants fitted to the 100 points. Points are even in the logarithm, or with
`--uniform` in the numbers themselves.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from paceline.dataset import Dataset
from paceline.errors import PacelineWarning
from paceline.estimators import fit, score
from progress import Progress
from run import describe_machine

N, N_ROWS, N_FRESH, NOISE = 50, 100, 400, 0.05
WANTED = 1.25
LIMITS = {"width": (8.0, 512.0), "length": (0.5, 50.0), "n_devices": (1.0, 64.0)}
LEVELS = ("a", "b", "c")
# Extra-P's powers; a planted one keeps this far from them all
KNOWN = (0.0, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 4 / 5, 1, 5 / 4, 4 / 3, 3 / 2, 5 / 3, 7 / 4, 2)
APART = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Constants of `sum_k exp(c_k + P_k . log x + F_k[level])`."""

    constants: np.ndarray  # terms x 1
    powers: np.ndarray  # terms x numbers
    factors: np.ndarray  # terms x levels, logarithms; the first level's are 0

    def log_times(self, X: pd.DataFrame) -> np.ndarray:
        """Return the logarithm of every row's time."""
        logs = np.log(X[list(LIMITS)].to_numpy(float))
        codes = X["kind"].map(LEVELS.index).to_numpy()
        terms = self.constants + self.powers @ logs.T + self.factors[:, codes]
        return np.logaddexp.reduce(terms, axis=0)

    def free(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which constants there are."""
        return np.ones_like(self.constants, bool), self.powers != 0, self.factors != 0


def power(rng: np.random.Generator) -> float:
    while True:
        found = rng.uniform(-1.2, 2.0)
        if min(abs(found - known) for known in KNOWN) >= APART:
            return found


def plant(rng: np.random.Generator, n_terms: int) -> Planted:
    """Return an expression whose terms are within a factor of seven of each other mid-way."""
    powers = np.array([[power(rng) for _ in LIMITS] for _ in range(n_terms)])
    powers *= rng.random(powers.shape) < 0.7  # a term need not depend on everything
    factors = rng.normal(0.0, 0.5, (n_terms, len(LEVELS))) * [0.0, *[1.0] * (len(LEVELS) - 1)]
    if rng.random() < 0.5:
        factors[:] = factors[0]  # the label acts on the whole time
    middle = np.array([np.sqrt(low * high) for low, high in LIMITS.values()])
    level = np.log(0.01) + rng.uniform(-1, 1, n_terms)
    constants = (level - powers @ np.log(middle))[:, None]
    return Planted(constants=constants, powers=powers, factors=factors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How an expression is tried."""

    form: str = "auto"
    noise: float = NOISE
    is_uniform: bool = False


def draw(truth: Planted, rng: np.random.Generator, n_rows: int, setting: Setting) -> pd.DataFrame:
    columns = {}
    for name, limits in LIMITS.items():
        even_in = np.array(limits) if setting.is_uniform else np.log(limits)
        points = rng.uniform(*even_in, n_rows)
        columns[name] = points if setting.is_uniform else np.exp(points)
    X = pd.DataFrame({name: [float(f"{x:.3g}") for x in c] for name, c in columns.items()})
    X["n_devices"] = X["n_devices"].round().astype(int)
    X["kind"] = rng.choice(LEVELS, n_rows)
    noise = setting.noise * rng.standard_normal(n_rows)
    return X.assign(time_s=np.exp(truth.log_times(X) + noise))


def refit(truth: Planted, frame: pd.DataFrame) -> Planted:
    """Return the planted terms with constants fitted to the rows, from the truth on."""
    masks = truth.free()
    parts = (truth.constants, truth.powers, truth.factors)
    target = np.log(frame["time_s"].to_numpy())

    def rebuilt(x: np.ndarray) -> Planted:
        found, start = [], 0
        for part, mask in zip(parts, masks, strict=True):
            new = part.copy()
            new[mask] = x[start : start + mask.sum()]
            found.append(new)
            start += mask.sum()
        return Planted(constants=found[0], powers=found[1], factors=found[2])

    start = np.concatenate([part[mask] for part, mask in zip(parts, masks, strict=True)])
    done = least_squares(lambda x: rebuilt(x).log_times(frame) - target, start)
    return rebuilt(done.x)


def try_one(seed: int, setting: Setting) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    truth = plant(rng, n_terms=1 + seed % 3)
    frame, fresh = (draw(truth, rng, n, setting) for n in (N_ROWS, N_FRESH))
    start = time.perf_counter()
    result = fit(Dataset.from_frame(frame), form=setting.form, n_seeds=1)
    seconds = time.perf_counter() - start
    measured, found = fresh["time_s"], result.predict(fresh)
    floor = score(measured, np.exp(truth.log_times(fresh))).mape
    inside = (found["lower_s"] <= measured) & (measured <= found["upper_s"])
    expression = result.estimator.expression_
    return {
        "seed": seed,
        "n_terms": len(truth.constants),
        "own_levels": bool(np.ptp(truth.factors, axis=0).any()),
        "ratio": score(measured, found["predicted_s"]).mape / floor,
        "formula": score(measured, expression.evaluate(fresh)).mape / floor,
        "attainable": score(measured, np.exp(refit(truth, frame).log_times(fresh))).mape / floor,
        "coverage": float(inside.mean()),
        "form": result.form,
        "found_terms": len(expression.terms),
        "seconds": seconds,
    }


def summarise(rows: list[dict[str, object]]) -> dict[str, object]:
    table = pd.DataFrame(rows)
    ratios = table["ratio"]
    figures = {
        "mean_ratio": ratios.mean(),
        "quartiles": [float(q) for q in ratios.quantile([0.25, 0.5, 0.75])],
        "worst": ratios.max(),
        "mean_formula": table["formula"].mean(),
        "mean_attainable": table["attainable"].mean(),
        "coverage": table["coverage"].mean(),
        "mean_seconds": table["seconds"].mean(),
        "by_terms": {
            str(k): float(m) for k, m in table.groupby("n_terms")["ratio"].mean().items()
        },
    }
    return {k: float(v) if isinstance(v, float) else v for k, v in figures.items()}


def show(figures: dict[str, object], rows: list[dict[str, object]]) -> None:
    table = pd.DataFrame(rows).sort_values("ratio", ascending=False)
    print(table.head(12).to_string(index=False, float_format="{:.3f}".format))
    low, middle, high = figures["quartiles"]
    verdict = "holds" if figures["mean_ratio"] <= WANTED else "does not hold"
    print(
        f"{len(rows)} planted expressions: error over the floor {figures['mean_ratio']:.3f} in "
        f"the mean (wanted {WANTED}: {verdict}), quartiles {low:.3f} {middle:.3f} {high:.3f}, "
        f"worst {figures['worst']:.3f}"
    )
    by_terms = ", ".join(f"{k}: {m:.3f}" for k, m in figures["by_terms"].items())
    print(
        f"by number of planted terms {by_terms}; formula alone {figures['mean_formula']:.3f}; "
        f"planted terms refitted {figures['mean_attainable']:.3f}; coverage of 90 % "
        f"{figures['coverage']:.3f}; {figures['mean_seconds']:.1f} s a fit"
    )


def measure(
    n: int = N,
    first: int = 0,
    setting: Setting = Setting(),  # noqa: B008  # it is frozen
) -> dict[str, object]:
    warnings.simplefilter("ignore", PacelineWarning)
    rows, progress = [], Progress(n)
    progress.name = "planted"
    for seed in range(first, first + n):
        progress.say(f"expression {seed}")
        rows.append(try_one(seed, setting))
        progress.done(1)
    figures = summarise(rows)
    show(figures, rows)
    return {**figures, "wanted": WANTED, "expressions": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=N)
    parser.add_argument("--first", type=int, default=0, help="Number of the first expression.")
    parser.add_argument("--form", default="auto")
    parser.add_argument("--noise", type=float, default=NOISE)
    parser.add_argument("--uniform", action="store_true", help="Points even in the numbers.")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    setting = Setting(form=options.form, noise=options.noise, is_uniform=options.uniform)
    figures = measure(options.n, options.first, setting)
    if options.output:
        record = {"schema": "paceline/benchmark/1", "part": "planted", **describe_machine()}
        record["figures"] = figures
        options.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
