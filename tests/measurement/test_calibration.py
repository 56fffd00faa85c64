"""Calibration: its fits on planted times, and a small one of this machine."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from paceline.cli._main import command
from paceline.clusters import (
    Cluster,
    Device,
    Kernel,
    Level,
    Link,
    all_gather,
    all_reduce,
    kernel_time,
    load_cluster,
    point_to_point,
    reduce_scatter,
    save_cluster,
)
from paceline.errors import ExecutionError, InvalidInputError, MissingDependencyError
from paceline.executors import FrameworkExecutor, WorkerPool
from paceline.measurement import Calibration, NetworkProbe, calibrate
from paceline.measurement._calibration_around import fit_divided, fit_piped, fit_sharded
from paceline.measurement._calibration_fit import (
    Exchanges,
    LayerTime,
    fit_crowd,
    fit_kernels,
    fit_line,
    fit_link,
    fit_messages,
    fit_rates,
    held_out_error,
    layer_times,
    pace_exchanged,
    pace_together,
)
from paceline.measurement._calibration_links import Crowd, _with_crowds, _with_more_workers
from paceline.workloads import load_workload

DEVICE = Device(name="d", peak_flops={"float32": 1e11}, memory_bytes=1e9, memory_bandwidth=1e10)


def one_level(**link: float) -> Cluster:
    wire = Link(**{"name": "wire", "latency_s": 1e-5, "bandwidth": 1e9, **link})
    return Cluster(name="c", device=DEVICE, levels=(Level(name="node", size=4, link=wire),))


def test_planted_lines_are_found_through_noise() -> None:
    rng = np.random.default_rng(0)
    figures = 10 ** rng.uniform([4, 3, 3, 2, 3], [9, 7, 7, 6, 8], (60, 5))
    planted = np.array([5e-5, 1e-11, 1e-10, 0.0, 2e-10, 0.0])
    seconds = (planted[0] + figures @ planted[1:]) * rng.normal(1, 0.05, 60)
    found = fit_line(figures, seconds)
    assert np.all(found >= 0)
    predicted = found[0] + figures @ found[1:]
    assert np.mean(np.abs(predicted / seconds - 1)) < 0.08
    assert found[1] == pytest.approx(planted[1], rel=0.1)


def test_a_fit_lies_neither_above_nor_below() -> None:
    rng = np.random.default_rng(1)
    figures = np.column_stack([rng.uniform(1e6, 1e8, 200), *np.zeros((4, 200))])
    seconds = figures[:, 0] * 1e-10 * np.exp(rng.normal(0, 0.3, 200))
    found = fit_line(figures, seconds)
    assert np.median(seconds / (found[0] + figures @ found[1:])) == pytest.approx(1, abs=0.08)


def test_every_kind_and_pass_has_its_own_kernel() -> None:
    times = [
        LayerTime(kernel=name, figures=(flop, 0, 0, 0, 0), seconds=1e-4 + flop * slope)
        for name, slope in (("conv", 1e-10), ("conv_backward", 3e-10))
        for flop in (1e6, 1e7, 1e8)
    ]
    device = Device(
        name="d",
        peak_flops={"float32": 1e11},
        memory_bytes=1e9,
        memory_bandwidth=1e10,
        kernels=fit_kernels(times),
    )
    assert kernel_time(device, 5e7, kind="conv") == pytest.approx(5.1e-3, rel=1e-3)
    assert kernel_time(device, 5e7, kind="conv", backward=True) == pytest.approx(15.1e-3, rel=1e-3)


def test_a_planted_link_is_found() -> None:
    planted = one_level(latency_s=4e-5, bandwidth=2e9, floor_s=3e-4)
    n_bytes = 2.0 ** np.arange(10, 25)
    seconds = all_reduce(planted, n_bytes, 2)
    exchanges = Exchanges(n_workers=np.full(15, 2.0), n_bytes=n_bytes, seconds=seconds)
    link = fit_link(one_level(), exchanges)
    assert link.bandwidth == pytest.approx(2e9, rel=0.05)
    assert link.floor_s == pytest.approx(3e-4, rel=0.05)
    assert held_out_error(one_level(), exchanges) < 0.03


def test_messages_have_their_own_line() -> None:
    n_bytes = np.array([1e3, 1e5, 1e7])
    latency, bandwidth = fit_messages(n_bytes, 1e-4 + n_bytes / 2e9)
    assert (latency, bandwidth) == pytest.approx((1e-4, 2e9), rel=1e-2)
    cluster = one_level(message_latency_s=latency, message_bandwidth=bandwidth, floor_s=1.0)
    assert point_to_point(cluster, 1e6) == pytest.approx(6e-4, rel=1e-2)


def test_rates_give_a_peak_and_its_shares() -> None:
    rows = [
        {"kind": kind, "flop": flop, "forward_s": 1e-5 + flop / rate, "backward_s": 1.0}
        for kind, rate in (("linear", 1e11), ("conv", 5e10))
        for flop in (1e5, 1e7, 1e9)
    ]
    curve = fit_rates(rows)
    assert curve.peak_flops == pytest.approx(1e11, rel=0.01)
    assert curve.efficiency["conv"] == pytest.approx(0.5, rel=0.01)
    assert curve.launch_s == pytest.approx(1e-5, rel=0.3)


def test_crowding_follows_what_was_measured() -> None:
    cluster = Cluster(
        name="c",
        device=DEVICE,
        levels=one_level().levels,
        n_cores=2,
        slowdowns=(1.0, 1.1, 1.2),
        exchange_slowdowns=(1.0, 1.0, 3.0),
    )
    assert cluster.crowding([1, 2, 3]) == pytest.approx([1, 1.1, 1.8])
    assert cluster.exchange_crowding([2, 3]) == pytest.approx([1, 3])
    plain = Cluster(name="c", device=DEVICE, levels=one_level().levels, n_cores=2)
    assert plain.exchange_crowding([2, 4]) == pytest.approx([1, 2])
    assert plain.crowding([1, 2, 3]) == pytest.approx([1, 1, 1.5])


def test_exchanges_of_many_take_at_least_what_they_wait() -> None:
    cluster = replace(one_level(), exchange_slowdowns=(1.0, 1.0, 2.0))
    waiting = replace(cluster, exchange_floors_s=(0.0, 1e-4, 3e-3))
    assert all_reduce(waiting, 1024.0, 3) == pytest.approx(2 * 3e-3)
    assert all_reduce(waiting, 1024.0, 1) == 0.0
    assert all_reduce(waiting, 1e9, 3) == all_reduce(cluster, 1e9, 3)


def test_what_more_workers_add_to_exchanges_is_found_apart() -> None:
    link = one_level(latency_s=2e-5, bandwidth=1e9, floor_s=2e-4)
    truth = replace(link, exchange_floors_s=(0.0, 2e-4, 3e-3), exchange_slowdowns=(1, 1, 1.5))
    n_bytes = 2.0 ** np.arange(10, 25)
    noise = np.random.default_rng(0).normal(1, 0.03, (2, len(n_bytes)))
    parts = {
        n: Exchanges(
            n_workers=np.full(len(n_bytes), float(n)),
            n_bytes=n_bytes,
            seconds=np.maximum(all_reduce(link, n_bytes, n), truth.exchange_floor(n)) * own,
        )
        for n, own in zip((2, 3), noise * [[1.0], [1.5]], strict=True)
    }
    found = _with_more_workers(replace(link, exchange_slowdowns=(1.0,)), parts)
    assert found.exchange_slowdowns == pytest.approx((1.0, 1.0, 1.5), rel=0.05)
    assert found.exchange_floors_s == pytest.approx((0.0, 2e-4, 4.5e-3), rel=0.05)


def test_slower_steps_of_workers_at_once_are_found_through_noise() -> None:
    rng = np.random.default_rng(0)
    alone, exchange = 10 ** rng.uniform(-3, -1, 40), 10 ** rng.uniform(-3, -1, 40)
    steps = (1.8 * alone + 1.6 * exchange) * rng.normal(1, 0.05, 40)
    longer, factor, left = fit_crowd(alone, exchange, steps, least=1.5)
    assert (longer, factor) == pytest.approx((1.8, 1.6), rel=0.05)
    assert left < 0.06
    longer, factor, _ = fit_crowd(alone, exchange, alone + exchange, least=1.5)
    assert longer == 1.5
    assert factor < 1.0


def test_a_network_whose_exchange_hides_does_not_speak_for_the_others() -> None:
    alone, exchange = np.array([3e-3, 9e-3, 7e-2, 2e-2]), np.array([1e-2, 0.14, 0.7, 0.3])
    steps = 1.1 * alone + 0.9 * exchange * [0, 1, 1, 1]
    assert fit_crowd(alone, exchange, steps)[1] == pytest.approx(0.9, rel=0.05)


@pytest.fixture
def crowd_of_three() -> tuple[Cluster, Cluster, Crowd]:
    """A cluster as exchanges back to back tell it, the true one, and steps on the true one."""
    link = one_level(latency_s=2e-5, bandwidth=1e9, floor_s=2e-4)
    told = replace(
        link,
        n_cores=2,
        exchange_floors_s=(0.0, 2e-4, 4e-3),
        exchange_slowdowns=(1.0, 1.0, 1.0),
    )
    truth = replace(told, exchange_floors_s=(0.0, 2e-4, 1e-3), exchange_slowdowns=(1, 1, 2.0))
    sizes: list[tuple[str, dict[str, int]]] = [
        ("mlp", {"hidden": 1, "width": 32}),
        ("mlp", {"hidden": 1, "width": 1024}),
        ("mlp", {"hidden": 2, "width": 640}),
        ("resnet18", {"filters": 40, "image_size": 32, "n_classes": 10}),
    ]
    graphs = tuple(load_workload(name).graph(values) for name, values in sizes)
    alone = np.array([2e-3, 6e-3, 1e-2, 6e-2])
    crowd = Crowd(alone_s=alone, together_s=alone, exchanged_s=alone, graphs=graphs)
    steps = 1.5 * alone + crowd.exchange_s(truth, 3)
    return told, truth, replace(crowd, exchanged_s=steps)


def test_an_exchange_of_crowded_workers_begins_sooner_within_steps(crowd_of_three) -> None:
    told, truth, crowd = crowd_of_three
    found = _with_crowds(told, {3: crowd})
    assert found.slowdowns[2] == pytest.approx(1.0, abs=0.05)
    assert crowd.exchange_s(found, 3) == pytest.approx(crowd.exchange_s(truth, 3), rel=0.15)
    assert crowd.exchange_s(told, 3)[0] > 1.9 * crowd.exchange_s(truth, 3)[0]


def test_exchanges_of_a_network_go_in_buckets_with_its_buffers(crowd_of_three) -> None:
    told, _, crowd = crowd_of_three
    small, one_bucket, two_buckets, normalised = crowd.exchange_s(told, 3)
    assert small == pytest.approx(4e-3)
    assert one_bucket == pytest.approx(max(4e-3, all_reduce(told, 4.0 * 814_090, 3)))
    assert two_buckets == pytest.approx(2 * 4e-3)
    assert normalised > all_reduce(told, crowd.graphs[3].total("n_parameters") * 4.0, 3) + 4e-3


def test_a_step_of_many_lasts_as_long_as_its_slowest_worker() -> None:
    one_life, another = [[1.0, 5.0, 2.0], [3.0, 4.0, 2.5]], [[9.0, 2.4], [2.6, 9.0]]
    assert pace_together([one_life, another], shares_cores=False) == 2.5


def test_steps_that_exchange_count_no_moment_twice() -> None:
    held_up, waiting = [1.5, 1.0, 1.0], [1.0, 1.5, 1.0]
    assert pace_exchanged([[held_up, waiting]], shares_cores=False) == 1.0
    lives = [[[3.0, 3.0], [3.0, 3.0]], [[2.0, 9.0], [2.0, 9.0]]]
    assert pace_exchanged(lives, shares_cores=False) == 2.0
    late = [[5.0, 5.0, 5.0], [5.5, 4.5, 5.0]]  # one ends its first step late
    assert pace_together([late], shares_cores=False) == 5.0
    assert pace_exchanged([late], shares_cores=False) == pytest.approx(4.5)


def test_a_lucky_step_of_workers_that_share_cores_is_not_their_pace() -> None:
    lucky = [[6.0, 2.0, 6.0, 6.0, 6.0], [6.0, 2.0, 6.0, 6.0, 6.0]]
    assert pace_exchanged([lucky], shares_cores=True) == 6.0
    assert pace_together([lucky], shares_cores=True) == 6.0


SIZES = np.array([2.0**13, 2**16, 2**19, 2**22])


def test_work_around_divided_exchanges_is_found_beside_the_link() -> None:
    cluster = one_level(latency_s=3e-4, bandwidth=1e9)
    noise = np.random.default_rng(0).normal(1, 0.02, len(SIZES))
    gathers = (all_gather(cluster, SIZES, 2) + 1e-4 + 5e-10 * SIZES) * noise
    halos = (point_to_point(cluster, SIZES / 8) + 3e-4 + 2e-10 * SIZES) * noise
    rows = [
        {"kind": kind, "n_bytes": n, "sent_bytes": n / sent, "alone_s": 1e-3, "seconds": 1e-3 + t}
        for kind, sent, times in (("all_gather", 1, gathers), ("point_to_point", 8, halos))
        for n, t in zip(SIZES, times, strict=True)
    ]
    found = fit_divided(cluster, rows, 2)
    assert found["divided_all_gather"].s_per_output_byte == pytest.approx(5e-10, rel=0.25)
    assert found["divided_point_to_point"].launch_s == pytest.approx(3e-4, rel=0.25)


def test_work_around_sharded_units_is_found_beside_the_whole_step() -> None:
    cluster = one_level(latency_s=3e-4, bandwidth=1e9)
    rows = []
    for n_bytes, n_units in ((1e3, 8), (1e3, 4), (5e5, 4), (5e6, 3)):
        alone = 1e-3 + n_units * 1e-9 * n_bytes
        gather = all_gather(cluster, n_bytes, 2) + 1e-3 + 5e-10 * n_bytes
        scatter = reduce_scatter(cluster, n_bytes, 2) + 2e-3 + 2e-9 * n_bytes
        for stage, extra in ((0, 0.0), (2, gather + scatter), (3, 2 * gather + scatter)):
            figures = {"n_units": n_units, "n_bytes": n_bytes, "stage": stage}
            rows.append({**figures, "seconds": float(alone + n_units * extra)})
    found = fit_sharded(cluster, rows, 2)
    assert found["sharded_all_gather"].launch_s == pytest.approx(1e-3, rel=1e-3)
    assert found["sharded_reduce_scatter"].s_per_output_byte == pytest.approx(2e-9, rel=1e-3)


def test_what_messages_take_from_micro_batches_is_found() -> None:
    rows = [
        {"n_bytes": n, "talks": talks, "seconds": 5e-3 + talks * (6e-4 + 4e-9 * n)}
        for n in SIZES
        for talks in (False, True)
    ]
    line = fit_piped(rows)["piped_point_to_point"]
    assert (line.launch_s, line.s_per_output_byte) == pytest.approx((6e-4, 4e-9))
    assert fit_piped([]) == {}


def test_work_that_is_not_there_is_none() -> None:
    """Where the link alone explains what was measured, or more than that."""
    cluster = one_level(latency_s=3e-4, bandwidth=1e9)
    rows = [
        {"kind": "all_reduce", "n_bytes": n, "sent_bytes": n, "alone_s": 0.0, "seconds": 0.8 * t}
        for n, t in zip(SIZES, all_reduce(cluster, SIZES, 2), strict=True)
    ]
    assert fit_divided(cluster, rows, 2) == {"divided_all_reduce": Kernel()}


def test_a_busy_machine_is_said_to_be_busy() -> None:
    quiet = Calibration(cluster=one_level(), network_errors={"a": 0.1}, load=0.0)
    busy = Calibration(cluster=one_level(), network_errors={"a": 0.1}, load=100.0)
    assert "busy" in str(busy) and "busy" not in str(quiet)
    assert not Calibration(cluster=one_level(), network_errors={"a": 0.1}).is_disturbed


@pytest.mark.parametrize("workers", [(), (0,), (1, -2), (True,), (1.5,)])
def test_numbers_of_workers_are_whole_and_positive(workers) -> None:
    with pytest.raises(InvalidInputError, match="positive whole numbers"):
        calibrate(workers=workers)


def test_without_torch_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FrameworkExecutor, "python", property(lambda self: None))
    with pytest.raises(MissingDependencyError, match=r"paceline\[torch\]"):
        calibrate()


def test_the_command_line_names_what_is_wrong(tmp_path: Path) -> None:
    out = str(tmp_path / "here.toml")
    done = CliRunner().invoke(command, ["calibrate", "-o", out, "--workers", "1,x"])
    assert isinstance(done.exception, InvalidInputError) and "1,x" in str(done.exception)
    done = CliRunner().invoke(command, ["calibrate", "-o", str(tmp_path / "no" / "here.toml")])
    assert isinstance(done.exception, InvalidInputError)


SMALL = (
    NetworkProbe(workload="mlp", values={"width": 32}, batch=4, n_steps=2),
    NetworkProbe(workload="lenet5", values={"filters": 4}, batch=2, n_steps=2),
)


@pytest.mark.plans
@pytest.mark.slow
def test_a_small_calibration_gives_a_cluster_file(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    seen: list[tuple[int, int, str]] = []
    found = calibrate(
        workers=(2,), n_lives=1, probes=SMALL, progress=lambda *step: seen.append(step)
    )
    assert seen[-1][0] == seen[-1][1] > 5
    save_cluster(found.cluster, tmp_path / "here.toml")
    cluster = load_cluster(tmp_path / "here.toml")
    assert cluster == found.cluster
    assert {"linear", "linear_backward", "conv", "update_adam"} <= set(cluster.device.kernels)
    around = {"divided_all_gather", "sharded_reduce_scatter", "piped_point_to_point"}
    assert around <= set(cluster.device.kernels)
    shards = [k for name, k in cluster.device.kernels.items() if name.startswith("sharded_")]
    assert sum(k.launch_s + k.s_per_output_byte for k in shards) > 0
    assert cluster.device.peak_flops["float32"] > 1e8 and cluster.n_devices == 2
    times = all_reduce(cluster, [1e3, 1e6, 1e9], 2)
    assert 0 < times[0] <= times[1] < times[2]
    assert found.exchange_error is not None and "held out" in str(found)


@pytest.mark.plans
@pytest.mark.slow
def test_a_failed_calibration_leaves_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    pids: list[int] = []
    run = WorkerPool.run

    def failing(pool: WorkerPool, job, timeout_s: float):
        pool.start()
        pids.extend(pool.pids)
        return run(pool, job, 1e-3)

    monkeypatch.setattr(WorkerPool, "run", failing)
    with pytest.raises(ExecutionError):
        calibrate(workers=(2,), n_lives=1, probes=SMALL)
    listed = subprocess.run(["ps", "-o", "pid="], capture_output=True, text=True)
    assert pids and not set(map(str, pids)) & set(listed.stdout.split())


@pytest.mark.parametrize(("step_share", "share"), [(0.8, 0.8), (3.0, 1.0)])
def test_layers_are_no_longer_than_a_step_without_clocks(step_share: float, share: float) -> None:
    graph = NetworkProbe(
        workload="mlp", values={"hidden": 1, "width": 8}, batch=4, n_steps=1
    ).graph
    names = [layer.name for layer in graph.layers if layer.kind != "loss"]
    rows = [{"name": name, "forward_s": 0.5, "backward_s": 0.5} for name in (*names, "_rest")]
    whole = {"_input": 0.1, "_update_adam": 0.2, "_step": 0.3 + step_share * len(rows)}
    rows += [{"name": name, "forward_s": seconds} for name, seconds in whole.items()]
    times = layer_times(graph, 4, rows)
    backward = {round(t.seconds, 12) for t in times if t.kernel.endswith("_backward")}
    assert sorted(backward) == pytest.approx([0.5 * share])
