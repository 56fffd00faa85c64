"""Exported scripts run under torchrun with as many processes as the plan has devices."""

import os
import subprocess
import sys

import pytest

from paceline.clusters import load_cluster
from paceline.dataset import write_text
from paceline.planners import export_script, plan_training
from paceline.scenario import Strategy
from paceline.workloads import load_workload

pytest.importorskip("torch")


def run_script(plan, path):
    script, command = export_script(plan, path)
    write_text(path, script)
    assert command == f"torchrun --standalone --nproc-per-node 2 {path}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *command.split()[1:], "--steps", "3"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()
    return process.returncode, output


@pytest.mark.plans
@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(pipeline=2, micro_batches=4),
        Strategy(data=2, micro_batches=2),
    ],
    ids=str,
)
def test_a_script_of_lenet5_trains_on_two_processes(strategy, tmp_path):
    graph = load_workload("lenet5").graph()
    plan = plan_training(graph, load_cluster("dgx-1"), 2, 16, strategies=[strategy])
    code, output = run_script(plan, tmp_path / "train.py")
    assert code == 0, output[-2000:]
    assert "step 2: loss" in output and "predicted" in output


def test_a_transformer_is_cut_at_its_blocks():
    graph = load_workload("gpt").graph({"layers": 2, "width": 32, "heads": 2, "length": 16})
    strategy = Strategy(pipeline=3, micro_batches=4)
    plan = plan_training(graph, load_cluster("dgx-1"), 3, 16, strategies=[strategy])
    script, _ = export_script(plan)
    for stage in plan.stages[1:]:
        assert f'"{graph.layers[stage.first].block}"' in script
