"""From plans to jobs: the same network, the same stages, and nothing that no worker runs."""

import dataclasses
import os

import pytest
from tests.executors.divided import NETWORKS
from tests.executors.plans import make_plan, module_plan

from paceline.errors import InfeasibleError, InvalidInputError
from paceline.executors import RUNNABLE, graph_of_plan, job_of_plan, ranks_of_plan, why_not_run
from paceline.scenario import Strategy, load_plan, save_plan

MODULE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.inner = nn.Linear(64, width)
        self.middle = nn.Linear(width, width)
        self.outer = nn.Linear(width, 10)

    def forward(self, x):
        x = torch.relu(self.inner(x.flatten(1)))
        return self.outer(x + torch.relu(self.middle(x)))
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(MODULE)
    return path


def small(name, strategy, **more):
    return make_plan(name, NETWORKS[name], strategy, **more)


def test_stages_of_layers_become_ranges_of_operations():
    plan = small("resnet18", {"pipeline": 3, "micro_batches": 4}, ends=[5, 10, 22])
    job = job_of_plan(plan)
    assert job.division["stages"] == [[0, 5], [5, 10], [10, 22]]
    assert len(job.network) == 22 and job.n_workers == 3
    assert job.device_batches == [8, 8, 8] and job.optimizer["name"] == "sgd"


def test_devices_become_workers_in_their_order():
    plan = small("lenet5", {"data": 2, "filter": 2}, placement=((8, 3), (5, 0)))
    assert ranks_of_plan(plan) == [[3, 1], [2, 0]]
    assert job_of_plan(plan).division["placement"] == [[3, 1], [2, 0]]


def test_batches_are_those_of_a_workers_replica():
    strategy = {"data": 2, "filter": 2}
    plan = small("lenet5", strategy, replica_batches=(3, 5), placement=((0, 2), (1, 3)))
    assert job_of_plan(plan).device_batches == [3, 5, 3, 5]


@pytest.mark.parametrize(
    ("name", "strategy", "key", "wanted"),
    [
        (
            "lenet5",
            {"filter": 2},
            "split_layers",
            ["conv1", "conv2", "dense1", "dense2", "dense3"],
        ),
        ("lenet5", {"channel": 2}, "split_layers", ["conv2", "dense1", "dense2", "dense3"]),
        ("resattnet18", {"spatial": 2}, "grid", [2, 1, 1]),
        ("resattnet18", {"spatial": 2}, "n_leading", 16),  # up to the first attention
    ],
)
def test_what_is_dealt_out_is_what_the_oracle_costs(name, strategy, key, wanted):
    assert job_of_plan(small(name, strategy)).division[key] == wanted


def test_transformers_have_roles_by_layer():
    roles = job_of_plan(small("gpt", {"tensor": 2})).division["tensor_roles"]
    assert roles["embedding"] == "vocabulary_in" and roles["output"] == "vocabulary_out"
    assert sorted(roles.values()).count("heads") == 2


def test_space_that_cannot_be_cut_evenly_is_refused():
    plan = small("gpt", {"data": 2})
    strategy = Strategy(spatial=2)
    changed = dataclasses.replace(
        plan, strategy=strategy, placement=((0, 1),), replica_batches=(8,)
    )
    with pytest.raises(InfeasibleError, match="`spatial` must be possible"):
        job_of_plan(changed)


def test_a_plan_for_another_network_is_refused(module):
    plan = small("lenet5", {"data": 2}, fingerprint="0123456789abcdef")
    with pytest.raises(InvalidInputError, match=r"it was made for .*0123456789abcdef"):
        job_of_plan(plan)
    own = module_plan(module, "Net", {"data": 2})
    assert graph_of_plan(own).fingerprint == own.fingerprint
    module.write_text(MODULE.replace("width=16", "width=17"))
    with pytest.raises(InvalidInputError, match=r"but Net has .*plan it again"):
        job_of_plan(own)


