"""The search for a plan: against every scenario there is, and what it says of its choice."""

import re
from dataclasses import replace

import numpy as np
import pytest

from paceline.clusters import load_cluster
from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.oracle import SECONDS, cut_step, simulate, sweep
from paceline.planners import (
    compare_schedules,
    list_events,
    pareto_front,
    plan_training,
    predicted_run,
    search_plans,
)
from paceline.planners._shortlist import sift
from paceline.planners._stages import cut_places, ends_of
from paceline.planners._task import Task
from paceline.scenario import Strategy, load_plan, save_plan
from paceline.workloads import load_workload

SMALL = {"image_size": 64, "filters": 16}


@pytest.fixture(scope="module")
def graph():
    return load_workload("resnet18").graph(SMALL)


@pytest.fixture(scope="module")
def cluster():
    return load_cluster("abci")


@pytest.fixture(scope="module")
def piped(graph, cluster):
    return search_plans(graph, cluster, 4, 64, names=["data+pipeline", "pipeline", "gpipe"])


def test_without_a_pipeline_the_plan_is_the_best_of_the_whole_sweep(graph, cluster):
    names = ["serial", "data", "data+accumulation", "zero2", "zero3", "filter", "data+filter"]
    found = search_plans(graph, cluster, 8, 64, names=names)
    task = Task(graph=graph, cluster=cluster, n_devices=8, global_batch=64)
    everything = sift(task, names, (), False).result
    assert found.n_scenarios == len(everything)
    least = everything.step_s[everything.fits].min()
    assert found.plan.predicted["step_s"] == pytest.approx(least)


def test_the_parts_of_a_step_add_up_to_it(piped):
    predicted = piped.plan.predicted
    assert sum(predicted[name] for name in SECONDS) == pytest.approx(predicted["step_s"])
    assert all(predicted[name] >= 0 for name in SECONDS)


def test_a_pipeline_takes_what_its_simulation_says(piped, graph, cluster):
    plan = piped.plan
    ends = ends_of(graph, plan.stages)
    cut = cut_step(graph, cluster, plan.strategy, ends, global_batch=64)
    run = simulate(
        plan.strategy.schedule,
        cut.forward_s,
        cut.backward_s,
        n_micro_batches=plan.strategy.micro_batches,
        transfer_s=cut.transfer_s,
    )
    rest = ("update_s", "gradient_s")
    assert plan.predicted["step_s"] == pytest.approx(
        run.step_s + sum(plan.predicted[name] for name in rest)
    )
    again = predicted_run(plan, graph, cluster)
    assert again is not None and again.step_s == pytest.approx(run.step_s)


def test_the_exact_cut_is_at_least_as_fast_as_the_quick_one(graph, cluster):
    for strategy in (
        Strategy(pipeline=3, micro_batches=8),
        Strategy(data=2, pipeline=4, micro_batches=16),
    ):
        plan = plan_training(graph, cluster, 8, 96 * 2, strategies=[strategy], runnable_only=False)
        quick = cut_step(graph, cluster, strategy, global_batch=96 * 2)
        run = simulate(
            "1f1b",
            quick.forward_s,
            quick.backward_s,
            n_micro_batches=strategy.micro_batches,
            transfer_s=quick.transfer_s,
        )
        assert plan.strategy == strategy
        passes = plan.predicted["step_s"] - sum(
            plan.predicted[name] for name in ("update_s", "gradient_s")
        )
        assert passes <= run.step_s * (1 + 1e-9)


def test_a_sweep_and_a_cut_step_agree(graph, cluster):
    for strategy in (
        Strategy(data=4, shard=3),
        Strategy(data=2, pipeline=4, micro_batches=8),
        Strategy(pipeline=2, virtual_stages=2, schedule="interleaved", micro_batches=4),
        Strategy(data=2, spatial=2, recompute=True),
    ):
        row = sweep(graph, cluster, [strategy], global_batch=64)
        cut = cut_step(graph, cluster, strategy, global_batch=64)
        assert cut.figures["step_s"] == pytest.approx(float(row.step_s[0]))
        assert cut.memory_bytes.max() == pytest.approx(float(row.memory_bytes[0]))


def test_every_stage_holds_weights_and_no_unit_is_cut(piped, graph):
    begins = {first for first, _ in graph.units}
    for stage in piped.plan.stages:
        assert stage.first in begins
        assert sum(x.n_parameters for x in graph.layers[stage.first : stage.end]) > 0
    places = cut_places(graph, with_weights=True)
    assert places[-1] == len(graph.units) and len(places) < len(graph.units)


def test_placement_names_every_device_once_and_keeps_neighbours_together(graph, cluster):
    strategy = Strategy(data=4, filter=2)
    plan = plan_training(graph, cluster, 8, 64, strategies=[strategy])
    assert plan.placement == ((0, 1), (2, 3), (4, 5), (6, 7))
    pipe = plan_training(
        graph, cluster, 8, 64, strategies=[Strategy(pipeline=4, data=2, micro_batches=8)]
    )
    assert sorted(d for row in pipe.placement for d in row) == list(range(8))


