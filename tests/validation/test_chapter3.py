"""Chapter 3 of the thesis: its digits, and what its equations make of them."""

from __future__ import annotations

import pytest

from paceline.errors import InvalidInputError
from paceline.estimators import (
    exposed_speedup,
    fit_epoch_regression,
    one_device_step_s,
    sgd_step_s,
    ssgd_step_s,
)
from paceline.validation import Facts
from paceline.validation._chapter3 import FRAMEWORKS, NETWORKS, check_chapter3, printed_phases


@pytest.mark.parametrize(
    ("table", "row", "framework", "printed"),
    [
        ("3.2", "cnn_io", "chainer", "0.0004 ± 0.00002"),
        ("3.2", "cnn_forward", "tensorflow", "0.3489 ± 0.0729"),
        ("3.2", "mlp_update", "mxnet", "0.2054 ± 0.00099"),
        ("3.2", "mlp_step", "tensorflow", "1.4371 ± 0.0597"),
        ("3.2", "autoencoder_step", "mxnet", "0.706 ± 0.0258"),
        ("3.3", "mlp_3", "chainer", "0.2345"),
        ("3.3", "autoencoder_2", "tensorflow", "0.7187"),
        ("3.4", "mlp_3", "tensorflow", "1.20"),
        ("3.4", "autoencoder_3", "mxnet", "1.213"),
        ("3.5", "autoencoder_b0", "chainer", "0.000068"),
        ("3.5", "cnn_b1", "mxnet", "5.57483"),
        ("3.5", "cnn_r2", "chainer", "0.99"),
        ("IUCC 10-18", "mlp_b1", "chainer", "-10.1584"),
        ("IUCC III", "cnn_2", "mxnet", "0.3245"),
    ],
)
def test_cells_are_as_printed(
    facts: Facts, table: str, row: str, framework: str, printed: str
) -> None:
    assert str(facts.table(table).cells[row][framework]) == printed


def test_every_cell_of_the_four_tables_is_there(facts: Facts) -> None:
    counts = {"3.2": 63, "3.3": 18, "3.4": 18, "3.5": 36, "IUCC 10-18": 36}
    for table, count in counts.items():
        assert sum(len(row) for row in facts.table(table).cells.values()) == count


def test_the_printed_step_leaves_out_the_division_of_the_batch(facts: Facts) -> None:
    phases = printed_phases(facts, "cnn", "chainer")
    assert sgd_step_s(phases) == pytest.approx(0.4009)
    assert one_device_step_s(phases) == pytest.approx(0.4015)
    assert ssgd_step_s(phases) == sgd_step_s(phases)  # one device aggregates nothing


def test_linear_scaling_of_mxnet_needs_its_aggregation_hidden(facts: Facts) -> None:
    one = printed_phases(facts, "cnn", "mxnet")
    shown = exposed_speedup(2, one, one, comm_exposed_s=0.3245)
    hidden = exposed_speedup(2, one, one, comm_exposed_s=0.0)
    assert shown == pytest.approx(2 * 0.3218 / (0.3218 + 0.3245))
    assert shown < 1
    assert hidden == 2


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_regressions_of_table_3_5_would_be_refused_as_saturated(
    facts: Facts, network: str, framework: str
) -> None:
    cells = facts.table("3.4").cells
    lif = [1.0, *(float(cells[f"{network}_{n}"][framework].number) for n in (2, 3))]
    with pytest.raises(InvalidInputError, match="saturated"):
        fit_epoch_regression([1, 2, 3], lif, [300.0, 320.0, 330.0])


def test_all_checks_of_the_chapter_pass(facts: Facts) -> None:
    checks = check_chapter3(facts)
    assert len(checks) == 14
    assert [str(check) for check in checks if not check.passed] == []
