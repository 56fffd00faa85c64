"""The oracle's answers as text."""

from __future__ import annotations

import subprocess
import sys

import pytest

from paceline.clusters import load_cluster
from paceline.oracle import knees, survey
from paceline.reports import short_label, show_knees, show_survey
from paceline.scenario import Strategy
from paceline.workloads import load_workload


@pytest.mark.parametrize(
    ("strategy", "label"),
    [
        (Strategy(), "serial"),
        (Strategy(data=8, shard=3), "zero3 8"),
        (Strategy(data=8, recompute=True), "data 8 recompute"),
        (Strategy(pipeline=4, schedule="sequential"), "layer 4"),
        (Strategy(pipeline=4, micro_batches=8, schedule="gpipe"), "gpipe 4 m8"),
        (Strategy(data=128, pipeline=16, micro_batches=64), "d128 p16 m64"),
        (Strategy(data=128, context=16), "data 128 x 16"),
    ],
)
def test_labels_are_short(strategy: Strategy, label: str) -> None:
    assert short_label(strategy) == label


def test_what_does_not_fit_is_marked_and_what_is_impossible_left_out() -> None:
    graph, cluster = load_workload("vgg16").graph(), load_cluster("thesis-rtx2080")
    found = survey(
        graph, cluster, [2], names=["data", "tensor", "data+accumulation"], global_batch=512
    )
    text = show_survey(found)
    assert "tensor 2" not in text
    lines = {line[2:].split("  ")[0]: line for line in text.splitlines()}
    assert "!" in lines["data 2"] and lines["data 2"].endswith("memory")
    assert "epoch" not in text.splitlines()[3]


def test_a_knee_that_is_not_reached_says_so() -> None:
    graph, cluster = load_workload("resnet50").graph(), load_cluster("abci")
    found = survey(graph, cluster, [1, 2, 4], names=["data"], device_batch=32)
    text = show_knees(found, knees(found))
    assert "data" in text and "> 4" in text


def test_showing_the_oracles_answers_loads_no_estimators() -> None:
    code = "import sys; from paceline.reports import show_survey; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
