import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.measurement import Protocol, combine_lives, steady_steps

times = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30)


@given(times)
def test_steady_steps_are_the_end_of_the_run_and_at_least_half_of_it(step_s: list[float]) -> None:
    steady = steady_steps(step_s)
    assert list(steady) == step_s[len(step_s) - len(steady) :]
    assert len(steady) >= len(step_s) / 2


def test_a_slow_beginning_is_dropped_and_a_slow_middle_kept() -> None:
    assert steady_steps([5.0, 3.0, 1.0, 1.0, 1.0, 1.0]) == (1.0,) * 4
    assert steady_steps([1.0, 1.0, 5.0, 1.0]) == (1.0, 1.0, 5.0, 1.0)


@given(times, times)
def test_lives_are_combined_with_all_their_steady_steps(a: list[float], b: list[float]) -> None:
    measured = combine_lives(Protocol(), [a, b])
    assert measured.times_s == steady_steps(a) + steady_steps(b)
    assert measured.minimum_s <= measured.median_s <= max(a + b)
    assert measured.disagreement >= 0


def test_lives_that_differ_wildly_are_a_disturbance() -> None:
    protocol = Protocol(disagreement=0.5)
    assert not combine_lives(protocol, [[1.0], [1.4]]).disturbed
    assert "differ by 60%" in combine_lives(protocol, [[1.0], [1.6]]).disturbed


def test_a_jump_of_the_load_is_a_disturbance() -> None:
    protocol = Protocol(load_jump=4.0)
    assert not combine_lives(protocol, [[1.0], [1.0]], [0.5, 3.0]).disturbed
    assert "load changed by 5.5" in combine_lives(protocol, [[1.0], [1.0]], [0.5, 6.0]).disturbed


def test_a_protocol_of_epochs_keeps_every_step() -> None:
    life = [9.0, 1.0, 1.0, 1.0]
    assert combine_lives(Protocol(epochs=2), [life, life]).times_s == tuple(life * 2)


@pytest.mark.parametrize("lives", [2, 3])
def test_the_median_of_each_life_is_kept(lives: int) -> None:
    measured = combine_lives(Protocol(lives=lives), [[float(i + 1)] * 3 for i in range(lives)])
    assert measured.medians_s == tuple(float(i + 1) for i in range(lives))
