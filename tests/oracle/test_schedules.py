"""Pipelines simulated pass by pass, beside their closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle import (
    Pass,
    PipelineRun,
    check_order,
    pipeline_time,
    schedule_order,
    simulate,
    steady_step_time,
    torchgpipe_transfer_time,
    unequal_pass_time,
)

NAMES = ("gpipe", "1f1b", "interleaved", "sequential", "unlocked")
stage_times = st.lists(st.floats(0.01, 10.0), min_size=1, max_size=6)


def assert_possible(run: PipelineRun, transfer_s: float) -> None:
    """No stage does two things at once and nothing starts before its input has come."""
    ends = {one: end for one, _, end in run.passes()}
    n_pieces = run.piece.max() + 1
    for one, start, _ in run.passes():
        if one.backward:
            assert start >= ends[Pass(False, one.piece, one.micro_batch)] - 1e-9
        source = one.piece + (1 if one.backward else -1)
        if 0 <= source < n_pieces:
            come = ends[Pass(one.backward, source, one.micro_batch)] + transfer_s
            assert start >= come - 1e-9
    for stage in range(run.n_stages):
        here = np.argsort(run.start_s[run.stage == stage], kind="stable")
        starts, ends_s = (t[run.stage == stage][here] for t in (run.start_s, run.end_s))
        assert (starts[1:] >= ends_s[:-1] - 1e-9).all()


@given(stage_times, st.data(), st.integers(1, 9))
def test_the_exact_form_is_what_gpipe_takes(
    forward: list[float], data: st.DataObject, n: int
) -> None:
    k = len(forward)
    backward = data.draw(st.lists(st.floats(0.01, 10.0), min_size=k, max_size=k))
    run = simulate("gpipe", forward, backward, n_micro_batches=n)
    assert run.step_s == pytest.approx(float(pipeline_time(forward, backward, n)))


@given(stage_times, st.integers(1, 12))
def test_one_forward_one_backward_lies_between_its_form_and_gpipe(
    stage_s: list[float], n: int
) -> None:
    backward = [2 * t for t in stage_s]
    run = simulate("1f1b", stage_s, backward, n_micro_batches=n)
    assert run.step_s >= float(pipeline_time(stage_s, backward, n, form="1f1b")) - 1e-9
    assert run.step_s <= float(pipeline_time(stage_s, backward, n)) + 1e-9


def test_the_form_of_one_forward_one_backward_is_seldom_far_below_it() -> None:
    generator = np.random.default_rng(0)
    ratios = []
    for _ in range(300):
        n_stages, n = (int(x) for x in generator.integers(1, [9, 33]))
        forward, backward = generator.uniform([[0.5], [1.0]], [[1.5], [3.0]], (2, n_stages))
        run = simulate("1f1b", forward, backward, n_micro_batches=n)
        ratios.append(run.step_s / float(pipeline_time(forward, backward, n, form="1f1b")))
    assert min(ratios) > 1 - 1e-9
    assert np.mean(ratios) < 1.01
    assert np.quantile(ratios, 0.9) < 1.03


@pytest.mark.parametrize("schedule", NAMES)
@pytest.mark.parametrize(("n_stages", "n"), [(1, 1), (1, 4), (2, 2), (3, 6), (4, 4), (4, 8)])
def test_every_schedule_is_possible_and_complete(schedule: str, n_stages: int, n: int) -> None:
    virtual = 2 if schedule == "interleaved" else 1
    order = schedule_order(schedule, n_stages, n, virtual)
    check_order(order, n)
    generator = np.random.default_rng(n)
    shape = (n_stages * virtual, n)
    run = simulate(
        schedule,
        generator.uniform(0.1, 1, shape),
        generator.uniform(0.1, 1, shape),
        transfer_s=0.05,
        virtual_stages=virtual,
    )
    assert len(run.start_s) == 2 * n * n_stages * virtual
    assert_possible(run, 0.05)


@given(stage_times, st.integers(1, 6), st.floats(0, 2))
@settings(max_examples=40)
def test_sequential_takes_the_sum_of_everything(
    stage_s: list[float], n: int, transfer_s: float
) -> None:
    run = simulate("sequential", stage_s, stage_s, n_micro_batches=n, transfer_s=transfer_s)
    edges = 2 * (len(stage_s) - 1) * transfer_s
    assert run.step_s == pytest.approx(n * (2 * sum(stage_s) + edges))


@pytest.mark.parametrize("n_stages", [1, 2, 3, 5])
def test_unlocked_modules_hold_as_many_graphs_as_their_gradient_is_old(n_stages: int) -> None:
    n = 40
    generator = np.random.default_rng(n_stages)
    forward, backward = generator.uniform(0.1, 1, (2, n_stages))
    run = simulate("unlocked", forward, backward, n_micro_batches=n)
    last = n_stages - 1
    delays = [2 * (last - k) for k in range(n_stages)]
    assert run.peak_in_flight.tolist() == [
        max(d, 1) if k < last else 1 for k, d in enumerate(delays)
    ]
    longer = simulate("unlocked", forward, backward, n_micro_batches=2 * n)
    steady = (longer.step_s - run.step_s) / n
    assert steady == pytest.approx(steady_step_time(forward, backward))


def test_the_order_of_unlocked_modules_has_the_delay_of_fdg() -> None:
    n_stages, n = 4, 20
    for k, passes in enumerate(schedule_order("unlocked", n_stages, n)):
        forward = [p.micro_batch for p in passes if not p.backward]
        steps = {}
        for p in passes:
            if p.backward:
                done = passes[: passes.index(p)]
                steps[p.micro_batch] = sum(not q.backward for q in done) - 1
        delay = 2 * (n_stages - 1 - k)
        # a module that is not the last goes backward before it goes forward in the same step
        wanted = delay - (k < n_stages - 1)
        middle = [steps[m] - m for m in range(n - 2 * n_stages)]
        assert forward == list(range(n))
        assert middle == [wanted] * len(middle)


@pytest.mark.parametrize(("n_stages", "n"), [(2, 8), (4, 8), (4, 16)])
def test_in_flight_is_all_for_gpipe_and_the_stages_behind_for_1f1b(n_stages: int, n: int) -> None:
    ones = np.ones(n_stages)
    assert simulate("gpipe", ones, ones, n_micro_batches=n).peak_in_flight.tolist() == (
        [n] * n_stages
    )
    assert simulate("1f1b", ones, ones, n_micro_batches=n).peak_in_flight.tolist() == list(
        range(n_stages, 0, -1)
    )


@pytest.mark.parametrize("virtual", [1, 2, 3, 4])
@pytest.mark.parametrize(("n_stages", "n"), [(2, 4), (4, 8), (4, 16)])
def test_virtual_stages_divide_the_bubble(virtual: int, n_stages: int, n: int) -> None:
    """Narayanan et al. (2021): the bubble is (p - 1)/(v m) of the ideal time."""
    piece = np.full(n_stages * virtual, 1.0 / virtual)
    run = simulate("interleaved", piece, 2 * piece, n_micro_batches=n, virtual_stages=virtual)
    ideal = 3.0 * n
    assert run.step_s - ideal == pytest.approx(ideal * (n_stages - 1) / (virtual * n))
    whole = np.ones(n_stages)
    closed = pipeline_time(whole, 2 * whole, n, virtual_stages=virtual)
    assert run.step_s == pytest.approx(float(closed))


@pytest.mark.parametrize("schedule", NAMES)
@given(data=st.data())
@settings(max_examples=25)
def test_faster_stages_and_links_never_slow_a_step(schedule: str, data: st.DataObject) -> None:
    n_stages, groups = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    virtual = 2 if schedule == "interleaved" else 1
    n, n_pieces = n_stages * groups, n_stages * virtual
    times = data.draw(st.lists(st.floats(0.0, 2.0), min_size=3 * n_pieces, max_size=3 * n_pieces))
    gains = data.draw(st.lists(st.floats(0, 1), min_size=3 * n_pieces, max_size=3 * n_pieces))
    slow = np.array(times).reshape(3, n_pieces)
    fast = slow * np.array(gains).reshape(3, n_pieces)
    one, other = (
        simulate(
            schedule, t[0], t[1], n_micro_batches=n, transfer_s=t[2, 1:], virtual_stages=virtual
        ).step_s
        for t in (slow, fast)
    )
    assert other <= one + 1e-9


def test_a_transfer_waits_for_the_one_before_it() -> None:
    run = simulate("gpipe", [1.0, 1.0], [0.0, 0.0], n_micro_batches=3, transfer_s=5.0)
    starts = run.start_s[(run.stage == 1) & ~run.backward]
    assert starts.tolist() == [6.0, 11.0, 16.0]


def test_bubbles_are_the_share_of_waiting() -> None:
    run = simulate("gpipe", np.ones(4), np.ones(4), n_micro_batches=4)
    assert run.bubble_share == pytest.approx(3 / 7)
    assert simulate("1f1b", [1.0], [1.0], n_micro_batches=4).bubble_share == pytest.approx(0)
    assert str(run) == "4 stages, 4 micro-batches: 14 s, bubble 42.9%"


@given(st.integers(1, 4), st.data())
@settings(max_examples=40)
def test_equal_sizes_in_the_unequal_recurrence_are_gpipe(
    n_stages: int, data: st.DataObject
) -> None:
    batch = data.draw(st.sampled_from([4, 12, 24]))
    size = data.draw(st.sampled_from([b for b in range(1, batch + 1) if batch % b == 0]))
    three = [
        data.draw(st.lists(st.floats(0, 2), min_size=n_stages, max_size=n_stages)) for _ in "abc"
    ]
    fixed, sample, link = three
    got = unequal_pass_time(
        [size] * n_stages, batch, fixed_s=fixed, sample_s=sample, latency_s=link[1:]
    )
    run = simulate(
        "gpipe",
        np.array(fixed) + size * np.array(sample),
        np.zeros(n_stages),
        n_micro_batches=batch // size,
        transfer_s=link[1:],
        backward_transfer_s=0.0,
    )
    assert float(got) == pytest.approx(run.step_s)


def test_unequal_sizes_follow_the_written_recurrence() -> None:
    batch, sizes = 24, [[2, 3, 12], [24, 1, 4], [6, 6, 6], [1, 24, 2]]
    fixed, sample = [0.3, 0.1, 0.7], [0.05, 0.2, 0.11]
    latency, per_sample = [0.02, 0.4], [0.03, 0.001]
    got = unequal_pass_time(
        sizes,
        batch,
        fixed_s=fixed,
        sample_s=sample,
        latency_s=latency,
        transfer_sample_s=per_sample,
    )
    for candidate, time_s in zip(sizes, got, strict=True):
        come: dict[tuple[int, int], float] = {}
        for stage, b in enumerate(candidate):
            end = link = 0.0
            for j in range(1, batch // b + 1):
                need = -(-j * b // candidate[stage - 1]) if stage else 0
                end = max(end, come.get((stage - 1, need), 0.0)) + fixed[stage] + b * sample[stage]
                if stage < 2:
                    link = max(link, end) + latency[stage] + b * per_sample[stage]
                    come[stage, j] = link
        assert time_s == pytest.approx(end)


def test_forms_work_on_many_scenarios_at_once() -> None:
    stage_s = np.random.default_rng(0).uniform(0.1, 1, (5, 4))
    n = np.arange(1, 6)
    for form in ("exact", "paradl", "jansen", "1f1b"):
        got = pipeline_time(stage_s, 2 * stage_s, n, form=form)
        one = [pipeline_time(stage_s[i], 2 * stage_s[i], n[i], form=form) for i in range(5)]
        np.testing.assert_allclose(got, one)


@given(stage_times, st.integers(1, 9))
def test_the_printed_forms_bracket_the_exact_one(stage_s: list[float], n: int) -> None:
    exact = float(pipeline_time(stage_s, stage_s, n))
    assert pipeline_time(stage_s, stage_s, n, form="paradl") >= exact - 1e-9
    assert pipeline_time(stage_s, stage_s, n, form="jansen") <= exact + 1e-9
    equal = [1.0] * len(stage_s)
    forms = [float(pipeline_time(equal, equal, n, form=f)) for f in ("exact", "paradl", "jansen")]
    assert forms == pytest.approx([forms[0]] * 3)


def test_jansens_transfers_follow_the_written_sum() -> None:
    c, m = [1.0, 5.0, 2.0], 6  # four stages
    written = 2 * ((1 + 5) + (m - 2) * 5 + (5 + 2))
    assert torchgpipe_transfer_time(c, m) == pytest.approx(written)
    assert torchgpipe_transfer_time([], 3) == 0
    with pytest.raises(InvalidInputError, match="at least 2"):
        torchgpipe_transfer_time(c, 1)


@pytest.mark.parametrize(("unlocked", "wanted"), [("both", 6.0), ("backward", 7.0), ("none", 9.0)])
def test_unlocking_shortens_a_steady_step(unlocked: str, wanted: float) -> None:
    assert steady_step_time([1.0, 2.0], [2.0, 4.0], unlocked=unlocked) == wanted


def test_orders_that_wait_for_themselves_are_refused() -> None:
    forward, back = Pass(False, 0, 0), Pass(True, 0, 0)
    with pytest.raises(InvalidInputError, match="stage 0 waits at backward of micro-batch 0"):
        check_order([[back, forward]], 1)
    with pytest.raises(InvalidInputError, match="backward of micro-batch 0 through piece 0 never"):
        check_order([[forward]], 1)
    with pytest.raises(InvalidInputError, match="stage 0 has forward of micro-batch 0"):
        check_order([[forward, forward, back]], 1)
    crossed = [
        [Pass(False, 0, 0), Pass(True, 0, 0), Pass(False, 0, 1), Pass(True, 0, 1)],
        [Pass(False, 1, 0), Pass(False, 1, 1), Pass(True, 1, 0), Pass(True, 1, 1)],
    ]
    with pytest.raises(InvalidInputError, match="must not wait for itself"):
        simulate(tuple(map(tuple, crossed)), [1, 1], [1, 1], n_micro_batches=2)


def test_an_order_of_ones_own_is_simulated() -> None:
    order = schedule_order("1f1b", 3, 6)
    own = simulate(order, [1, 2, 3], [2, 1, 2], n_micro_batches=6)
    assert own.step_s == simulate("1f1b", [1, 2, 3], [2, 1, 2], n_micro_batches=6).step_s


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'gpipe'"):
        simulate("gpip", [1.0], [1.0], n_micro_batches=1)
    with pytest.raises(InvalidInputError, match="multiple of `n_stages`"):
        simulate("interleaved", np.ones(4), np.ones(4), n_micro_batches=3, virtual_stages=2)
    with pytest.raises(InvalidInputError, match="Only `interleaved`"):
        simulate("1f1b", np.ones(4), np.ones(4), n_micro_batches=2, virtual_stages=2)
    with pytest.raises(InvalidInputError, match="multiple of `virtual_stages`"):
        simulate("interleaved", np.ones(3), np.ones(3), n_micro_batches=2, virtual_stages=2)
    with pytest.raises(InvalidInputError, match=r"\(2,\) and \(3,\)"):
        simulate("gpipe", [1.0, 1.0], [1.0, 1.0, 1.0], n_micro_batches=2)
    with pytest.raises(InvalidInputError, match="not negative"):
        simulate("gpipe", [1.0, -1.0], [1.0, 1.0], n_micro_batches=2)
    with pytest.raises(InvalidInputError, match="edges"):
        simulate("gpipe", [1.0, 1.0], [1.0, 1.0], n_micro_batches=2, transfer_s=[1.0, 1.0, 1.0])
    with pytest.raises(InvalidInputError, match="divisor of `global_batch` 8, but got 3"):
        unequal_pass_time([2, 3], 8, fixed_s=0.0, sample_s=1.0)
    with pytest.raises(UnknownNameError, match="form"):
        pipeline_time([1.0], [1.0], 1, form="nonsense")
