"""Which trials the designs draw."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.space import Parameter, Space, Trial


def make_space(*sizes: int) -> Space:
    return Space(
        name="made",
        parameters=tuple(
            Parameter(name=f"p{i}", role="intrinsic", kind="numeric", values=tuple(range(size)))
            for i, size in enumerate(sizes)
        ),
    )


def frozen(trials: list[Trial]) -> list[tuple[object, ...]]:
    return [tuple(trial.values()) for trial in trials]


sizes = st.lists(st.integers(1, 6), min_size=1, max_size=5)
designs = st.sampled_from(["random", "latin", "grid"])


@given(sizes, st.integers(1, 40), designs, st.integers(0, 5))
def test_a_design_draws_allowed_values_and_as_many_as_asked(
    sizes: list[int], n: int, design: str, seed: int
) -> None:
    space = make_space(*sizes)
    trials = space.sample(n, design=design, random_state=seed)
    assert len(trials) == (min(n, space.n_combinations) if design == "grid" else n)
    for trial in trials:
        assert tuple(trial) == space.names
        assert all(trial[p.name] in p.values for p in space.parameters)


@given(sizes, st.integers(1, 40), designs)
def test_the_same_seed_draws_the_same_trials(sizes: list[int], n: int, design: str) -> None:
    space = make_space(*sizes)
    first = space.sample(n, design=design, random_state=3)
    assert first == space.sample(n, design=design, random_state=3)


@pytest.mark.parametrize("design", ["random", "latin", "grid"])
def test_another_seed_draws_other_trials(design: str) -> None:
    space = make_space(5, 5, 5, 5)
    draws = [frozen(space.sample(20, design=design, random_state=seed)) for seed in range(2)]
    assert draws[0] != draws[1]


@given(sizes, st.integers(1, 60), st.integers(0, 5))
def test_latin_uses_every_value_as_evenly_as_possible(sizes: list[int], n: int, seed: int) -> None:
    space = make_space(*sizes)
    trials = space.sample(n, design="latin", random_state=seed)
    for parameter in space.parameters:
        counts = Counter(trial[parameter.name] for trial in trials)
        every = [counts[value] for value in parameter.values]
        assert max(every) - min(every) <= 1


def test_latin_pairs_values_at_random() -> None:
    trials = make_space(10, 10).sample(10, design="latin", random_state=0)
    assert len({trial["p0"] for trial in trials}) == len({trial["p1"] for trial in trials}) == 10
    assert any(trial["p0"] != trial["p1"] for trial in trials)


@given(sizes)
def test_a_full_grid_has_every_combination_once(sizes: list[int]) -> None:
    space = make_space(*sizes)
    every = list(product(*(range(size) for size in sizes)))
    assert frozen(space.sample(None, design="grid")) == every
    assert frozen(space.sample(space.n_combinations + 5, design="grid")) == every


@given(sizes, st.data())
def test_part_of_a_grid_never_repeats_a_point(sizes: list[int], data: st.DataObject) -> None:
    space = make_space(*sizes)
    n = data.draw(st.integers(1, space.n_combinations))
    trials = frozen(space.sample(n, design="grid", random_state=data.draw(st.integers(0, 9))))
    assert len(set(trials)) == len(trials) == n


@pytest.mark.parametrize("sizes", [(10, 10, 10), (4, 4, 4, 4), (2, 3, 5, 6), (6, 5, 3, 2)])
@pytest.mark.parametrize("seed", range(5))
def test_part_of_a_grid_reaches_every_value(sizes: tuple[int, ...], seed: int) -> None:
    space = make_space(*sizes)
    trials = space.sample(80, design="grid", random_state=seed)
    for parameter in space.parameters:
        assert {trial[parameter.name] for trial in trials} == set(parameter.values)


def test_a_grid_too_large_to_list_can_be_sampled() -> None:
    space = make_space(*[10] * 30)
    trials = frozen(space.sample(50, design="grid"))
    assert len(set(trials)) == 50
    for column in zip(*trials, strict=True):
        assert len(set(column)) >= 8


def test_random_draws_are_uniform_over_the_values() -> None:
    counts = Counter(t["p0"] for t in make_space(4, 3).sample(4000))
    assert all(900 < counts[value] < 1100 for value in range(4))


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3"])
@pytest.mark.parametrize("design", ["random", "latin", "grid"])
def test_the_number_of_trials_must_be_a_positive_whole_number(n: int, design: str) -> None:
    with pytest.raises(InvalidInputError, match="`n` must be a positive whole number, but got"):
        make_space(2, 2).sample(n, design=design)


def test_only_a_grid_can_be_drawn_whole() -> None:
    with pytest.raises(InvalidInputError, match="but got None"):
        make_space(2).sample(None, design="latin")


def test_an_unknown_design_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'latin'"):
        make_space(2).sample(1, design="latn")