def test_the_plan_says_why_and_how_far_behind_the_others_are(piped):
    plan = piped.plan
    assert str(plan.strategy) in plan.reasons[0]
    assert any("slowest, stage" in reason for reason in plan.reasons)
    assert any("GiB" in reason for reason in plan.reasons)
    assert plan.runners_up
    for other in plan.runners_up:
        assert other["behind"] == pytest.approx(other["step_s"] / plan.predicted["step_s"] - 1)
        assert other["behind"] >= 0


def test_the_cheapest_is_compared_by_device_time(graph, cluster):
    names = ["serial", "data", "filter"]
    plan = plan_training(graph, cluster, 8, 64, objective="cheapest", names=names)
    assert plan.runners_up
    for other in plan.runners_up:
        device_s = other["step_s"] * other["n_devices"]
        assert other["behind"] == pytest.approx(device_s / plan.predicted["device_s"] - 1)
        assert other["behind"] >= 0
    assert re.search(r"costs [\d.]+ % more device time\.$", plan.reasons[1])


def test_the_fastest_may_use_fewer_devices_unless_all_must_be(cluster):
    graph = load_workload("lenet5").graph()
    free = plan_training(graph, cluster, 64, 64)
    forced = plan_training(graph, cluster, 64, 64, use_all=True)
    assert free.strategy.n_devices < 64 and forced.strategy.n_devices == 64
    assert free.predicted["step_s"] < forced.predicted["step_s"]
    assert any("64 devices are used" in reason for reason in free.reasons)


def test_objectives_order_plans_by_time_cost_and_devices(graph, cluster):
    fastest = plan_training(graph, cluster, 16, 256)
    cheapest = plan_training(graph, cluster, 16, 256, objective="cheapest")
    assert fastest.predicted["step_s"] <= cheapest.predicted["step_s"]
    assert cheapest.predicted["device_s"] <= fastest.predicted["device_s"]
    epoch_s = 2.5 * fastest.predicted["epoch_s"]
    fewest = plan_training(graph, cluster, 16, 256, objective="fewest", deadline_s=epoch_s)
    assert fewest.predicted["epoch_s"] <= epoch_s
    assert fewest.strategy.n_devices < fastest.strategy.n_devices
    half = fewest.strategy.n_devices // 2
    with pytest.raises(InfeasibleError, match="must take at most"):
        plan_training(graph, cluster, half, 256, objective="fewest", deadline_s=epoch_s)


def test_a_deadline_that_nothing_meets_says_how_long_the_fastest_takes(graph, cluster):
    with pytest.raises(InfeasibleError, match=r"at most 1 ms, but the fastest plan, .* takes"):
        plan_training(graph, cluster, 4, 64, deadline_s=1e-3)


def test_memory_that_is_short_is_named_with_its_stage(graph, cluster):
    tiny = replace(cluster, device=replace(cluster.device, memory_bytes=2e6))
    with pytest.raises(InfeasibleError) as stopped:
        plan_training(graph, tiny, 4, 64, names=["pipeline"])
    text = str(stopped.value)
    assert "stage" in text and "GiB more than the 0.00186 GiB" in text
    with pytest.raises(InfeasibleError, match="on a device"):
        plan_training(graph, tiny, 4, 64, names=["data"])


def test_a_better_cut_may_fit_where_the_quick_one_does_not(graph, cluster):
    strategy = Strategy(pipeline=4, micro_batches=8)
    quick = cut_step(graph, cluster, strategy, global_batch=256).memory_bytes
    found = search_plans(graph, cluster, 4, 256, strategies=[strategy])
    between = (max(found.memory_bytes) + quick.max()) / 2
    if max(found.memory_bytes) < quick.max():
        tight = replace(cluster, device=replace(cluster.device, memory_bytes=between))
        assert search_plans(graph, tight, 4, 256, strategies=[strategy]).plan.strategy == strategy


