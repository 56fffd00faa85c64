"""Divided steps train as one worker would, whatever the strategy."""

import itertools

import numpy as np
import pytest
from tests.executors.divided import NETWORKS, Pools, divided_job, maps_of, tensor_roles


@pytest.fixture(scope="module")
def pools():
    pools = Pools()
    yield pools
    pools.close()


@pytest.fixture(scope="module")
def serial(pools):
    found = {}

    def losses(name):
        if name not in found:
            found[name] = pools.run(divided_job(name, {})).workers[0].losses
        return found[name]

    return losses


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    ("strategy", "more"),
    [
        ({"data": 2}, {}),
        ({"data": 2}, {"replica_batches": [3, 5]}),
        ({"data": 2, "micro_batches": 2}, {}),
        ({"data": 2, "shard": 2}, {}),
        ({"data": 2, "shard": 3}, {"replica_batches": [3, 5]}),
    ],
    ids=["equal", "unequal", "accumulated", "gradients sharded", "weights sharded"],
)
def test_data_parallel_steps_equal_serial_ones(pools, serial, name, strategy, more):
    record = pools.run(divided_job(name, strategy, **more))
    for worker in record.workers:
        np.testing.assert_allclose(worker.losses, serial(name), rtol=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "strategy",
    [
        {"pipeline": 2, "micro_batches": 4},
        {"pipeline": 2, "micro_batches": 2, "schedule": "gpipe"},
        {"pipeline": 2, "micro_batches": 4, "schedule": "interleaved", "virtual_stages": 2},
        {"data": 2, "pipeline": 2, "micro_batches": 2},
    ],
    ids=["1f1b", "gpipe", "interleaved", "with replicas"],
)
def test_pipelined_steps_equal_serial_ones(pools, serial, name, strategy):
    record = pools.run(divided_job(name, strategy, stages=even_stages(name, strategy)))
    for worker in record.workers:
        np.testing.assert_allclose(worker.losses, serial(name), rtol=1e-5)


def even_stages(name, strategy):
    n_operations = len(divided_job(name, {}).network)
    n = strategy["pipeline"] * strategy.get("virtual_stages", 1)
    ends = [round(i * n_operations / n) for i in range(n + 1)]
    return [[a, b] for a, b in itertools.pairwise(ends)]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "strategy",
    [{"filter": 2}, {"channel": 2}, {"data": 2, "filter": 2}, {"filter": 3}, {"channel": 3}],
    ids=["filter", "channel", "with replicas", "three filters", "three channels"],
)
def test_layers_dealt_out_train_as_serial_ones(pools, serial, name, strategy):
    names = maps_of(divided_job(name, {}).network, leave_first="channel" in strategy)
    record = pools.run(divided_job(name, strategy, split_layers=names))
    for worker in record.workers:
        np.testing.assert_allclose(worker.losses, serial(name), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "n_leading", "strategy", "grid"),
    [
        ("lenet5", 2, {"spatial": 2}, [2, 1]),
        ("resnet18", 8, {"spatial": 2}, [2, 1]),
        ("resnet18", 6, {"spatial": 4}, [2, 2]),
        ("resnet18", 6, {"data": 2, "spatial": 2}, [1, 2]),
        ("resattnet18", 8, {"spatial": 2}, [2, 1, 1]),
        ("resattnet18", 6, {"data": 2, "spatial": 2}, [1, 1, 2]),
    ],
)
def test_space_dealt_out_trains_as_serial(pools, serial, name, n_leading, strategy, grid):
    record = pools.run(divided_job(name, strategy, n_leading=n_leading, grid=grid))
    for worker in record.workers:
        np.testing.assert_allclose(worker.losses, serial(name), rtol=1e-5)
    assert record.workers[0].traffic_bytes["send"] > 0


@pytest.mark.parametrize("recompute", [False, True])
def test_the_unlocked_schedule_learns_with_late_gradients(pools, serial, recompute):
    strategy = {
        "pipeline": 2,
        "micro_batches": 4,
        "schedule": "unlocked",
        "recompute": recompute,
    }
    stages = even_stages("lenet5", strategy)
    late = pools.run(divided_job("lenet5", strategy, stages=stages)).workers
    assert late[0].losses == late[1].losses
    in_time = serial("lenet5")
    assert late[0].losses[0] != in_time[0]  # one micro-batch of the first step is still under way
    np.testing.assert_allclose(late[0].losses[5:], in_time[5:], rtol=0.05)


def test_a_job_after_the_unlocked_schedule_starts_clean(pools, serial):
    strategy = {"pipeline": 2, "micro_batches": 2, "schedule": "unlocked"}
    stages = even_stages("lenet5", strategy)
    pools.run(divided_job("lenet5", strategy, stages=stages, n_steps=3))
    after = pools.run(divided_job("lenet5", {**strategy, "schedule": "1f1b"}, stages=stages))
    np.testing.assert_allclose(after.workers[0].losses, serial("lenet5"), rtol=1e-5)


@pytest.mark.parametrize("name", ["gpt", "gpt2", "llama-1b"])
@pytest.mark.parametrize("strategy", [{"tensor": 2}, {"data": 2, "tensor": 2}])
def test_transformers_dealt_out_train_as_serial_ones(pools, serial, name, strategy):
    roles = tensor_roles(divided_job(name, {}).network)
    record = pools.run(divided_job(name, strategy, tensor_roles=roles))
    for worker in record.workers:
        np.testing.assert_allclose(worker.losses, serial(name), rtol=1e-5)
