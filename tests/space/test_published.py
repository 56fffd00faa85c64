"""The spaces of published studies."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import SchemaError, UnknownNameError
from paceline.space import Space, list_spaces, load_space


def test_the_thesis_spaces_are_shipped() -> None:
    assert list_spaces() == ["table_4_1", "table_5_1"]


@pytest.mark.parametrize("name", ["table_4_1", "table_5_1"])
def test_a_published_space_carries_its_name_and_source(name: str) -> None:
    space = load_space(name)
    assert space.name == name
    assert f"table {name[6:].replace('_', '.')}" in space.source
    assert Space.from_toml(space.to_toml()) == space


def test_table_4_1_is_as_printed() -> None:
    space = load_space("table_4_1")
    assert {p.name: p.values for p in space.parameters} == {
        "kernel_size": (2, 3, 4, 5),
        "pool_size": (2, 3, 4, 5),
        "activation": ("relu", "tanh", "sigmoid"),
        "optimizer": ("adam", "sgd"),
        "dataset": ("mnist", "fashion-mnist", "cifar10"),
        "filters": (4, 8, 16, 32, 64),
        "learning_rate": (0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6),
        "padding": ("valid", "same"),
        "stride": (1, 2, 3),
        "dropout": (0.2, 0.5, 0.8),
        "n_devices": (1, 2, 3),
        "device_batch": (8, 16, 32, 64, 128),
    }
    assert space.extrinsic == ("n_devices", "device_batch")
    assert "2305.11665" in space.source


def test_table_5_1_is_as_printed() -> None:
    space = load_space("table_5_1")
    assert {p.name: p.values for p in space.parameters} == {
        "kernel_size": (2, 3, 4, 5),
        "pool_size": (1,),
        "activation": ("relu", "tanh", "sigmoid"),
        "optimizer": ("adam", "sgd"),
        "dataset": ("adni",),
        "filters": (16, 32, 64),
        "learning_rate": (0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6),
        "padding": ("valid", "same"),
        "stride": (2,),
        "n_devices": (1, 2, 3),
        "device_batch": (1, 2, 3, 4),
    }
    assert space.extrinsic == ("n_devices", "device_batch")


def test_a_space_of_ones_own_is_loaded_by_path(tmp_path: Path) -> None:
    space = load_space("table_5_1")
    path = tmp_path / "own.toml"
    path.write_text(space.to_toml(), encoding="utf-8")
    assert load_space(path) == load_space(str(path)) == space


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'table_4_1'"):
        load_space("table_41")


def test_a_file_that_is_no_space_is_named(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text("a = 1\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"study\.toml"):
        load_space(path)