def test_memory_limits_move_the_cut(graph, cluster):
    strategy = Strategy(pipeline=2, micro_batches=4)
    free = search_plans(graph, cluster, 2, 256, strategies=[strategy])
    limit = 0.97 * max(free.memory_bytes)
    tight = replace(cluster, device=replace(cluster.device, memory_bytes=limit))
    try:
        moved = search_plans(graph, tight, 2, 256, strategies=[strategy])
    except InfeasibleError as error:
        assert "GiB more" in str(error)
    else:
        assert max(moved.memory_bytes) <= limit
        assert moved.plan.predicted["step_s"] >= free.plan.predicted["step_s"] * (1 - 1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategies": [Strategy(pipeline=64, micro_batches=2)]}, "64 pieces"),
        ({"strategies": [Strategy(pipeline=16, micro_batches=2)]}, "at most 11 pieces"),
        ({"strategies": [Strategy(data=3)]}, "must be a multiple of 3"),
        ({"strategies": [Strategy(data=128)]}, "at most 64 devices"),
        ({"names": ["tensor+pipeline"]}, "no worker runs pipeline with tensor"),
        ({"objective": "fewest"}, "needs a deadline"),
        ({"deadline_s": -1.0}, "must be positive"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(graph, cluster, options, words):
    with pytest.raises(InvalidInputError, match=words):
        plan_training(graph, cluster, 64, 64, **options)


def test_unknown_objectives_and_strategies_suggest_the_nearest(graph, cluster):
    with pytest.raises(UnknownNameError, match="Did you mean 'fastest'"):
        plan_training(graph, cluster, 4, 64, objective="fastets")
    with pytest.raises(UnknownNameError, match="Did you mean 'pipeline'"):
        plan_training(graph, cluster, 4, 64, names=["pipline"])


def test_devices_that_are_not_there_are_refused(graph, cluster):
    node = replace(cluster, levels=cluster.levels[:1])
    for here, n in ((replace(cluster, n_devices=8), 8), (node, 4)):
        words = rf"more devices than abci has \({n}\), but got 16. Try: --devices {n}$"
        with pytest.raises(InvalidInputError, match=words):
            plan_training(graph, here, 16, 64)


def test_a_predictor_takes_the_place_of_the_oracles_times(graph, cluster):
    class LikesFilters:
        def predict(self, scenarios):
            return np.array([1.0 if s.strategy.filter > 1 else 2.0 for s in scenarios])

    plan = plan_training(graph, cluster, 4, 64, predictor=LikesFilters())
    assert plan.strategy.filter > 1 and plan.predicted["step_s"] == 1.0
    assert "forward_s" not in plan.predicted and plan.predicted["oracle_step_s"] != 1.0


def test_a_plan_survives_its_file(piped, tmp_path):
    save_plan(piped.plan, tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == piped.plan


def test_a_plan_of_another_network_is_refused(piped, cluster):
    other = load_workload("resnet18").graph({**SMALL, "filters": 8})
    with pytest.raises(InvalidInputError, match="fingerprint"):
        predicted_run(piped.plan, other, cluster)


def test_the_front_holds_what_nothing_beats(piped):
    rows = [[r["step_s"], r["n_devices"], r["memory_bytes"]] for r in piped.front]
    assert len(pareto_front(rows)) == len(rows)
    assert piped.front[0]["step_s"] == pytest.approx(piped.plan.predicted["step_s"])
    assert all(r["device_s"] == pytest.approx(r["step_s"] * r["n_devices"]) for r in piped.front)


def test_the_front_equals_comparing_all_pairs():
    points = np.random.default_rng(0).integers(0, 8, size=(200, 3)).astype(float)
    kept = {tuple(points[i]) for i in pareto_front(points)}
    beaten = {tuple(a) for a in points for b in points if (b <= a).all() and (b < a).any()}
    assert kept == {tuple(p) for p in points} - beaten


def test_schedules_of_one_cut_are_compared(graph, cluster, piped):
    task = Task(graph=graph, cluster=cluster, n_devices=4, global_batch=64)
    strategy = Strategy(pipeline=4, micro_batches=16)
    ends = ends_of(graph, plan_training(graph, cluster, 4, 64, strategies=[strategy]).stages)
    found = compare_schedules(task, strategy, ends)
    assert found["sequential"]["step_s"] > 1.5 * found["1f1b"]["step_s"]
    assert found["unlocked"]["step_s"] <= found["1f1b"]["step_s"]
    assert found["gpipe"]["memory_bytes"] > found["1f1b"]["memory_bytes"]
    assert found["unlocked"]["memory_bytes"] >= found["1f1b"]["memory_bytes"]


def test_events_tell_every_pass(piped):
    events = list_events(piped.run)
    strategy = piped.plan.strategy
    assert len(events) == 2 * strategy.pipeline * strategy.micro_batches
    assert max(event["end_s"] for event in events) == piped.run.step_s
    assert [e["start_s"] for e in events] == sorted(e["start_s"] for e in events)


def test_large_plans_are_searched_without_working_everything_out():
    graph = load_workload("gpt").graph({"layers": 96, "width": 256, "heads": 8, "length": 64})
    found = search_plans(graph, load_cluster("dgx-a100"), 1024, 1024)
    assert found.n_scenarios > 1000 and found.n_worked_out < 40


def test_recomputation_is_planned_where_nothing_else_fits(cluster):
    graph = load_workload("gpt").graph({"layers": 24, "width": 256, "heads": 8, "length": 512})
    plain = search_plans(graph, cluster, 1, 16)
    whole = max(plain.memory_bytes)
    tight = replace(cluster, device=replace(cluster.device, memory_bytes=0.25 * whole))
    plan = plan_training(graph, tight, 1, 16, names=["serial", "recompute"])
    assert plan.strategy.recompute
