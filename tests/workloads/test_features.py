"""Columns that follow from the layers, for a whole table of trials."""

import pandas as pd
import pytest

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import load_space
from paceline.workloads import (
    LAYER_FEATURES,
    layer_features,
    load_workload,
    sample_buildable,
    shaping_parameters,
)


def trials(n: int = 40) -> pd.DataFrame:
    space = load_space("table_4_1")
    rows, _ = sample_buildable(load_workload("lenet5"), space, n, random_state=0)
    return pd.DataFrame([dict(row) for row in rows])


def test_every_row_has_what_the_workload_says_of_it() -> None:
    table = trials().rename(columns={"global_batch": "device_batch"})
    table["device_batch"] = range(1, len(table) + 1)
    derived = layer_features(table, "lenet5")
    assert list(derived.columns) == list(LAYER_FEATURES)
    workload = load_workload("lenet5")
    known = [p.name for p in workload.parameters if p.name in table]
    for i in range(len(table)):
        values = table.loc[i, known].to_dict()
        expected = workload.features(values, int(table["device_batch"][i]))
        assert derived.loc[i].to_dict() == expected


def test_a_global_batch_is_divided_among_the_devices() -> None:
    table = pd.DataFrame({"filters": [8, 8, 16], "n_devices": [1, 4, 4], "global_batch": [64] * 3})
    derived = layer_features(table, "lenet5")
    alone = layer_features(table.assign(device_batch=[64, 16, 16]), "lenet5")
    pd.testing.assert_frame_equal(derived, alone)
    assert derived["forward_flop"][0] == 4 * derived["forward_flop"][1]
    assert derived["weight_bytes"][0] == derived["weight_bytes"][1]


def test_rows_of_several_workloads_take_their_own_layers_and_parameters() -> None:
    table = pd.DataFrame(
        {"workload": ["mlp", "autoencoder"] * 2, "width": [64, 64, 128, 128], "device_batch": 1}
    )
    derived = layer_features(table)
    for i, name in enumerate(table["workload"]):
        values = {"width": int(table["width"][i])}
        assert derived.loc[i].to_dict() == load_workload(name).features(values)


def test_the_index_of_the_rows_is_kept() -> None:
    table = pd.DataFrame({"filters": [8, 16], "device_batch": 2}, index=[7, 3])
    assert layer_features(table, "lenet5").index.tolist() == [7, 3]


def test_a_row_that_cannot_be_built_is_named_with_its_reason() -> None:
    table = pd.DataFrame({"kernel_size": [3, 3, 5], "stride": [1, 2, 3], "device_batch": 8})
    with pytest.raises(
        InvalidInputError, match=r"row 3 is not: conv2: kernel 5.*Leave the row out"
    ):
        layer_features(table, "lenet5")


def test_a_value_that_is_no_count_is_named_with_its_row() -> None:
    table = pd.DataFrame({"filters": [8, 8.5], "device_batch": 8})
    with pytest.raises(InvalidInputError, match=r"row 2 is not: `filters` must be a positive"):
        layer_features(table, "lenet5")


def test_without_a_batch_nothing_can_be_said_of_a_step() -> None:
    with pytest.raises(InvalidInputError, match="`device_batch`, or `global_batch`"):
        layer_features(pd.DataFrame({"filters": [8, 16]}), "lenet5")


def test_an_unknown_workload_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'lenet5'"):
        layer_features(pd.DataFrame({"filters": [8], "device_batch": 8}), "lenet")


def test_what_shapes_layers_is_told_from_what_does_not() -> None:
    table = trials().assign(device_batch=8)
    assert set(shaping_parameters(table, "lenet5")) == {
        "kernel_size",
        "pool_size",
        "filters",
        "stride",
        "padding",
        "dataset",
    }
