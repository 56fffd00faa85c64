from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from paceline.dataset import TimeBasis
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import load_space
from paceline.validation import generate_study, published_expression


@pytest.mark.parametrize("framework", ["tensorflow", "mxnet"])
def test_a_study_has_roles_kinds_and_basis_of_table_4_1(framework: str) -> None:
    study = generate_study(framework, n_rows=50)
    space = load_space("table_4_1")
    assert tuple(study.dataset.X.columns) == space.names
    assert len(study.dataset.X.columns) == 12
    assert tuple(study.dataset.intrinsic) == space.intrinsic
    assert tuple(study.dataset.extrinsic) == space.extrinsic
    assert study.dataset.categorical == ["activation", "optimizer", "dataset", "padding"]
    assert study.dataset.basis == TimeBasis(time_per="epoch", batch="device_batch")
    assert study.truth == published_expression(framework)


@pytest.mark.parametrize("random_state", [0, 1, 17])
def test_rows_are_those_that_the_space_draws(random_state: int) -> None:
    study = generate_study(n_rows=200, random_state=random_state)
    drawn = pd.DataFrame(load_space("table_4_1").sample(200, random_state=random_state))
    assert study.dataset.X.to_dict("records") == drawn.to_dict("records")


def test_the_same_seed_gives_the_same_study_and_another_another() -> None:
    first, again, other = (generate_study(n_rows=80, random_state=s) for s in (3, 3, 4))
    pd.testing.assert_frame_equal(first.dataset.X, again.dataset.X)
    pd.testing.assert_series_equal(first.dataset.y, again.dataset.y)
    assert not first.dataset.y.equals(other.dataset.y)
    assert not first.dataset.X.equals(other.dataset.X)


def test_without_noise_the_times_are_the_truth() -> None:
    study = generate_study("mxnet", n_rows=300, noise=0.0)
    np.testing.assert_array_equal(study.dataset.y, study.true_s)
    np.testing.assert_array_equal(study.truth.evaluate(study.dataset.X), study.true_s)


def test_rows_and_truth_do_not_depend_on_the_noise() -> None:
    quiet, loud = (generate_study(n_rows=100, noise=noise) for noise in (0.0, 0.5))
    pd.testing.assert_frame_equal(quiet.dataset.X, loud.dataset.X)
    np.testing.assert_array_equal(quiet.true_s, loud.true_s)


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.3])
@pytest.mark.parametrize("random_state", [0, 1, 2])
def test_the_noise_is_log_normal_and_of_the_asked_size(noise: float, random_state: int) -> None:
    study = generate_study(n_rows=20_000, noise=noise, random_state=random_state)
    log = np.log(study.dataset.y / study.true_s)
    assert log.std() == pytest.approx(noise, rel=0.03)
    assert abs(log.mean()) < 4 * noise / np.sqrt(20_000)


def test_the_noise_does_not_follow_the_parameters() -> None:
    study = generate_study(n_rows=20_000)
    log = np.log(study.dataset.y / study.true_s)
    numeric = study.dataset.X[study.dataset.numeric]
    assert numeric.corrwith(log, method="spearman").abs().max() < 0.03


def test_every_value_is_drawn_about_equally_often() -> None:
    study = generate_study(n_rows=20_000)
    for parameter in load_space("table_4_1").parameters:
        shares = study.dataset.X[parameter.name].value_counts(normalize=True)
        assert set(shares.index) == set(parameter.values)
        assert np.allclose(shares, 1 / len(parameter.values), atol=0.02)


def test_many_rows_need_no_list_of_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.space.Space.sample", None)
    assert generate_study(n_rows=100_000).dataset.n_rows == 100_000


def test_a_single_row_keeps_all_parameters() -> None:
    assert generate_study(n_rows=1).dataset.X.shape == (1, 12)


def test_the_study_says_where_it_comes_from() -> None:
    study = generate_study("mxnet", n_rows=5, noise=0.1, random_state=7)
    assert study.dataset.provenance == {
        "generated_from": "thesis table 4.3, mxnet",
        "space": "table_4_1",
        "noise": 0.1,
        "random_state": 7,
    }


def test_pytorch_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidInputError, match=r"dropout, -5.00.*padding valid, -0.57"):
        generate_study("pytorch")


def test_an_unknown_framework_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'mxnet'"):
        generate_study("mxnett")


@pytest.mark.parametrize("n_rows", [0, -3, 2.5, True])
def test_a_number_of_rows_must_be_positive_and_whole(n_rows: int) -> None:
    with pytest.raises(InvalidInputError, match="`n_rows` must be a positive whole number"):
        generate_study(n_rows=n_rows)


@pytest.mark.parametrize("noise", [-0.1, float("nan"), float("inf")])
def test_the_noise_must_be_finite_and_not_negative(noise: float) -> None:
    with pytest.raises(InvalidInputError, match="`noise >= 0`"):
        generate_study(noise=noise)


@pytest.mark.parametrize("random_state", [-1, 0.5, None])
def test_a_seed_must_be_a_whole_number(random_state: int) -> None:
    with pytest.raises(InvalidInputError, match="`random_state` must be a whole number"):
        generate_study(random_state=random_state)
