"""Scenarios: what is asked of the oracle, the estimators and the planners."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.clusters import load_cluster
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.scenario import Scenario, Strategy
from paceline.workloads import load_workload


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    strategy = Strategy(data=4, pipeline=2, micro_batches=8)
    graph = load_workload("mlp").graph()
    return Scenario(graph=graph, cluster=load_cluster("abci"), strategy=strategy, global_batch=256)


def test_a_batch_is_divided_by_replicas_and_pieces(scenario: Scenario) -> None:
    assert scenario.n_devices == 8
    assert scenario.replica_batch == 64
    assert scenario.micro_batch == 8


def test_a_row_says_all_that_a_dataset_needs(scenario: Scenario) -> None:
    row = scenario.to_row()
    assert row["workload"] == "mlp" and row["cluster"] == "abci"
    assert (row["n_devices"], row["global_batch"], row["data"], row["pipeline"]) == (8, 256, 4, 2)
    parts = {n: v for n, v in row.items() if n in scenario.strategy.to_dict()}
    assert Strategy.from_dict(parts) == scenario.strategy


def test_batches_and_strategies_are_checked(scenario: Scenario) -> None:
    with pytest.raises(InvalidInputError, match="`global_batch` must be positive"):
        replace(scenario, global_batch=0)
    with pytest.raises(InvalidInputError, match="`tensor` must be a positive whole number"):
        Strategy(tensor=0)
    with pytest.raises(InvalidInputError, match="`shard` must be 0, 1, 2 or 3"):
        Strategy(shard=4)
    with pytest.raises(UnknownNameError, match="Did you mean '1f1b'"):
        Strategy(schedule="1f1")
    with pytest.raises(UnknownNameError, match="Did you mean 'pipeline'"):
        Strategy.from_dict({"pipelin": 2})


def test_a_strategy_is_said_in_words() -> None:
    strategy = Strategy(data=4, pipeline=2, micro_batches=8, shard=1, recompute=True)
    assert str(strategy) == "data 4 x pipeline 2, ZeRO-1, 8 micro-batches, 1f1b, recompute"
    assert str(Strategy()) == "serial"
