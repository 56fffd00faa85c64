import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.dataset import Dataset
from paceline.errors import InvalidInputError
from paceline.estimators._folds import folds_of, holdout_of

LABELS = st.lists(st.integers(0, 12), min_size=2, max_size=80).filter(lambda x: len(set(x)) > 1)
SEEDS = st.integers(0, 2**32)


@given(groups=LABELS, n_folds=st.integers(2, 9), seed=SEEDS)
def test_every_row_is_tested_once_and_groups_stay_whole(groups, n_folds, seed):
    folds = folds_of(groups, n_folds, seed)
    labels = np.array(groups)
    assert len(folds) == min(n_folds, len(set(groups)))
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(groups)))
    for train, test in folds:
        assert len(train) and len(test)
        assert sorted([*train, *test]) == list(range(len(groups)))
        assert not set(labels[train]) & set(labels[test])


@given(groups=LABELS, n_folds=st.integers(2, 9), seed=SEEDS)
def test_folds_differ_by_no_more_rows_than_the_largest_group_has(groups, n_folds, seed):
    sizes = [len(test) for _, test in folds_of(groups, n_folds, seed)]
    assert max(sizes) - min(sizes) <= max(np.bincount(groups))


@given(groups=LABELS, share=st.floats(0.05, 0.95), seed=SEEDS)
def test_a_holdout_leaves_something_on_both_sides_and_groups_whole(groups, share, seed):
    train, test = holdout_of(groups, share, seed)
    labels = np.array(groups)
    assert len(train) and len(test)
    assert sorted([*train, *test]) == list(range(len(groups)))
    assert not set(labels[train]) & set(labels[test])


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_same_seed_gives_the_same_folds_and_another_one_others(seed):
    first, again, other = (folds_of(range(100), 5, s) for s in (seed, seed, seed + 1))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(first, other, strict=True))


def test_rows_of_their_own_are_dealt_evenly():
    assert {len(test) for _, test in folds_of(range(100), 5)} == {20}


def test_a_holdout_is_as_large_as_asked_when_rows_are_their_own_groups():
    assert len(holdout_of(range(1000), 0.3)[1]) == 300


def test_a_dataset_is_folded_by_its_configurations():
    frame = pd.DataFrame({"n_devices": [1, 2, 4, 8] * 3, "time_s": np.arange(1.0, 13.0)})
    for _, test in folds_of(Dataset.from_frame(frame), 4):
        assert frame["n_devices"].iloc[test].nunique() == 1


def test_labels_may_be_text_with_gaps():
    folds = folds_of(["a", None, "b", None], 3)
    assert sorted(test.tolist() for _, test in folds) == [[0], [1, 3], [2]]


@pytest.mark.parametrize("groups", [[1, 1, 1], []])
def test_one_group_cannot_be_held_out(groups):
    with pytest.raises(InvalidInputError, match="At least 2 groups"):
        folds_of(groups)


def test_one_fold_is_refused():
    with pytest.raises(InvalidInputError, match="n_folds >= 2"):
        folds_of([1, 2], 1)


@pytest.mark.parametrize("share", [0.0, 1.0, 3.0])
def test_a_share_must_leave_rows_on_both_sides(share):
    with pytest.raises(InvalidInputError, match="0 < holdout < 1"):
        holdout_of([1, 2], share)
