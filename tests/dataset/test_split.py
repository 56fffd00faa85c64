"""Every row is fitted or kept, never both."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError, UnknownNameError


def make(n_rows: int, n_groups: int = 4) -> Dataset:
    frame = pd.DataFrame(
        {
            "row": [float(i + 1) for i in range(n_rows)],
            "n_devices": [2.0 ** (i % 5) for i in range(n_rows)],
            "model": [f"m{i % n_groups}" for i in range(n_rows)],
            "time_s": [1.0 + i for i in range(n_rows)],
        }
    )
    return Dataset.from_frame(frame, intrinsic=["row"], extrinsic=["n_devices"])


def times(dataset: Dataset) -> set[float]:
    return set(dataset.y)


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_random_share_is_disjoint_and_complete(n_rows: int, share: float, seed: int) -> None:
    n_fit = round(share * n_rows)
    assume(0 < n_fit < n_rows)
    whole = make(n_rows)
    fit, rest = whole.split(share=share, random_state=seed)
    assert len(fit) == n_fit
    assert not times(fit) & times(rest)
    assert times(fit) | times(rest) == times(whole)


@given(st.integers(2, 60), st.data())
def test_a_number_of_rows_is_fitted(n_rows: int, data: st.DataObject) -> None:
    n_fit = data.draw(st.integers(1, n_rows - 1))
    whole = make(n_rows)
    fit, rest = whole.split(n_fit=n_fit)
    assert (len(fit), len(rest)) == (n_fit, n_rows - n_fit)
    assert times(fit) | times(rest) == times(whole)


@given(st.integers(8, 60), st.integers(2, 8), st.integers(0, 5))
def test_groups_stay_whole(n_rows: int, n_groups: int, seed: int) -> None:
    whole = make(n_rows, n_groups)
    fit, rest = whole.split(share=0.5, group="model", random_state=seed)
    groups = set(fit.groups("model")), set(rest.groups("model"))
    assert not groups[0] & groups[1]
    assert len(groups[0]) == round(0.5 * n_groups)
    assert times(fit) | times(rest) == times(whole)


@given(st.integers(6, 60), st.sampled_from([1, 2, 4, 8]))
def test_a_split_by_scale_fits_what_is_small(n_rows: int, limit: int) -> None:
    whole = make(n_rows)
    fit, rest = whole.split(up_to={"n_devices": limit})
    assert fit.X["n_devices"].max() <= limit < rest.X["n_devices"].min()
    assert times(fit) | times(rest) == times(whole)


def test_a_split_by_two_scales_fits_what_is_small_in_both() -> None:
    fit, rest = make(20).split(up_to={"n_devices": 2, "row": 10})
    assert set(fit.y) == {1.0, 2.0, 6.0, 7.0}
    assert len(rest) == 16


def test_the_same_seed_splits_alike_and_another_does_not() -> None:
    whole = make(50)
    one, same, other = (whole.split(share=0.5, random_state=s)[0] for s in (1, 1, 2))
    assert list(one.y) == list(same.y)
    assert list(one.y) != list(other.y)


def test_rows_keep_their_order() -> None:
    fit, rest = make(30).split(share=0.5)
    assert fit.y.is_monotonic_increasing
    assert rest.y.is_monotonic_increasing


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one of"),
        ({"share": 0.5, "n_fit": 3}, "exactly one of"),
        ({"n_fit": 3, "up_to": {"n_devices": 2}}, "exactly one of"),
        ({"n_fit": 3, "group": "model"}, "exactly one of"),
        ({"group": "model"}, "exactly one of"),
        ({"share": 0}, "between 0 and 1, but got 0"),
        ({"share": 1.0}, "between 0 and 1, but got 1"),
        ({"share": 0.01}, "Both parts of a split must have rows, but got 0 to fit"),
        ({"share": 0.01, "group": "model"}, "Both parts"),
        ({"n_fit": 10}, "Both parts"),
        ({"n_fit": 0}, "positive whole number"),
        ({"n_fit": 2.5}, "positive whole number"),
        ({"up_to": {"n_devices": 100}}, "got 10 to fit and 0 left"),
        ({"up_to": {"n_devices": 0}}, "Both parts"),
        ({"up_to": {"model": 3}}, "`model` is text"),
        ({"up_to": {}}, "at least one column"),
    ],
)
def test_a_split_that_cannot_be_made_says_why(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        make(10).split(**options)


@pytest.mark.parametrize("options", [{"up_to": {"n_device": 2}}, {"share": 0.5, "group": "modle"}])
def test_a_misspelt_column_gets_the_nearest_name(options: dict[str, Any]) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean"):
        make(10).split(**options)
