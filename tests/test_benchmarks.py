"""The tables of the benchmarks are what was recorded."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RECORDED = sorted((BENCHMARKS / "recorded").glob("*.json"))


def load(name: str) -> Iterator[ModuleType]:
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module(name)
    sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def tables() -> Iterator[ModuleType]:
    yield from load("accuracy_table")


@pytest.fixture(scope="module")
def planted() -> Iterator[ModuleType]:
    yield from load("planted")


@pytest.fixture(scope="module")
def figures() -> Iterator[ModuleType]:
    yield from load("accuracy_figures")


@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_the_tables_of_the_readme_are_made_from_what_was_recorded(
    path: Path, tables: ModuleType
) -> None:
    record, text = json.loads(path.read_text()), (BENCHMARKS / "README.md").read_text()
    assert tables.put_into(text, record["part"], tables.table_of(record)) == text


def test_a_table_replaces_only_what_stands_between_its_marks(tables: ModuleType) -> None:
    text = "before\n<!-- planted -->\nold\n<!-- end of planted -->\nafter\n"
    found = tables.put_into(text, "planted", "| new |")
    assert found == ("before\n<!-- planted -->\n\n| new |\n\n<!-- end of planted -->\nafter\n")
    with pytest.raises(SystemExit, match="must be there"):
        tables.put_into(text, "coverage", "| new |")


def test_coverage_is_judged_by_the_number_of_rows(tables: ModuleType) -> None:
    found = {"rows": 200, "coverage": 0.945, "spread": 0.01}
    assert "holds" in tables.coverage_table({"small": found})
    assert "misses" in tables.coverage_table({"large": {**found, "rows": 5000}})


def test_planted_powers_are_none_of_extra_p(planted: ModuleType) -> None:
    for seed in range(30):
        truth = planted.plant(np.random.default_rng(seed), n_terms=3)
        for power in truth.powers[truth.powers != 0]:
            assert min(abs(power - known) for known in planted.KNOWN) >= planted.APART


def test_constants_fitted_to_rows_without_noise_are_the_planted_ones(planted: ModuleType) -> None:
    rng = np.random.default_rng(0)
    truth = planted.plant(rng, n_terms=2)
    frame = planted.draw(truth, rng, 100, planted.Setting(noise=0.0))
    assert np.allclose(planted.refit(truth, frame).powers, truth.powers)


def test_members_added_to_a_file_are_rated_against_the_best_other(
    tmp_path: Path, figures: ModuleType
) -> None:
    first = {"set": {"rows": 9, "floor": None, "folds": {"forest": {"mean": 0.2}}}}
    second = {"set": {"rows": 9, "floor": None, "folds": {"auto": {"mean": 0.1}}}}
    path = tmp_path / "figures.json"
    path.write_text(json.dumps({"figures": {"sets": figures.add(first, path, ["forest"])}}))
    folds = figures.add(second, path, ["forest"])["set"]["folds"]
    assert folds["auto"]["ratio"] == 0.5 and folds["forest"]["ratio"] == 1.0
