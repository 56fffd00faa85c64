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


def test_the_noise_floor_is_the_median_over_repeated_configurations():
    times = [0.9, 1.1, 3.0, 5.0, 2.0, 2.0, 2.0, 7.0]
    groups = ["a", "a", "b", "b", "c", "c", "c", "alone"]
    assert noise_floor(times, groups) == pytest.approx(0.1)  # of 0.1, 0.25 and 0


def test_without_repeats_there_is_no_noise_floor():
    assert noise_floor([1.0, 2.0], [0, 1]) is None
