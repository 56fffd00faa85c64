"""`paceline explain --export` for every form."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paceline.estimators import load_fit


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Times with a wave that no formula of ours knows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"width": rng.uniform(8, 64, 80), "n_devices": rng.integers(1, 9, 80)})
    wave = 1 + 0.4 * np.sin(frame["width"] / 6)
    frame["time_s"] = 0.01 * frame["width"] / frame["n_devices"] * wave
    path = tmp_path_factory.mktemp("exports") / "times.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("form", ["generic", "posynomial", "corrected"])
def test_every_form_can_be_exported_in_every_language(
    run: Callable, data: Path, tmp_path: Path, form: str
) -> None:
    model = tmp_path / "model.json"
    assert run("fit", data, "--form", form, "--seeds", 1, "-o", model).code == 0
    printed = {x: run("explain", model, "--export", x) for x in ("latex", "python", "json")}
    assert [outcome.code for outcome in printed.values()] == [0, 0, 0]
    expression, rows = load_fit(model).estimator.expression_, pd.read_csv(data)
    space: dict[str, Any] = {}
    exec(printed["python"].out, space)
    times = [
        space["time_s"](*(row[n] for n in expression.names)) for row in rows.to_dict("records")
    ]
    assert times == pytest.approx(expression.evaluate(rows), rel=1e-9)
    assert type(expression).from_dict(json.loads(printed["json"].out)) == expression
    assert r"\mathrm{n\_devices}" in printed["latex"].out


def test_the_export_of_a_corrected_fit_says_what_is_left_out(
    run: Callable, data: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.json"
    run("fit", data, "--form", "corrected", "-o", model)
    for language, mark in (("latex", "% "), ("python", "# "), ("json", "")):
        out = run("explain", model, "--export", language).out
        assert f"{mark}The formula of a corrected fit: it leaves the correction out" in out
    run("fit", data, "--form", "posynomial", "-o", model)
    assert "correction" not in run("explain", model, "--export", "python").out


def test_an_export_says_what_derived_columns_are(run: Callable, tmp_path: Path) -> None:
    lenet5 = Path(__file__).parents[2] / "examples" / "lenet5.csv"
    model = tmp_path / "model.json"
    options = ("--form", "posynomial", "--features", "layers", "--workload", "lenet5")
    assert run("fit", lenet5, *options, "-o", model).code == 0
    features = load_fit(model).features
    assert features is not None
    out = run("explain", model, "--export", "python").out
    for name in features.names:
        assert f"# {name}: {features.describe(name)}" in out
    exec(out, {})
