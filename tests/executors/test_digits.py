"""Late gradients of the unlocked schedule learn a real task as well as serial training."""

import importlib
import sys
from pathlib import Path
from statistics import fmean

import pytest

from paceline.executors import load_executor

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SEEDS = range(2)
N_STEPS = 400  # some 19 epochs


@pytest.fixture(scope="module")
def digits():
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("digits")
    sys.path.remove(str(BENCHMARKS))


def test_late_gradients_cost_less_than_a_percentage_point_of_accuracy(digits, tmp_path):
    data = digits.write_digits(tmp_path)
    executor = load_executor("torch").warm()
    try:
        serial, late = (
            fmean(digits.accuracies(executor, data, n, SEEDS, N_STEPS)) for n in (1, 3)
        )
    finally:
        executor.close()
    assert serial > 0.96
    assert late > serial - 0.01
    assert digits.staleness(3) == [1, 1, 0]  # updates, by stage