@pytest.mark.parametrize(
    ("strategy", "reason"),
    [
        ({"context": 2}, "no worker runs context"),
        ({"expert": 2}, "no worker runs expert"),
        ({"pipeline": 2, "filter": 2, "micro_batches": 2}, "no worker runs pipeline with filter"),
        ({"data": 2, "shard": 1}, "state alone"),
        ({"data": 2, "pipeline": 2, "shard": 3}, "no worker shards replicas of pipeline"),
        (
            {"data": 2, "pipeline": 2, "micro_batches": 2, "schedule": "unlocked"},
            "replicas of the unlocked schedule",
        ),
        ({"pipeline": 2, "micro_batches": 4, "schedule": "sequential"}, "sequential schedule"),
        (
            {
                **{"pipeline": 2, "micro_batches": 3},
                **{"schedule": "interleaved", "virtual_stages": 2},
            },
            "interleaved stages need",
        ),
        ({"filter": 2, "recompute": True}, "no worker recomputes"),
    ],
)
def test_strategies_that_no_worker_runs_are_refused_by_name(strategy, reason):
    assert reason in why_not_run(Strategy(**strategy))
    inner = Strategy(**strategy).n_devices // strategy.get("data", 1)
    plan = small("resnet18", {}, global_batch=12)
    n = strategy.get("pipeline", 1) * strategy.get("virtual_stages", 1)
    stages = small("resnet18", {"pipeline": n, "micro_batches": n}, global_batch=12).stages
    data = strategy.get("data", 1)
    plan = dataclasses.replace(
        plan,
        strategy=Strategy(**strategy),
        stages=stages,
        placement=tuple(tuple(range(q * inner, (q + 1) * inner)) for q in range(data)),
        replica_batches=(12 // data,) * data,
    )
    with pytest.raises(InvalidInputError, match="They run: data; zero2") as refused:
        job_of_plan(plan)
    assert all(words in str(refused.value) for words in RUNNABLE)


def test_one_stage_at_a_time_is_run_as_one_micro_batch():
    plan = small("lenet5", {"pipeline": 2, "schedule": "sequential"})
    assert job_of_plan(plan).division["strategy"]["schedule"] == "gpipe"


def test_micro_batches_must_divide_the_batch_of_a_pipeline():
    plan = small("lenet5", {"pipeline": 2, "micro_batches": 4})
    changed = dataclasses.replace(plan, global_batch=10, replica_batches=(10,))
    with pytest.raises(InvalidInputError, match=r"4 micro-batches must be cut .* one has 10"):
        job_of_plan(changed)


def test_precisions_that_no_worker_has_are_refused():
    plan = dataclasses.replace(small("lenet5", {"data": 2}), precision="float8")
    with pytest.raises(InvalidInputError, match=r"in one of float64, .*but is in float8"):
        job_of_plan(plan)


def test_a_weight_in_two_stages_takes_no_late_gradients():
    values = {**NETWORKS["gpt"]}
    strategy = {"pipeline": 2, "micro_batches": 2}
    plan = make_plan("gpt2", values, strategy)
    job_of_plan(plan)
    late = dataclasses.replace(plan, strategy=Strategy(**strategy, schedule="unlocked"))
    with pytest.raises(InvalidInputError, match="'output' shares that of 'embedding'"):
        job_of_plan(late)


def test_a_stage_within_a_block_is_refused():
    plan = small("resnet18", {"pipeline": 2, "micro_batches": 2})
    first, last = plan.stages
    inside = next(b - 1 for a, b in graph_of_plan(plan).units if b - a > 2 and b - 1 > first.first)
    stages = (
        dataclasses.replace(first, end=inside),
        dataclasses.replace(last, first=inside),
    )
    with pytest.raises(InvalidInputError, match="must begin where resnet18 may be cut"):
        job_of_plan(dataclasses.replace(plan, stages=stages))
    short = dataclasses.replace(last, end=last.end - 1)
    with pytest.raises(InvalidInputError, match=r"must hold all .* layers of resnet18"):
        job_of_plan(dataclasses.replace(plan, stages=(first, short)))


def test_a_module_of_ones_own_takes_data_and_pipeline_plans(module):
    job = job_of_plan(module_plan(module, "Net", {"data": 2}))
    assert job.module["name"] == "Net" and not job.network
    staged = job_of_plan(module_plan(module, "Net", {"pipeline": 2, "micro_batches": 2}))
    (point,) = staged.division["split_points"]
    assert set(point) == {"before", "behind"}
    with pytest.raises(InvalidInputError, match="`filter` must be run with a shipped workload"):
        job_of_plan(module_plan(module, "Net", {"filter": 2}))


def test_a_plan_that_was_saved_gives_the_same_job(tmp_path):
    plan = small("gpt", {"data": 2, "pipeline": 2, "micro_batches": 2})
    save_plan(plan, tmp_path / "plan.json")
    assert job_of_plan(load_plan(tmp_path / "plan.json")) == job_of_plan(plan)


def test_an_edit_within_the_same_second_is_seen(module, monkeypatch):
    """Python would take the byte code that it kept: time and size of the file are the same."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    own = module_plan(module, "Net", {"data": 2})
    before = module.stat()
    module.write_text(MODULE.replace("width=16", "width=17"))
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InvalidInputError, match=r"but Net has .*plan it again"):
        job_of_plan(own)
    assert not list(module.parent.glob("__pycache__"))
