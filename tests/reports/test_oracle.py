"""The oracle's answers as text."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

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
        (Strategy(data=16, context=4), "data 16 context 4"),
        (Strategy(data=128, context=16), "d128 x16"),
        (Strategy(data=1024, shard=1, tensor=2), "z1:1024 t2"),
        (Strategy(data=1024, shard=3, tensor=2), "z3:1024 t2"),
        (Strategy(data=128, micro_batches=1024, recompute=True), "d128 m1024 reco"),
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


def test_knees_with_a_price_keep_to_80_columns() -> None:
    graph = load_workload("gpt").graph()
    cluster = replace(load_cluster("abci"), price_per_device_hour=1e3)
    names = ["data+accumulation", "data+tensor+pipeline", "data+accumulation+recompute"]
    found = survey(graph, cluster, [2**i for i in range(3, 21)], names=names, device_batch=64)
    lines = show_knees(found, knees(found), n_samples=10**9).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-5].split()[-2:] == ["device-h", "USD"]


def test_one_sample_is_no_plural() -> None:
    graph, cluster = load_workload("mlp").graph(), load_cluster("abci")
    found = survey(graph, cluster, [1], names=["serial"], global_batch=1)
    text = show_survey(found, 1)
    assert "1 device, 1 sample a step:" in text
    assert "1 scenario by strategy, 1 sample an epoch" in " ".join(text.split())


def test_showing_the_oracles_answers_loads_no_estimators() -> None:
    code = "import sys; from paceline.reports import show_survey; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
