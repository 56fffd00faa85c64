"""A trial with what came of it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.dataset import Observation
from paceline.errors import InvalidInputError

times = st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=5)


def test_the_time_is_the_median_of_the_repeats() -> None:
    assert Observation(values={}, times_s=(5.0, 1.0, 2.0)).time_s == 2.0
    assert Observation(values={}, times_s=(4.0, 1.0)).time_s == 2.5


def test_a_failed_trial_has_a_reason_and_no_time() -> None:
    failed = Observation(values={"n_devices": 2}, reason="out of memory")
    assert failed.failed
    assert math.isnan(failed.time_s)
    assert str(failed) == "n_devices=2: failed, out of memory"


@given(times)
def test_plain_data_give_an_equal_observation_back(times_s: list[float]) -> None:
    observation = Observation(
        values={"a": 1, "b": "x"}, times_s=tuple(times_s), provenance={"host": "h"}
    )
    assert Observation.from_dict(observation.to_dict()) == observation


@pytest.mark.parametrize("time_s", [0.0, -1.0, math.nan, math.inf])
def test_a_time_must_be_positive(time_s: float) -> None:
    with pytest.raises(InvalidInputError, match="`times_s` must be positive"):
        Observation(values={}, times_s=(1.0, time_s))


@pytest.mark.parametrize(("times_s", "reason"), [((), ""), ((1.0,), "crashed")])
def test_there_are_times_or_a_reason_but_not_both(times_s: tuple[float, ...], reason: str) -> None:
    with pytest.raises(InvalidInputError, match="either `times_s` or the `reason`"):
        Observation(values={}, times_s=times_s, reason=reason)
