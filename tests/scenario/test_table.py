"""Strategies as columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.scenario import DEGREES, SCHEDULES, Strategy, StrategyTable

degrees = st.integers(1, 64)
strategies = st.builds(
    Strategy,
    **dict.fromkeys(DEGREES, degrees),
    shard=st.integers(0, 3),
    micro_batches=degrees,
    schedule=st.sampled_from(SCHEDULES),
    virtual_stages=degrees,
    recompute=st.booleans(),
)


@given(st.lists(strategies, min_size=1, max_size=5))
def test_rows_are_the_strategies_that_went_in(rows: list[Strategy]) -> None:
    table = StrategyTable.from_strategies(rows)
    assert [table.strategy(i) for i in range(len(table))] == rows
    assert table.n_devices.tolist() == [row.n_devices for row in rows]


def test_what_is_not_named_is_at_its_default() -> None:
    table = StrategyTable.from_columns(data=[1, 2], tensor=4)
    assert table.strategy(1) == Strategy(data=2, tensor=4)
    assert StrategyTable.from_columns().strategy(0) == Strategy()


def test_a_product_has_every_combination() -> None:
    table = StrategyTable.product(data=[1, 2, 4], filter=[1, 8], recompute=[0, 1])
    assert len(table) == 12 == len({table.strategy(i) for i in range(12)})


def test_rows_are_taken_repeated_and_joined() -> None:
    table = StrategyTable.from_columns(data=[1, 2, 3])
    assert table.take([2, 0])["data"].tolist() == [3, 1]
    assert table.take(np.array([True, False, True]))["data"].tolist() == [1, 3]
    assert table.repeat(2)["data"].tolist() == [1, 1, 2, 2, 3, 3]
    assert len(StrategyTable.concatenate([table, table])) == 6


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"data": [1, 0]}, "`data` must be positive"),
        ({"shard": [4]}, r"`shard` must lie in 0..3, but got 4"),
        ({"schedule": [-1]}, "`schedule` must lie in"),
        ({"recompute": [2]}, "`recompute` must lie in 0..1"),
    ],
)
def test_columns_are_checked(columns: dict, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        StrategyTable.from_columns(**columns)


def test_unknown_columns_and_empty_tables_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tensor'"):
        StrategyTable.from_columns(tenso=[1])
    with pytest.raises(InvalidInputError, match="at least one strategy"):
        StrategyTable.from_strategies([])
