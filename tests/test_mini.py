"""The idea in one file holds what it promises."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

MINI = Path(__file__).parents[1] / "docs" / "mini.py"


@pytest.fixture(scope="module")
def mini() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mini", MINI)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mini"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_it_prints_a_formula_its_error_and_an_interval_that_holds() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(MINI)], capture_output=True, text=True, check=True
    )
    printed = done.stdout
    assert "t = " in printed and "(1 - 1/n)" in printed
    own, power_law = (float(x) for x in re.findall(r"([\d.]+)%", printed))
    assert own < 5 < power_law
    time, low, high, truth, promise = (
        float(x) for x in re.findall(r"(?<!90 )\b(\d+\.\d\d)\b(?= to| s)", printed)[-5:]
    )
    assert low < time < high and low < truth < high and promise < low


def test_it_needs_numpy_and_scipy_alone() -> None:
    imports = [n for n in ast.walk(ast.parse(MINI.read_text())) if isinstance(n, ast.ImportFrom)]
    homes = {str(node.module).split(".")[0] for node in imports}
    assert homes <= {"dataclasses", "itertools", "scipy"}
    assert "import paceline" not in MINI.read_text()


def test_a_planted_formula_is_found(mini: ModuleType) -> None:
    rng = np.random.default_rng(1)
    X, _ = mini.measure(60, rng)
    planted = mini.Posynomial(
        np.log([0.3, 1e-7]), np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 0.0]]), (False, False)
    )
    y = planted.predict(X) * rng.lognormal(0, 0.01, len(X))
    found = mini.fit(X, y, (False, False), rng)
    order = np.argsort(found.powers[:, 0])
    assert np.array_equal(found.powers[order], planted.powers)
    assert np.exp(found.log_c[order] - planted.log_c) == pytest.approx([1, 1], rel=0.03)


def test_nine_of_ten_new_times_lie_within_the_interval(mini: ModuleType) -> None:
    rng = np.random.default_rng(2)
    X, y = mini.measure(60, rng)
    form = (False, False, True)
    ratios, model = mini.held_out(X, y, form, rng), mini.fit(X, y, form, rng)
    X_new, y_new = mini.measure(300, rng)
    limits = np.array([mini.interval(model, ratios, X, x) for x in X_new])
    inside = (limits[:, 1] <= y_new) & (y_new <= limits[:, 2])
    assert 0.8 < inside.mean() < 0.99


def test_what_is_chosen_fits_and_nothing_is_sent_on_one_device(mini: ModuleType) -> None:
    net, machine = mini.Network(width=8192), mini.SHEET
    found = mini.choose_strategy(net, machine, 256, 64)
    assert found[0][0] == min(seconds for seconds, _ in found)
    for _, degrees in found:
        assert np.prod(list(degrees.values())) == 64
        assert mini.memory_bytes(net, 256, **degrees) <= machine.memory_bytes
    assert mini.all_reduce_s(1e9, 1, machine) == 0
