import json
import math

import numpy as np
import pytest

from paceline.errors import InvalidInputError
from paceline.estimators._metrics import Scores, noise_floor, score


def test_scores_are_those_computed_by_hand():
    scores = score([1.0, 2.0, 4.0], [1.5, 1.0, 5.0])
    assert scores.mape == pytest.approx((0.5 + 0.5 + 0.25) / 3)
    assert scores.median_ape == pytest.approx(0.5)
    assert scores.mae_s == pytest.approx(2.5 / 3)
    assert scores.rmse_s == pytest.approx(math.sqrt(2.25 / 3))
    mean = 7 / 3
    total = (1 - mean) ** 2 + (2 - mean) ** 2 + (4 - mean) ** 2
    assert scores.r2 == pytest.approx(1 - 2.25 / total)


def test_the_measured_time_is_the_denominator():
    assert score([1.0], [2.0]).mape == 1.0
    assert score([2.0], [1.0]).mape == 0.5


def test_a_perfect_prediction_has_no_error():
    assert score([1.0, 2.0], [1.0, 2.0]).to_dict() == {
        "mape": 0.0,
        "median_ape": 0.0,
        "mae_s": 0.0,
        "rmse_s": 0.0,
        "r2": 1.0,
    }


@pytest.mark.parametrize(("predicted", "r2"), [([2.0, 2.0], 1.0), ([1.0, 3.0], 0.0)])
def test_constant_times_are_explained_only_when_met(predicted, r2):
    assert score([2.0, 2.0], predicted).r2 == r2


def test_scores_that_overflow_stay_readable_as_json():
    scores = score([1.0, 2.0], [1.0, 1e308])
    assert scores.rmse_s == math.inf
    assert json.loads(json.dumps(scores.to_dict(), allow_nan=False))["rmse_s"] is None


@pytest.mark.parametrize(
    ("measured", "predicted", "message"),
    [
        ([], [], "got none"),
        ([1.0], [1.0, 2.0], "must hold"),
        ([0.0], [1.0], "positive"),
        ([1.0, 2.0], [1.0, np.nan], "row 2"),
    ],
)
def test_what_cannot_be_scored_is_refused(measured, predicted, message):
    with pytest.raises(InvalidInputError, match=message):
        score(measured, predicted)


def test_scores_have_no_hidden_fields():
    assert list(Scores.__dataclass_fields__) == list(score([1.0], [1.0]).to_dict())


def test_the_noise_floor_is_the_deviation_of_repeats_from_their_mean():
    times = [0.9, 1.1, 3.0, 5.0, 2.0, 2.0, 2.0, 7.0]
    groups = ["a", "a", "b", "b", "c", "c", "c", "alone"]
    expected = math.sqrt(2) * (0.1 + 0.1 + 0.25 + 0.25) / 7  # the three of c do not deviate
    assert noise_floor(times, groups) == pytest.approx(expected)


@pytest.mark.parametrize("n_repeats", [2, 3, 6])
def test_the_noise_floor_is_what_a_perfect_model_would_score(n_repeats):
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.uniform(1, 9, 4000), n_repeats)
    times = truth * np.exp(0.05 * rng.standard_normal(len(truth)))
    groups = np.arange(4000).repeat(n_repeats)
    assert noise_floor(times, groups) == pytest.approx(score(times, truth).mape, rel=0.05)


def test_without_repeats_there_is_no_noise_floor():
    assert noise_floor([1.0, 2.0], [0, 1]) is None
