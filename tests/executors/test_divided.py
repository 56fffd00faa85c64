"""Divided steps train as one worker would, whatever the strategy."""

import numpy as np
import pytest
from tests.executors.divided import NETWORKS, Pools, divided_job


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
    ],
    ids=["equal", "unequal", "accumulated"],
)
def test_data_parallel_steps_equal_serial_ones(pools, serial, name, strategy, more):
    record = pools.run(divided_job(name, strategy, **more))
    for worker in record.workers:
        np.testing.assert_allclose(worker.losses, serial(name), rtol=1e-5)
