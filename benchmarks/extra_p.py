"""Our performance model normal form beside Extra-P's own, on the same points.

The package `extrap` pins an old NumPy, so it lives in an environment of its own, made at the first
run (PACELINE_EXTRA_P_VENV says where; else in the cache folder). It needs the network then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from paceline.dataset import Dataset, write_extra_p
from paceline.estimators import ExtraPRegressor, NormalForm

REQUIREMENT = "extrap==4.2.5"
PLANTED = 40  # sets of points per kind
NOISE = 0.02

# What Extra-P makes of each file: terms as {parameter: [power, log power]}, and its errors.
ASK = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
from extrap.modelers.model_generator import ModelGenerator
answers = []
for path, negative in json.load(sys.stdin):
    experiment = read_jsonlines_file(path)
    generator = ModelGenerator(experiment)
    modeler = generator.modeler
    getattr(modeler, "single_parameter_modeler", modeler).allow_negative_exponents = negative
    start = time.perf_counter()
    generator.model_all()
    seconds = time.perf_counter() - start
    (model,) = generator.models.values()
    names = [p.name for p in experiment.parameters]
    terms = []
    for term in model.hypothesis.function.compound_terms:
        pairs = getattr(term, "parameter_term_pairs", None) or [(0, term)]
        exponents = {}
        for index, compound in pairs:
            powers = {t.term_type: str(t.exponent) for t in compound.simple_terms}
            exponents[names[index]] = [
                powers.get("polynomial", "0"), powers.get("logarithm", "0")]
        terms.append(exponents)
    points = [tuple(map(float, c)) for c in experiment.coordinates]
    rows = [p[0] if len(p) == 1 else p for p in points]
    predicted = [float(model.hypothesis.function.evaluate(r)) for r in rows]
    answers.append({"terms": terms, "smape": float(model.hypothesis.SMAPE), "points": points,
                    "names": names, "predicted": predicted, "seconds": seconds})
print(json.dumps(answers))
"""


def measure() -> dict[str, object]:
    python = environment()
    if python is None:
        return {"skipped": f"{REQUIREMENT} could not be installed"}
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in KINDS.items():
            sets = [make(np.random.default_rng(seed)) for seed in range(PLANTED)]
            figures[kind] = compare(python, Path(folder), sets)
            print(f"{kind}: {figures[kind]}", flush=True)
    return figures


def environment() -> Path | None:
    """Return the interpreter that has `extrap`, made when it is not there; None, with a line."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "paceline"
    home = Path(os.environ.get("PACELINE_EXTRA_P_VENV", cache / "extra-p"))
    python = home / "bin" / "python"
    probe = [str(python), "-c", "import extrap"]
    if python.exists() and subprocess.run(probe, capture_output=True).returncode == 0:
        return python
    for command in (
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", "--only-binary=extrap", REQUIREMENT],
    ):
        if subprocess.run(command, capture_output=True).returncode != 0:
            print(f"skipped: {REQUIREMENT} could not be installed in {home}")
            return None
    return python


def one_growing(rng: np.random.Generator) -> tuple[Dataset, bool]:
    frame = pd.DataFrame({"p": [4.0, 8, 16, 32, 64, 128]})
    truth = rng.uniform(1, 10) + rng.uniform(0.1, 2) * frame["p"] ** rng.uniform(0.3, 2)
    return noisy(frame, truth, rng), False


def one_shrinking(rng: np.random.Generator) -> tuple[Dataset, bool]:
    frame = pd.DataFrame({"p": [2.0, 4, 8, 16, 32, 64]})
    truth = rng.uniform(1, 5) + rng.uniform(10, 100) * frame["p"] ** -rng.uniform(0.5, 1.5)
    return noisy(frame, truth, rng), True


def two(rng: np.random.Generator) -> tuple[Dataset, bool]:
    frame = grid(x=[4, 8, 16, 32, 64], y=[10, 20, 30, 40, 50])
    first = frame["x"] ** rng.uniform(0.3, 1.5)
    second = frame["y"] ** rng.uniform(0.3, 1.5)
    together = first * second if rng.random() < 0.5 else first + second
    return noisy(frame, rng.uniform(1, 10) + together, rng), False


def three(rng: np.random.Generator) -> tuple[Dataset, bool]:
    frame = grid(x=[4, 8, 16, 32, 64], y=[10, 20, 30, 40, 50], z=[2, 4, 6, 8, 10])
    parts = [frame[name] ** rng.uniform(0.3, 1.5) for name in frame]
    together = parts[0] * parts[1] + parts[2] if rng.random() < 0.5 else np.prod(parts, axis=0)
    return noisy(frame, rng.uniform(1, 10) + together, rng), False


KINDS = {"one growing": one_growing, "one shrinking": one_shrinking, "two": two, "three": three}


def grid(**columns: list[float]) -> pd.DataFrame:
    return pd.DataFrame(list(product(*columns.values())), columns=list(columns), dtype=float)


def noisy(frame: pd.DataFrame, truth: pd.Series, rng: np.random.Generator) -> Dataset:
    times = truth * np.exp(NOISE * rng.standard_normal(len(frame)))
    return Dataset.from_frame(frame.assign(time_s=times), intrinsic=list(frame))


def compare(python: Path, folder: Path, sets: list[tuple[Dataset, bool]]) -> dict[str, float]:
    questions = []
    for i, (dataset, negative) in enumerate(sets):
        write_extra_p(dataset, folder / f"{i}.jsonl")
        questions.append((str(folder / f"{i}.jsonl"), negative))
    asked = [str(python), "-c", ASK]
    done = subprocess.run(asked, input=json.dumps(questions), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip().splitlines()[-1])
    rows = [judge(*s, answer) for s, answer in zip(sets, json.loads(done.stdout), strict=True)]
    table = pd.DataFrame(rows)
    means = {name: round(float(table[name].mean()), 4) for name in table if name != "gap"}
    return {**means, "largest_gap_of_predictions": float(f"{table['gap'].max():.2g}")}


def judge(dataset: Dataset, negative: bool, theirs: dict) -> dict[str, float]:
    start = time.perf_counter()
    model = ExtraPRegressor(negative=negative).fit(dataset.X, dataset.y)
    seconds = time.perf_counter() - start
    points = pd.DataFrame(theirs["points"], columns=theirs["names"])[list(dataset.X)]
    times = points.merge(dataset.X.assign(t=dataset.y), on=list(dataset.X))["t"].to_numpy()
    ours, other = model.predict(points), np.array(theirs["predicted"])
    same = terms_of(model.form_) == {freeze(term) for term in theirs["terms"]}
    return {
        "same_terms": float(same),
        "our_smape": smape(times, ours),
        "extra_p_smape": smape(times, other),
        "our_seconds": seconds,
        "extra_p_seconds": theirs["seconds"],
        "gap": float(np.abs(ours / other - 1).max()) if same else 0.0,
    }


def terms_of(form: NormalForm) -> set[frozenset]:
    terms = [{f.name: (f.power, f.log_power) for f in term.factors} for term in form.terms]
    return {freeze(term) for term in terms}


def freeze(term: dict) -> frozenset:
    return frozenset((name, Fraction(i), Fraction(j)) for name, (i, j) in term.items())


def smape(times: np.ndarray, predicted: np.ndarray) -> float:
    return float(200 * np.mean(np.abs(predicted - times) / (np.abs(times) + np.abs(predicted))))
