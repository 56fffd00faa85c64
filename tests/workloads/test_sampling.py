"""Trials that can be built, drawn by rejection."""

from collections import Counter

import pytest

from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.space import Parameter, Space, load_space
from paceline.workloads import load_workload, sample_buildable

LENET5 = load_workload("lenet5")
TABLE_4_1 = load_space("table_4_1")


def space(**values: tuple[float, ...]) -> Space:
    return Space(
        name="small",
        parameters=tuple(
            Parameter(name=name, role="intrinsic", kind="numeric", values=numbers)
            for name, numbers in values.items()
        ),
    )


# kernel x pool x stride of table 4.1: 13 of 48 can be built on MNIST with valid padding
PLAIN = space(kernel_size=(2, 3, 4, 5), pool_size=(2, 3, 4, 5), stride=(1, 2, 3))


@pytest.mark.parametrize("design", ["random", "latin", "grid"])
def test_fifteen_hundred_trials_are_fifteen_hundred_buildable_ones(design: str) -> None:
    trials, n_rejected = sample_buildable(LENET5, TABLE_4_1, 1500, design=design, random_state=3)
    assert len(trials) == 1500
    assert not any(LENET5.infeasible(trial) for trial in trials)
    # (13 + 13 + 17 + 24 + 24 + 28) of 6 x 48 combinations can be built
    assert n_rejected / (1500 + n_rejected) == pytest.approx(1 - 119 / 288, abs=0.04)


@pytest.mark.parametrize("design", ["random", "latin", "grid"])
def test_same_seed_same_trials_and_another_seed_others(design: str) -> None:
    def draw(random_state: int) -> object:
        return sample_buildable(LENET5, TABLE_4_1, 40, design=design, random_state=random_state)

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_where_everything_can_be_built_the_trials_are_those_of_the_space() -> None:
    workload, table = load_workload("resattnet18"), load_space("table_5_1")
    for design in ("random", "latin", "grid"):
        trials, n_rejected = sample_buildable(workload, table, 50, design=design, random_state=5)
        assert n_rejected == 0
        assert trials == table.sample(50, design=design, random_state=5)


def test_the_rejected_count_is_of_those_before_the_last_trial() -> None:
    trials, n_rejected = sample_buildable(LENET5, PLAIN, 20, random_state=0)
    drawn = PLAIN.sample(20, random_state=0)
    kept = [trial for trial in drawn if not LENET5.infeasible(trial)]
    assert trials[: len(kept)] == kept  # the first round is the space's own
    assert n_rejected >= 20 - len(kept)


def test_a_grid_gives_every_buildable_combination_once() -> None:
    trials, n_rejected = sample_buildable(LENET5, PLAIN, design="grid")
    assert (len(trials), n_rejected) == (13, 35)
    assert Counter(map(str, trials)).most_common(1)[0][1] == 1
    assert sample_buildable(LENET5, PLAIN, 100, design="grid") == (trials, n_rejected)


@pytest.mark.parametrize("n", range(1, 14))
def test_part_of_a_grid_has_no_combination_twice(n: int) -> None:
    trials, _ = sample_buildable(LENET5, PLAIN, n, design="grid", random_state=n)
    assert len({str(trial) for trial in trials}) == len(trials) == n


def test_part_of_a_grid_is_spread_however_much_of_it_was_rejected() -> None:
    everything, _ = sample_buildable(LENET5, PLAIN, design="grid")
    for n in (8, 10, 12):
        parts = [
            sample_buildable(LENET5, PLAIN, n, design="grid", random_state=s)[0] for s in (1, 2)
        ]
        assert parts[0] != parts[1]
        assert everything[:n] not in parts


@pytest.mark.parametrize("design", ["random", "latin", "grid"])
def test_a_space_of_nothing_buildable_is_an_error_that_says_why(design: str) -> None:
    hopeless = space(kernel_size=(5,), pool_size=(5,), stride=(3,), filters=tuple(range(1, 5000)))
    with pytest.raises(InfeasibleError, match=r"buildable as 'lenet5', but \d+ were not.*conv2"):
        sample_buildable(LENET5, hopeless, 3, design=design)


def test_next_to_nothing_buildable_is_an_error_and_no_endless_search() -> None:
    strides = space(kernel_size=(5,), stride=(1, *range(3, 6000)))
    with pytest.raises(InfeasibleError, match="were not"):
        sample_buildable(LENET5, strides, 50)


def test_a_parameter_that_the_workload_does_not_know_is_refused_beforehand() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'kernel_size'"):
        sample_buildable(LENET5, space(kernal_size=(3,)), 2)


def test_a_value_that_breaks_a_rule_is_refused_beforehand() -> None:
    with pytest.raises(InvalidInputError, match="`stride` must be a positive whole number"):
        sample_buildable(LENET5, space(stride=(1, 2, 0)), 2)


def test_all_trials_are_for_grids_only() -> None:
    with pytest.raises(
        InvalidInputError, match="`n` must be a positive whole number, but got None"
    ):
        sample_buildable(LENET5, PLAIN)


@pytest.mark.parametrize("n", [0, -1, True, 2.5])
def test_the_number_of_trials_must_be_a_positive_whole_number(n: object) -> None:
    for design in ("random", "grid"):
        with pytest.raises(InvalidInputError, match="positive whole number"):
            sample_buildable(LENET5, PLAIN, n, design=design)
    with pytest.raises(UnknownNameError, match="Did you mean 'latin'"):
        sample_buildable(LENET5, PLAIN, 3, design="latim")


def test_batches_that_cannot_be_normalised_are_rejected() -> None:
    batches = Parameter(name="device_batch", role="extrinsic", kind="numeric", values=(1, 2))
    small = Space(name="scans", parameters=(*space(volume=(32,)).parameters, batches))
    trials, n_rejected = sample_buildable(load_workload("resattnet18"), small, design="grid")
    assert (trials, n_rejected) == ([{"volume": 32, "device_batch": 2}], 1)
