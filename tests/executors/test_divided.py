"""Divided steps train as one worker would, whatever the strategy.

Every strategy is run with the networks that are least like each other; the whole product of
strategies and networks is marked plans (`make test-plans`).
"""

import itertools

import numpy as np
import pytest
from tests.executors.divided import NETWORKS, Pools, divided_job, maps_of, tensor_roles
from tests.executors.plans import make_plan

from paceline.executors import job_of_plan

DATA = {
    "equal": ({"data": 2}, {}),
    "unequal": ({"data": 2}, {"replica_batches": [3, 5]}),
    "accumulated": ({"data": 2, "micro_batches": 2}, {}),
    "computed again": ({"data": 2, "recompute": True}, {}),
    "gradients sharded": ({"data": 2, "shard": 2}, {}),
    "weights sharded": ({"data": 2, "shard": 3}, {"replica_batches": [3, 5]}),
    "sharded and computed again": ({"data": 2, "shard": 3, "recompute": True}, {}),
}
PIPELINES = {
    "1f1b": {"pipeline": 2, "micro_batches": 4},
    "gpipe": {"pipeline": 2, "micro_batches": 2, "schedule": "gpipe"},
    "interleaved": {
        **{"pipeline": 2, "micro_batches": 4},
        **{"schedule": "interleaved", "virtual_stages": 2},
    },
    "computed again": {"pipeline": 2, "micro_batches": 4, "recompute": True},
    "with replicas": {"data": 2, "pipeline": 2, "micro_batches": 2},
    "three stages": {"pipeline": 3, "micro_batches": 4},
}
PARTS = {
    "filter": {"filter": 2},
    "channel": {"channel": 2},
    "with replicas": {"data": 2, "filter": 2},
    "three filters": {"filter": 3},
    "three channels": {"channel": 3},
}
# who stands for all networks in a quick run
CHOSEN = {
    "equal": ("lenet5", "resattnet18"),
    "unequal": ("gpt",),
    "accumulated": ("resnet18",),
    "computed again": ("resnet18",),
    "gradients sharded": ("lenet5",),
    "weights sharded": ("gpt",),
    "sharded and computed again": ("gpt",),
    "1f1b": ("lenet5", "gpt"),
    "gpipe": ("resnet18",),
    "interleaved": ("resattnet18",),
    "with replicas": ("gpt", "resattnet18"),
    "three stages": ("lenet5",),
    "filter": ("lenet5", "resattnet18"),
    "channel": ("gpt",),
    "three filters": ("resnet18",),
    "three channels": ("lenet5",),
}


def cases(strategies):
    """Return strategies with networks, those that are not chosen marked plans."""
    found = []
    for case, name in itertools.product(strategies, NETWORKS):
        marks = [] if name in CHOSEN[case] else [pytest.mark.plans]
        found.append(pytest.param(name, strategies[case], id=f"{case}-{name}", marks=marks))
    return found


@pytest.fixture(scope="module")
def pools():
    pools = Pools()
    yield pools
    pools.close()


@pytest.fixture(scope="module")
def serial(pools):
    found = {}

    def losses(name, **more):
        key = name, *more.items()
        if key not in found:
            found[key] = pools.run(divided_job(name, {}, **more)).workers[0].losses
        return found[key]

    return losses


def even_stages(name, strategy):
    n_operations = len(divided_job(name, {}).network)
    n = strategy["pipeline"] * strategy.get("virtual_stages", 1)
    ends = [round(i * n_operations / n) for i in range(n + 1)]
    return [[a, b] for a, b in itertools.pairwise(ends)]


def assert_equal(record, losses):
    for worker in record.workers:
        np.testing.assert_allclose(worker.losses, losses, rtol=1e-5)


@pytest.mark.parametrize(("name", "case"), cases(DATA))
def test_data_parallel_steps_equal_serial_ones(pools, serial, name, case):
    strategy, more = case
    assert_equal(pools.run(divided_job(name, strategy, **more)), serial(name))


@pytest.mark.parametrize(("name", "strategy"), cases(PIPELINES))
def test_pipelined_steps_equal_serial_ones(pools, serial, name, strategy):
    job = divided_job(name, strategy, stages=even_stages(name, strategy))
    assert_equal(pools.run(job), serial(name))


@pytest.mark.parametrize("strategy", [PIPELINES["1f1b"], PIPELINES["with replicas"]])
def test_stages_that_share_a_weight_train_as_one(pools, serial, strategy):
    job = divided_job("gpt2", strategy, stages=even_stages("gpt2", strategy))
    record = pools.run(job)
    assert_equal(record, serial("gpt2"))
    table = 64 * 32 * 8  # words, width, bytes
    assert record.workers[0].traffic_bytes["all_reduce"] >= table


@pytest.mark.parametrize(("name", "strategy"), cases(PARTS))
def test_layers_dealt_out_train_as_serial_ones(pools, serial, name, strategy):
    names = maps_of(divided_job(name, {}).network, leave_first="channel" in strategy)
    assert_equal(pools.run(divided_job(name, strategy, split_layers=names)), serial(name))


