"""Strategies by name, the best of each, and where more devices stop paying."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.clusters import Cluster, DeviceGroup, load_cluster
from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.oracle import (
    Survey,
    enumerate_strategies,
    knee,
    knees,
    known_samples,
    list_strategies,
    survey,
    sweep,
)
from paceline.oracle._enumerate import ALL, divisors
from paceline.scenario import Strategy
from paceline.workloads import LayerGraph, load_workload


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 200), batch=st.integers(1, 64))
def test_degrees_multiply_to_the_number_of_devices(n: int, batch: int) -> None:
    graph, cluster = load_workload("mlp").graph(), load_cluster("abci")
    names = [*ALL, "serial"] if n == 1 else ALL
    table = enumerate_strategies(graph, cluster, n, names=names, global_batch=batch * n)
    assert (table.n_devices == n).all()
    rows = [table.strategy(i) for i in range(len(table))]
    assert len(rows) == len(set(rows)) + sum(r == Strategy() for r in rows[1:])


def test_a_hybrid_uses_all_of_its_degrees(resnet: LayerGraph, cluster: Cluster) -> None:
    table = enumerate_strategies(resnet, cluster, 8, names=["data+filter"])
    assert sorted(zip(table["data"], table["filter"], strict=True)) == [(2, 4), (4, 2)]


def test_micro_batches_divide_a_replicas_share(resnet: LayerGraph, cluster: Cluster) -> None:
    table = enumerate_strategies(
        resnet, cluster, 8, names=["data+pipeline", "interleaved"], global_batch=96
    )
    assert (96 % (table["data"] * table["micro_batches"]) == 0).all()
    assert set(table["virtual_stages"]) == {1, 2, 4}


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("serial", "expert", "data+expert")])
def test_every_shipped_strategy_can_be_taken_by_some_network(name: str, cluster: Cluster) -> None:
    roomy = replace(cluster, device=replace(cluster.device, memory_bytes=1e12))
    graphs = [
        load_workload("resnet18").graph({"image_size": 64, "filters": 16, "n_classes": 16}),
        load_workload("gpt").graph(),
    ]
    n = 2 ** max(2, name.count("+") + 1)
    found = [survey(g, roomy, [n], names=[name], global_batch=64) for g in graphs]
    assert any(each.best for each in found)


def test_experts_are_dealt_out(cluster: Cluster) -> None:
    graph = load_workload("mixtral-8x7b").graph()
    rows = sweep(graph, load_cluster("dgx-h100"), [Strategy(), Strategy(expert=8)], global_batch=8)
    assert rows["weights_bytes"][1] < 0.2 * rows["weights_bytes"][0]
    assert rows["layerwise_s"][1] > 0 and rows["gradient_s"][1] > 0


def test_the_best_is_the_fastest_that_fits(resnet: LayerGraph, cluster: Cluster) -> None:
    found = survey(resnet, cluster, [1, 2, 4, 8], device_batch=16)
    for n, row in found.best.items():
        same = (found.n_devices == n) & found.result.fits
        assert found.result.step_s[row] == found.result.step_s[same].min()
    assert sorted(found.best) == [1, 2, 4, 8]
    frame = found.frame(1000)
    assert frame["best"].sum() == 4
    assert frame.loc[frame["best"], "strategy"].iloc[0] == "serial"
    hours = frame["n_devices"] * frame["epoch_s"] / 3600
    np.testing.assert_allclose(frame["device_hours"], hours)
    np.testing.assert_allclose(frame["money"], 2 * hours)


def test_a_name_is_represented_by_its_best_strategy(resnet: LayerGraph, cluster: Cluster) -> None:
    found = survey(resnet, cluster, [8], names=["data+pipeline"], global_batch=64)
    table = enumerate_strategies(resnet, cluster, 8, names=["data+pipeline"], global_batch=64)
    every = sweep(resnet, cluster, table, global_batch=64)
    assert len(found) == 1 and found.n_scenarios == len(table)
    assert found.result.step_s[0] == np.nanmin(every.step_s[every.fits])


def test_what_fits_nowhere_is_named_with_what_is_short(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    tiny = replace(cluster, device=replace(cluster.device, memory_bytes=2**20))
    found = survey(resnet, tiny, [2, 4], names=["data", "zero3"], global_batch=64)
    with pytest.raises(InfeasibleError, match=r"nearest is zero3 on 4 devices .* GiB more memory"):
        found.require_fit()


def test_one_device_is_no_plural(resnet: LayerGraph, cluster: Cluster) -> None:
    tiny = replace(cluster, device=replace(cluster.device, memory_bytes=2**20))
    with pytest.raises(InfeasibleError, match=r"nearest is serial on 1 device \(serial\)"):
        survey(resnet, tiny, [1], names=["serial"], global_batch=1).require_fit()


def test_the_smallest_device_in_use_limits_memory(resnet: LayerGraph, cluster: Cluster) -> None:
    groups = (DeviceGroup(count=2), DeviceGroup(count=2, memory_bytes=2**20))
    mixed = replace(cluster, devices=groups, n_devices=4)
    found = survey(resnet, mixed, [2, 4], names=["data"], device_batch=8)
    assert found.result.fits.tolist() == [True, False]
    assert "than the smallest of its devices has" in found.result.why(1)
    with pytest.raises(InfeasibleError, match=r"in the 0\.0 GiB of the smallest device in use"):
        survey(resnet, mixed, [4], names=["data"], device_batch=8).require_fit()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("data+zero3", "divides by `data` twice. Take: data or zero3"),
        ("pipeline+tensor+gpipe", "`pipeline` twice. Take: pipeline[+]tensor or tensor[+]gpipe"),
        ("data+data", "`data` twice. Take: data$"),
    ],
)
def test_names_that_share_a_degree_are_refused(
    resnet: LayerGraph, cluster: Cluster, name: str, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        enumerate_strategies(resnet, cluster, 8, names=["data", name])
    with pytest.raises(InvalidInputError, match=words):
        survey(resnet, cluster, [1], names=[name], global_batch=8)


def test_what_is_impossible_is_bad_input(resnet: LayerGraph, cluster: Cluster) -> None:
    found = survey(resnet, cluster, [2], names=["tensor"], global_batch=64)
    with pytest.raises(InvalidInputError, match=r"No strategy is possible\. tensor: .*layer '"):
        found.require_fit()


def test_bad_questions_are_refused(resnet: LayerGraph, cluster: Cluster) -> None:
    with pytest.raises(InvalidInputError, match="either `global_batch` or `device_batch`"):
        survey(resnet, cluster, [2])
    with pytest.raises(UnknownNameError, match="Did you mean 'filter'"):
        survey(resnet, cluster, [2], names=["data+filtr"], global_batch=8)
    with pytest.raises(InvalidInputError, match=r"asked for \(12\), but got 4 \* 2 = 8"):
        survey(resnet, cluster, [12], strategies=[Strategy(data=4, pipeline=2)], global_batch=64)
    with pytest.raises(InvalidInputError, match="none has for 7"):
        survey(resnet, cluster, [7], names=["data+filter"], global_batch=64)


def test_limits_name_the_layer(resnet: LayerGraph, cluster: Cluster) -> None:
    found = survey(resnet, cluster, [4], names=["filter", "spatial"], global_batch=8)
    assert found.limits["filter"] == "at most 10: layer 'output' (linear) has 10 filters"
    assert "32 x 32 places" in found.limits["spatial"]


def test_the_knee_is_where_a_doubling_gains_too_little() -> None:
    found = knee([1, 2, 4, 8, 16], [100, 190, 340, 365, 370], least_gain=0.1)
    assert (found.n_devices, found.is_reached) == (4, True)
    assert found.gain == pytest.approx(365 / 340 - 1)
    far = knee([1, 2, 4], [100, 200, 400])
    assert (far.n_devices, far.is_reached) == (4, False) and np.isnan(far.gain)


def test_a_dip_does_not_end_what_pays() -> None:
    found = knee([1, 2, 4, 8, 16, 32, 64], [100, 190, 360, 200, 390, 760, 770])
    assert (found.n_devices, found.is_reached) == (32, True)
    assert knee([1, 2, 4, 8], [100, 190, 150, 200]).n_devices == 2


def test_knees_are_followed_from_one_device(resnet: LayerGraph, cluster: Cluster) -> None:
    found = survey(resnet, cluster, [1, 2], names=["layer", "data"], global_batch=64)
    by_name = knees(found)
    assert (by_name["layer"].n_devices, by_name["layer"].is_reached) == (1, True)
    assert (by_name["data"].n_devices, by_name["data"].is_reached) == (2, False)
    with pytest.raises(InvalidInputError, match=r"got 2 alone\. Try: --devices 1\.\.2"):
        knees(survey(resnet, cluster, [2], names=["data"], global_batch=64))


def test_what_needs_less_memory_is_tried_where_nothing_fits(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    def on(gib: float, **options: Any) -> Survey:
        device = replace(cluster.device, memory_bytes=gib * 2**30)
        return survey(resnet, replace(cluster, device=device), [1, 2], **options)

    usual = on(100, global_batch=2048)
    needs = float(usual.result.memory_bytes[usual.best[1]]) / 2**30
    sparing = on(needs / 6, global_batch=2048)
    strategy = sparing.result.table.strategy(sparing.best[1])
    assert strategy.micro_batches > 1 and usual.names[usual.best[1]] == "serial"
    assert set(usual.names) < set(sparing.names)
    assert sparing.n_devices.tolist() == sorted(sparing.n_devices)
    named = on(needs / 6, global_batch=2048, names=["serial", "data"])
    assert not named.result.fits.any()


def test_micro_batches_may_be_of_one_sample_to_spare_memory(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    question = {"names": ["accumulation"], "global_batch": 4096}
    usual, sparing = (
        enumerate_strategies(resnet, cluster, 1, **question, sparing=sparing)
        for sparing in (False, True)
    )
    assert usual["micro_batches"].max() == 16
    assert sparing["micro_batches"].max() == 4096
    assert set(usual["micro_batches"]) < set(sparing["micro_batches"])


def test_all_wait_for_the_slowest_device_in_use(resnet: LayerGraph, cluster: Cluster) -> None:
    groups = (DeviceGroup(count=2), DeviceGroup(count=2, speed=0.5))
    mixed = replace(cluster, devices=groups, n_devices=4)
    even, uneven = (
        survey(resnet, c, [2, 4], names=["data"], device_batch=8).result for c in (cluster, mixed)
    )
    assert uneven.step_s[0] == pytest.approx(even.step_s[0])
    assert uneven.compute_s[1] == pytest.approx(2 * even.compute_s[1])
    assert uneven.step_s[1] == pytest.approx(even.step_s[1] + even.compute_s[1])
    assert uneven["efficiency"][1] < even["efficiency"][1]


def test_steps_that_are_no_doubling_count_in_proportion() -> None:
    """From 1 to 8 in one step with a gain of 33 % is 10 % a doubling."""
    assert not knee([1, 8], [100, 133.2]).is_reached
    assert knee([1, 8], [100, 133.0]).is_reached


@pytest.mark.parametrize(
    ("devices", "rates", "least"), [([1, 2], [1, 2], 0), ([2, 1], [1, 2], 0.1), ([1], [1, 2], 0.1)]
)
def test_a_knee_needs_rising_devices_and_a_share(
    devices: list[int], rates: list[float], least: float
) -> None:
    with pytest.raises(InvalidInputError):
        knee(devices, rates, least_gain=least)


def test_strong_scaling_has_a_knee_and_the_best_is_no_earlier(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    found = survey(
        resnet, cluster, [2**i for i in range(9)], names=["data", "zero1"], global_batch=256
    )
    by_name = knees(found)
    assert by_name["data"].is_reached
    assert by_name["best"].n_devices >= min(k.n_devices for k in by_name.values())


def test_epochs_of_known_datasets() -> None:
    assert known_samples(load_workload("resnet50").graph()) == 1_281_167
    assert known_samples(load_workload("mlp").graph()) == 60_000
    assert known_samples(load_workload("lenet5").graph({"dataset": "cifar10"})) == 50_000
    assert known_samples(load_workload("gpt").graph()) is None


def test_every_part_of_a_name_has_a_line() -> None:
    known = list_strategies()
    assert {part for name in ALL for part in name.split("+")} <= set(known)
    assert all(known.values())


@given(st.integers(1, 5000))
def test_divisors_are_all_there(n: int) -> None:
    assert list(divisors(n)) == [i for i in range(1, n + 1) if n % i == 0]
