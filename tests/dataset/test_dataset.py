"""What a dataset knows and how parts of it are taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import Dataset, Observation, TimeBasis
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import Parameter, Space, load_space


def test_a_dataset_lists_its_parameters_by_role_and_kind(dataset: Dataset) -> None:
    assert dataset.intrinsic == ["model", "filters"]
    assert dataset.extrinsic == ["n_devices"]
    assert dataset.numeric == ["filters", "n_devices"]
    assert dataset.categorical == ["model"]
    assert dataset.n_rows == len(dataset) == 6


def test_a_dataset_prints_on_one_line(dataset: Dataset) -> None:
    assert str(dataset) == (
        "6 rows; intrinsic: model, filters; extrinsic: n_devices; time of unknown basis"
    )


def test_parts_that_do_not_fit_are_refused() -> None:
    X, y = pd.DataFrame({"x": [1.0, 2.0]}), pd.Series([1.0, 2.0], name="time_s")
    with pytest.raises(InvalidInputError, match="`roles` must name every column"):
        Dataset(X=X, y=y, roles={}, kinds={"x": "numeric"})
    with pytest.raises(InvalidInputError, match="as many rows"):
        Dataset(X=X, y=y[:1], roles={"x": "intrinsic"}, kinds={"x": "numeric"})
    with pytest.raises(InvalidInputError, match="one place"):
        Dataset(X=X, y=y, roles={"x": "intrinsic"}, kinds={"x": "numeric"}, other=X)


def test_identical_configurations_are_one_group() -> None:
    frame = pd.DataFrame({"m": list("abab"), "x": [1, 2, 1, 3], "time_s": [1, 2, 3, 4]})
    codes = Dataset.from_frame(frame).groups()
    assert codes[0] == codes[2]
    assert len(set(codes)) == 3
    assert np.issubdtype(codes.dtype, np.integer)


def test_groups_come_from_a_parameter_or_another_column(frame: pd.DataFrame) -> None:
    dataset = Dataset.from_frame(frame, group="model")
    assert list(dataset.groups("model")) == list("aabbcc")
    assert list(dataset.groups("filters")) == [4, 8, 16, 4, 8, 16]
    with pytest.raises(UnknownNameError, match="Did you mean 'model'"):
        dataset.groups("modle")


def test_rows_are_taken_by_position_or_mask(frame: pd.DataFrame) -> None:
    dataset = Dataset.from_frame(frame, group="model")
    by_position = dataset.take([3, 1])
    assert list(by_position.y) == [4.0, 2.0]
    assert list(by_position.X.index) == list(by_position.other.index) == [0, 1]
    assert list(by_position.groups("model")) == ["b", "a"]
    assert list(dataset.take(dataset.y > 4).y) == [5.0, 6.0]
    assert by_position.roles == dataset.roles
    assert by_position.notes == dataset.notes


@pytest.mark.parametrize("rows", [[6], [-1], [0.5], [True, False]])
def test_rows_that_are_not_there_cannot_be_taken(dataset: Dataset, rows: list[int]) -> None:
    with pytest.raises(InvalidInputError, match="must"):
        dataset.take(rows)


@pytest.fixture
def space() -> Space:
    return Space(
        name="small",
        parameters=(
            Parameter(name="filters", role="intrinsic", kind="numeric", values=(4, 8)),
            Parameter(name="pool", role="intrinsic", kind="numeric", values=(1,)),
            Parameter(name="act", role="intrinsic", kind="categorical", values=("relu", "tanh")),
            Parameter(name="n_devices", role="extrinsic", kind="numeric", values=(1, 2)),
        ),
    )


def observe(filters: int, act: str, n_devices: int, *times_s: float, **more: str) -> Observation:
    return Observation(
        values={"filters": filters, "pool": 1, "act": act, "n_devices": n_devices},
        times_s=times_s,
        reason=more.pop("reason", ""),
        provenance={"host": "h", **more},
    )


def test_observations_become_rows_with_their_raw_times(space: Space) -> None:
    basis = TimeBasis(time_per="step", batch="device_batch")
    seen = [
        observe(4, "relu", 1, 3.0, 1.0, 2.0, day="1"),
        observe(8, "tanh", 1, reason="out of memory"),
        observe(8, "tanh", 2, 5.0, day="2"),
    ]
    dataset = Dataset.from_observations(space, seen, basis)
    assert list(dataset.y) == [2.0, 5.0]
    assert dataset.times_s == ((3.0, 1.0, 2.0), (5.0,))
    assert dataset.basis == basis
    assert dataset.provenance == {"host": "h"}
    assert dataset.roles == {"filters": "intrinsic", "act": "intrinsic", "n_devices": "extrinsic"}
    assert list(dataset.other["pool"]) == [1.0, 1.0]
    assert "1 observation failed and gave no row." in dataset.notes
    assert "`pool` is constant (1) and was dropped." in dataset.notes


def test_a_dataset_gives_its_observations_back(space: Space) -> None:
    seen = [observe(4, "relu", 1, 3.0, 1.0), observe(8, "tanh", 2, 5.0)]
    dataset = Dataset.from_observations(space, seen, TimeBasis())
    back = dataset.observations()
    assert [o.times_s for o in back] == [(3.0, 1.0), (5.0,)]
    assert back[0].values == {"filters": 4, "act": "relu", "n_devices": 1}


def test_a_dataset_without_raw_times_gives_one_time_each(dataset: Dataset) -> None:
    assert [o.times_s for o in dataset.observations()] == [(t,) for t in dataset.y]


def test_raw_times_stay_with_their_rows(space: Space) -> None:
    seen = [observe(4, "relu", 1, 3.0, 1.0), observe(8, "tanh", 2, 5.0)]
    dataset = Dataset.from_observations(space, seen, TimeBasis())
    assert dataset.take([1]).times_s == ((5.0,),)


def test_observations_must_match_the_space(space: Space) -> None:
    with pytest.raises(InvalidInputError, match="must have a value of `filters`"):
        Dataset.from_observations(space, [Observation(values={}, times_s=(1.0,))], TimeBasis())
    odd = Observation(values={"filter": 4}, times_s=(1.0,))
    with pytest.raises(UnknownNameError, match="Did you mean 'filters'"):
        Dataset.from_observations(space, [odd], TimeBasis())
    text = Observation(
        values={"filters": "4", "pool": 1, "act": "relu", "n_devices": 1}, times_s=(1.0,)
    )
    with pytest.raises(InvalidInputError, match="`filters` must be a number, but got '4'"):
        Dataset.from_observations(space, [text], TimeBasis())
    with pytest.raises(InvalidInputError, match="all 1 failed"):
        Dataset.from_observations(space, [observe(4, "relu", 1, reason="no")], TimeBasis())


def test_a_sample_of_a_published_space_makes_a_dataset() -> None:
    space = load_space("table_5_1")
    seen = [Observation(values=t, times_s=(1.0,)) for t in space.sample(50, design="latin")]
    dataset = Dataset.from_observations(space, seen, TimeBasis())
    constant = {"pool_size", "dataset", "stride"}
    assert set(dataset.X.columns) == set(space.names) - constant