@pytest.mark.parametrize(
    ("name", "n_leading", "strategy", "grid"),
    [
        ("lenet5", 2, {"spatial": 2}, [2, 1]),
        pytest.param("resnet18", 8, {"spatial": 2}, [2, 1], marks=pytest.mark.plans),
        ("resnet18", 6, {"spatial": 4}, [2, 2]),
        pytest.param("resnet18", 6, {"data": 2, "spatial": 2}, [1, 2], marks=pytest.mark.plans),
        pytest.param("resattnet18", 8, {"spatial": 2}, [2, 1, 1], marks=pytest.mark.plans),
        ("resattnet18", 6, {"data": 2, "spatial": 2}, [1, 1, 2]),
    ],
)
def test_space_dealt_out_trains_as_serial(pools, serial, name, n_leading, strategy, grid):
    record = pools.run(divided_job(name, strategy, n_leading=n_leading, grid=grid))
    assert_equal(record, serial(name))
    assert record.workers[0].traffic_bytes["send"] > 0


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("gpt", {"tensor": 2}),
        ("gpt2", {"data": 2, "tensor": 2}),
        ("llama-1b", {"tensor": 2}),
        pytest.param("gpt", {"data": 2, "tensor": 2}, marks=pytest.mark.plans),
        pytest.param("gpt2", {"tensor": 2}, marks=pytest.mark.plans),
        pytest.param("llama-1b", {"data": 2, "tensor": 2}, marks=pytest.mark.plans),
    ],
)
def test_transformers_dealt_out_train_as_serial_ones(pools, serial, name, strategy):
    roles = tensor_roles(divided_job(name, {}).network)
    assert_equal(pools.run(divided_job(name, strategy, tensor_roles=roles)), serial(name))


@pytest.mark.parametrize("recompute", [False, True])
def test_the_unlocked_schedule_learns_with_late_gradients(pools, serial, recompute):
    strategy = {
        **{"pipeline": 2, "micro_batches": 4},
        **{"schedule": "unlocked", "recompute": recompute},
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
    assert_equal(after, serial("lenet5"))


PHASED = {
    "data": ({"data": 2, "micro_batches": 2}, {}),
    "sharded": ({"data": 2, "shard": 3}, {}),
    "pipeline": ({"pipeline": 2, "micro_batches": 4}, {"stages": [[0, 4], [4, 7]]}),
    "tensor": ({"tensor": 2}, {}),
}


@pytest.mark.parametrize("case", PHASED)
def test_phases_are_parts_of_steps_that_train_as_well(pools, serial, case):
    strategy, more = PHASED[case]
    if case == "tensor":
        more = {"tensor_roles": tensor_roles(divided_job("gpt", {}).network)}
    record = pools.run(divided_job("gpt", strategy, n_steps=3, n_phase_steps=4, **more))
    assert_equal(record, serial("gpt", n_steps=3, n_phase_steps=4))
    for worker in record.workers:
        for phases, step_s in zip(worker.phases, worker.phase_step_s, strict=True):
            assert {"forward", "backward", "transfer", "update"} <= set(phases)
            assert min(phases.values()) > 0 and sum(phases.values()) <= step_s


def test_waiting_for_another_worker_counts_as_exchange(pools):
    """A stage with planted waits is busy; the other waits for it."""
    slow = {"op": "sleep", "name": "pause", "forward_s": 0.002, "backward_s": 0.004}
    job = divided_job("lenet5", {"pipeline": 2, "micro_batches": 2}, n_steps=2, n_phase_steps=3)
    network = [slow, *job.network]
    division = {**job.division, "stages": [[0, 5], [5, len(network)]]}
    values = {**job.to_dict(), "network": network, "division": division}
    first, last = pools.run(type(job)(**values)).workers
    slept = 8 * (0.002)  # samples of a step; nobody needs the gradient of the input
    assert np.median([p["forward"] for p in first.phases]) >= slept
    assert np.median([p["transfer"] for p in last.phases]) >= slept / 2


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("lenet5", {"spatial": 2}),
        ("lenet5", {"data": 2, "channel": 2}),
        ("lenet5", {"pipeline": 3, "micro_batches": 4}),
        ("gpt", {"tensor": 2}),
        ("gpt", {"data": 2, "shard": 3}),
    ],
    ids=lambda value: value if isinstance(value, str) else " x ".join(value),
)
def test_plans_become_jobs_that_train_as_serial(pools, serial, name, strategy):
    values = {**NETWORKS[name], "learning_rate": 0.01}
    plan = make_plan(name, values, strategy, precision="float64")
    data = {"kind": "generated", "n_samples": 1024}
    assert_equal(pools.run(job_of_plan(plan, n_warmup=0, n_steps=20, data=data)), serial(name))
