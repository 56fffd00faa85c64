"""Phases of a step: equations by hand, planted runs, and properties that must hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline.estimators as e
from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.estimators._waiting import WorkerTimes
from paceline.executors import PHASES as EXECUTORS_PHASES

BASE = {"io": 1e-4, "h2d": 2e-4, "md": 1e-4, "forward": 4e-3, "backward": 8e-3, "update": 1e-3}

times = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=8)


def records(
    own: list[list[dict[str, float]]], transfer: float = 2e-3, hidden: float = 0.0
) -> list[dict[str, Any]]:
    """Return workers' records of given own work; they wait for each other and transfer."""
    n_workers = len(own)
    for phases in zip(*own, strict=True):
        sums = [sum(p.values()) for p in phases]
        for p, total in zip(phases, sums, strict=True):
            p |= {"wait": max(sums) - total, "transfer": transfer if n_workers > 1 else 0.0}
    return [
        {"rank": i, "phases": steps, "step_s": [sum(p.values()) - hidden for p in steps]}
        for i, steps in enumerate(own)
    ]


def run(
    n_workers: int,
    *,
    n_steps: int = 30,
    excess: Mapping[tuple[int, str], float] | None = None,
    jitter: float = 0.0,
    seed: int = 0,
    device_batch: int = 16,
    **more: float,
) -> e.PhaseTable:
    rng = np.random.default_rng(seed)
    own = [
        [
            {
                p: t + (excess or {}).get((i, p), 0.0) + t * jitter * rng.random()
                for p, t in BASE.items()
            }
            for _ in range(n_steps)
        ]
        for i in range(n_workers)
    ]
    return e.PhaseTable.from_workers(records(own, **more), [device_batch] * n_workers)


class TestTable:
    def test_phases_are_those_that_executors_time(self) -> None:
        assert e.PHASES == EXECUTORS_PHASES
        assert set(e.OWN_PHASES) | set(e.COMM_PHASES) == set(e.PHASES)

    def test_records_become_rows_whatever_their_order(self) -> None:
        first, second = {"rank": 0, "phases": [{"io": 1.0}]}, {"rank": 1, "phases": [{"io": 2.0}]}
        table = e.PhaseTable.from_workers([second, first], [4, 6])
        assert table.own_s().tolist() == [[1.0, 2.0]]
        assert (table.n_workers, table.n_steps, table.global_batch) == (2, 1, 10)
        assert str(table) == "1 steps of 2 workers, 1 phases"

    def test_a_merged_phase_is_kept_as_said_and_not_invented(self) -> None:
        worker = {"phases": [{"forward": 1.0, "backward": 3.0}], "merged": {"backward": ["wait"]}}
        table = e.PhaseTable.from_workers([worker | {"rank": i} for i in range(2)])
        assert table.merged == {"backward": ("wait",)}
        assert table.phases == ("forward", "backward")
        assert set(e.phase_table_3_2({("n", "f", 2): table}, 2)["phase"]) == {
            *("forward", "backward", "step")
        }

    def test_imbalance_is_refused_where_waiting_is_inside_own_work(self) -> None:
        worker = {"phases": [{"backward": 3.0}], "merged": {"backward": ["transfer"]}}
        table = e.PhaseTable.from_workers([worker | {"rank": i} for i in range(2)])
        with pytest.raises(InvalidInputError, match="`backward` holds `transfer`"):
            e.lif_by_step(table)
        shown = e.lif_3_4({("cnn", "chainer", 2): table}).iloc[0]
        assert math.isnan(shown["mean"])
        assert "apart from waiting" in shown["problem"]

    def test_wait_merged_with_transfer_does_no_harm(self) -> None:
        worker = {"phases": [{"io": 1.0, "transfer": 3.0}], "merged": {"transfer": ["wait"]}}
        table = e.PhaseTable.from_workers([worker | {"rank": i} for i in range(2)])
        assert e.lif_over_run(table) == 1
        assert table.typical().comm_s == 3.0

    def test_steps_timed_as_wholes_are_preferred_to_the_sum_of_phases(self) -> None:
        worker = {"rank": 0, "phases": [{"io": 1.0}], "phase_step_s": [1.25]}
        assert e.PhaseTable.from_workers([worker]).unoverlapped_s().tolist() == [1.25]
        del worker["phase_step_s"]
        assert e.PhaseTable.from_workers([worker]).unoverlapped_s().tolist() == [1.0]

    def test_a_first_epoch_can_be_left_out(self) -> None:
        steps = [{"io": 9.0}, {"io": 1.0}, {"io": 2.0}]
        worker = {"rank": 0, "phases": steps, "step_s": [9.0, 1.0, 2.0]}
        table = e.PhaseTable.from_workers([worker]).skip(1)
        assert table.own_s().ravel().tolist() == [1.0, 2.0]
        assert table.overlapped_s().tolist() == [1.0, 2.0]

    def test_layers_are_compared_with_their_phase(self) -> None:
        layers = [
            {"name": "conv", "forward_s": 3.0, "backward_s": 5.0},
            {"name": "linear", "forward_s": 0.8, "backward_s": 4.0},
        ]
        worker = {"rank": 0, "phases": [{"forward": 4.0, "backward": 10.0}], "layers": layers}
        shares = e.layer_coverage(e.PhaseTable.from_workers([worker]))["share"]
        assert shares.tolist() == pytest.approx([0.95, 0.9])

    @pytest.mark.parametrize(
        ("workers", "message"),
        [
            ([{"rank": 0, "phases": []}], "must have been timed"),
            ([{"rank": 0, "phases": [{"io": -1.0}]}], "not negative"),
            ([{"rank": 0, "phases": [{"io": math.nan}]}], "finite"),
            (
                [{"rank": 0, "phases": [{"io": 1}]}, {"rank": 1, "phases": [{"io": 1}] * 2}],
                "worker 0: 1, worker 1: 2",
            ),
        ],
    )
    def test_bad_records_are_refused(self, workers: list[dict[str, Any]], message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            e.PhaseTable.from_workers(workers)

    def test_a_misspelt_phase_is_named(self) -> None:
        with pytest.raises(UnknownNameError, match="Did you mean 'backward'"):
            e.PhaseTable.from_workers([{"rank": 0, "phases": [{"backwards": 1.0}]}])

    def test_missing_columns_and_batches_are_named(self) -> None:
        with pytest.raises(InvalidInputError, match="seconds is missing"):
            e.PhaseTable(rows=pd.DataFrame({"worker": [0], "step": [0], "phase": ["io"]}))
        with pytest.raises(InvalidInputError, match="got 1 for 2 workers"):
            e.PhaseTable.from_workers(records([[dict(BASE)], [dict(BASE)]]), [4])

    def test_a_phase_given_twice_is_refused(self) -> None:
        row = {"worker": 0, "step": 0, "phase": "io", "seconds": 1.0}
        with pytest.raises(InvalidInputError, match="one row per worker and step"):
            e.PhaseTable(rows=pd.DataFrame([row, row]))


class TestEquations:
    P = e.StepPhases(io_s=1, h2d_s=2, md_s=4, forward_s=8, backward_s=16, comm_s=32, update_s=64)

    def test_steps_by_hand(self) -> None:
        assert e.sgd_step_s(self.P) == 1 + 2 + 8 + 16 + 64
        assert e.ssgd_step_s(self.P) == 1 + 2 + 8 + 16 + 32 + 64
        assert e.one_device_step_s(self.P) == 1 + 2 + 4 + 8 + 16 + 64
        assert e.pipelined_step_s(self.P) == 8 + 16 + 64

    def test_reading_dominates_a_pipelined_step_when_it_is_slower(self) -> None:
        slow = e.StepPhases(io_s=50, h2d_s=2, md_s=4, forward_s=8, backward_s=16, update_s=1)
        assert e.pipelined_step_s(slow) == 52
        assert e.pipelined_step_s(slow, with_division=True) == 56

    def test_the_slowest_device_decides(self) -> None:
        other = e.StepPhases(io_s=3, forward_s=60, backward_s=16, comm_s=2, update_s=0)
        shared = ((1 + 2 + 4 + 64) + 3) / 2
        assert e.slowest_device_step_s([self.P, other]) == shared + max(8 + 16 + 32, 78)
        assert e.slowest_device_step_s([self.P]) == e.one_device_step_s(self.P) + 32
        with pytest.raises(InvalidInputError, match="at least one worker"):
            e.slowest_device_step_s([])

    def test_speedups_by_hand(self) -> None:
        many = e.StepPhases(io_s=5, md_s=4, comm_s=32, forward_s=16, backward_s=16, update_s=64)
        assert e.weak_speedup(4, 10.0, 16.0) == 2.5
        assert e.printed_speedup(4, self.P, many) == 4 * 88 / (8 + 16 + 32)
        assert e.iucc_speedup(4, self.P, many) == 4 * 24 / (24 + 32)
        assert e.exposed_speedup(4, self.P, many, comm_exposed_s=12) == 4 * 88 / 100
        shared = e.exposed_speedup(4, self.P, many, comm_exposed_s=12, is_compute_shared=True)
        assert shared == 4 * 88 / (16 + 16 + 64 + 12)

    def test_a_step_without_time_has_no_speedup(self) -> None:
        with pytest.raises(InvalidInputError, match="must take time"):
            e.weak_speedup(2, 1.0, 0.0)

    @given(st.floats(0, 10), st.floats(0, 10), st.integers(1, 64))
    def test_ours_never_exceeds_the_devices_and_falls_with_exposed_comm(
        self, one: float, other: float, n: int
    ) -> None:
        low, high = sorted((one, other))
        speedups = [e.exposed_speedup(n, self.P, self.P, comm_exposed_s=c) for c in (low, high)]
        assert n >= speedups[0] >= speedups[1] > 0

    def test_phases_of_a_planted_run_predict_its_step(self) -> None:
        table = run(2, excess={(1, "backward"): 2e-3}, hidden=1e-3)
        steps = e.predict_steps(table).set_index("equation")["step_s"]
        step = sum(BASE.values()) + 2e-3 + 2e-3
        assert steps["own work"] == pytest.approx(step)
        assert steps["3.3"] == pytest.approx(step)
        assert steps["3.2"] == pytest.approx(step - BASE["md"])  # waiting is in c, md left out
        assert steps["measured, no overlap"] == pytest.approx(step)
        assert steps["measured, overlapped"] == pytest.approx(step - 1e-3)


class TestSpeedup:
    def test_hidden_aggregation_is_measured_from_the_two_passes(self) -> None:
        overlap = e.measure_overlap(run(2, hidden=0.5e-3))
        assert overlap.comm_s == pytest.approx(2e-3)
        assert overlap.hidden_s == pytest.approx(0.5e-3)
        assert overlap.exposed_s == pytest.approx(1.5e-3)
        assert overlap.hidden_share == pytest.approx(0.25)
        assert not overlap.is_bounded

    @pytest.mark.parametrize(("hidden", "expected"), [(5e-3, 2e-3), (-1e-3, 0.0)])
    def test_what_is_hidden_is_bounded_by_the_aggregation_and_says_so(
        self, hidden: float, expected: float
    ) -> None:
        overlap = e.measure_overlap(run(2, hidden=hidden))
        assert overlap.hidden_s == pytest.approx(expected)
        assert overlap.is_bounded

    def test_predicted_and_measured_agree_on_a_run_that_follows_the_model(self) -> None:
        many = run(2, hidden=0.5e-3)
        report = e.report_speedup(run(1), many)
        assert report.measured == pytest.approx(2 * 13.4 / 14.9, rel=1e-6)
        assert report.exposed == pytest.approx(2 * 13.0 / 14.5, rel=1e-6)
        assert report.exposed_shared == pytest.approx(report.exposed)
        assert report.printed > 2 * 13.0 / 14.5  # no update below the line
        assert report.to_dict()["overlap"]["exposed_s"] == pytest.approx(1.5e-3)
        assert "25 % of the aggregation is hidden" in str(report)

    def test_contention_shows_between_the_two_predictions(self) -> None:
        slow = {(i, "forward"): 4e-3 for i in range(2)}
        report = e.report_speedup(run(1), run(2, excess=slow))
        assert report.exposed_shared == pytest.approx(2 * 13 / (13 + 4 + 2), rel=1e-6)
        assert report.exposed == pytest.approx(2 * 13 / (13 + 2), rel=1e-6)
        assert abs(report.exposed_shared - report.measured) < abs(report.exposed - report.measured)

    def test_only_weak_scaling_over_one_worker_is_compared(self) -> None:
        with pytest.raises(InvalidInputError, match="over one worker, but got a run of 2"):
            e.report_speedup(run(2), run(2))
        with pytest.raises(InvalidInputError, match="must be 2 x 16"):
            e.report_speedup(run(1), run(2, device_batch=8))

    def test_overlapped_steps_are_asked_for(self) -> None:
        table = e.PhaseTable.from_workers([{"rank": 0, "phases": [dict(BASE)]}])
        with pytest.raises(InvalidInputError, match="Overlapped steps must have been timed"):
            e.measure_overlap(table)


class TestImbalance:
    def test_by_hand(self) -> None:
        assert e.load_imbalance_factor([2.0, 4.0]) == pytest.approx(4 / 3)
        assert e.load_imbalance_factor([0.0, 0.0, 6.0]) == 3
        assert e.load_imbalance_factor([0.0, 0.0]) == 1
        assert e.load_imbalance_factor([7.0]) == 1

    @given(times)
    def test_it_lies_between_1_and_the_number_of_workers(self, values: list[float]) -> None:
        assert 1 <= e.load_imbalance_factor(values) <= len(values) * (1 + 1e-12)

    @given(st.floats(1e-9, 1e6), st.integers(1, 9))
    def test_it_is_1_when_equal(self, value: float, n: int) -> None:
        assert e.load_imbalance_factor([value] * n) == pytest.approx(1, abs=1e-12)

    @given(times, st.floats(1e-6, 1e6))
    def test_it_does_not_depend_on_the_unit(self, values: list[float], scale: float) -> None:
        scaled = e.load_imbalance_factor([v * scale for v in values])
        assert scaled == pytest.approx(e.load_imbalance_factor(values), rel=1e-9)

    @given(st.permutations([1.0, 2.0, 3.0, 5.0]))
    def test_it_does_not_depend_on_the_order(self, values: list[float]) -> None:
        assert e.load_imbalance_factor(values) == pytest.approx(4 * 5 / 11)

    @pytest.mark.parametrize("bad", [[], [[1.0, 2.0]], [-1.0, 2.0], [math.nan]])
    def test_what_are_not_times_is_refused(self, bad: Any) -> None:
        with pytest.raises(InvalidInputError, match="`times_s` must be"):
            e.load_imbalance_factor(bad)

    def test_waiting_does_not_count(self) -> None:
        table = run(2, excess={(1, "backward"): 2e-3})
        planted = 2 * 15.4 / (13.4 + 15.4)
        assert e.lif_by_step(table) == pytest.approx(planted)
        assert e.lif_over_run(table) == pytest.approx(planted)

    def test_the_planted_phase_has_it_and_the_others_do_not(self) -> None:
        lif = e.lif_by_phase(run(2, excess={(1, "backward"): 2e-3})).set_index("phase")["lif"]
        assert lif["backward"] == pytest.approx(2 * 10 / 18)
        assert lif.drop("backward").to_numpy() == pytest.approx(1)

    def test_random_imbalance_evens_out_over_the_run_but_not_in_steps(self) -> None:
        table = run(3, n_steps=400, jitter=0.5)
        assert e.lif_over_run(table) < 1.02
        assert e.lif_by_step(table).mean() > 1.05


class TestWaiting:
    @given(st.integers(1, 5), st.integers(1, 20), st.integers(0, 2**31))
    @settings(max_examples=40, deadline=None)
    def test_the_slowest_grows_with_workers_and_is_the_measured_one(
        self, n_workers: int, n_steps: int, seed: int
    ) -> None:
        own = np.random.default_rng(seed).gamma(2.0, 1.0, (n_steps, n_workers))
        model = WorkerTimes.from_own(own)
        slowest = [model.slowest_s(n) for n in range(1, 12)]
        assert slowest[0] == pytest.approx(own.mean())
        assert slowest[n_workers - 1] == pytest.approx(own.max(axis=1).mean())
        assert np.all(np.diff(slowest) >= -1e-12)

    def test_fewer_workers_are_all_choices_of_the_measured_ones(self) -> None:
        own = np.random.default_rng(1).random((7, 5))
        chosen = [own[:, c].max(axis=1).mean() for c in itertools.combinations(range(5), 3)]
        assert WorkerTimes.from_own(own).slowest_s(3) == pytest.approx(np.mean(chosen))

    @pytest.mark.parametrize("common", [0.0, 1.0], ids=["independent", "common"])
    def test_more_workers_are_predicted_within_3_percent(self, common: float) -> None:
        rng = np.random.default_rng(2)

        def draw(n_workers: int, n_steps: int) -> np.ndarray:
            together = common * rng.normal(size=(n_steps, 1))
            return 10 + together + rng.normal(size=(n_steps, n_workers))

        model = WorkerTimes.from_own(draw(3, 600))
        for n in (6, 12, 24):
            truth = draw(n, 20_000).max(axis=1).mean()
            assert model.slowest_s(n) - 10 == pytest.approx(truth - 10, rel=0.15)
            assert model.slowest_s(n) == pytest.approx(truth, rel=0.03)

    def test_a_lasting_excess_is_met_again_among_more_workers(self) -> None:
        waiting = e.extrapolate_waiting(run(2, excess={(1, "forward"): 2e-3}), [1, 2, 4, 100])
        assert waiting["slowest_s"].tolist() == pytest.approx([14.4e-3] + [15.4e-3] * 3)
        assert waiting["waiting_s"].tolist() == pytest.approx([0] + [1e-3] * 3, abs=1e-12)
        assert waiting["is_measured"].tolist() == [True, True, False, False]

    def test_many_values_are_thinned_without_bias(self) -> None:
        own = np.random.default_rng(3).exponential(size=(20_000, 4))
        harmonic = sum(1 / k for k in range(1, 17))
        assert WorkerTimes.from_own(own).slowest_s(16) == pytest.approx(harmonic, rel=0.03)

    def test_no_workers_are_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="at least 1, but got 0"):
            e.extrapolate_waiting(run(2), [0])


class TestRegression:
    def test_planted_constants_come_back_with_their_errors(self) -> None:
        rng = np.random.default_rng(0)
        n = np.tile([1.0, 2.0, 3.0], 40)
        lif = 1 + 0.2 * rng.random(120)
        epoch = 10 + 40 * n + 300 * lif + rng.normal(size=120)
        fit = e.fit_epoch_regression(n, lif, epoch)
        for name, truth in (("b0", 10), ("b1", 40), ("b2", 300)):
            error = getattr(fit, f"{name}_se")
            assert abs(getattr(fit, name) - truth) < 4 * error
            assert error < 5
        assert fit.degrees_of_freedom == 117
        assert fit.residual_sd_s == pytest.approx(1, rel=0.2)
        assert fit.predict_s(2, 1.1) == pytest.approx(10 + 80 + 330, abs=1)

    def test_by_hand(self) -> None:
        n, lif, t = [1, 2, 1, 2], [1.0, 1.0, 2.0, 2.0], [1.0, 2.0, 3.0, 5.0]
        fit = e.fit_epoch_regression(n, lif, t)
        assert (fit.b0, fit.b1, fit.b2) == pytest.approx((-3.25, 1.5, 2.5))
        assert fit.r2 == pytest.approx(1 - 0.25 / 8.75)
        assert fit.adjusted_r2 == pytest.approx(1 - 0.25 / (8.75 / 3))
        assert fit.b1_se == pytest.approx(0.5)
        assert "1 degrees of freedom" in str(fit)

    @pytest.mark.parametrize("n_rows", [0, 1, 2, 3])
    def test_a_saturated_fit_is_refused(self, n_rows: int) -> None:
        rows = [1.0, 2.0, 3.0][:n_rows]
        with pytest.raises(InvalidInputError, match=f"got {n_rows}: it is saturated"):
            e.fit_epoch_regression(rows, [r**2 for r in rows], rows)

    @pytest.mark.parametrize(
        ("n", "lif"),
        [
            ([1, 2, 3, 1, 2, 3], [1.0, 1.1, 1.2, 1.0, 1.1, 1.2]),
            ([2, 2, 2, 2, 2, 2], [1.0, 1.1, 1.2, 1.0, 1.1, 1.3]),
            ([1, 2, 3, 1, 2, 3], [1.0] * 6),
        ],
    )
    def test_effects_that_cannot_be_told_apart_are_refused(
        self, n: list[int], lif: list[float]
    ) -> None:
        with pytest.raises(InvalidInputError, match="cannot tell their effects apart"):
            e.fit_epoch_regression(n, lif, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

    def test_times_that_are_missing_or_all_the_same_are_refused(self) -> None:
        n, lif = [1, 2, 3, 1], [1.0, 1.2, 1.1, 1.3]
        with pytest.raises(InvalidInputError, match="finite"):
            e.fit_epoch_regression(n, lif, [1.0, 2.0, math.nan, 1.0])
        with pytest.raises(InvalidInputError, match="all are the same"):
            e.fit_epoch_regression(n, lif, [1.0] * 4)


speeds = st.builds(e.WorkerSpeed, fixed_s=st.floats(0, 5), sample_s=st.floats(0.05, 5))


class TestShares:
    @given(st.lists(speeds, min_size=1, max_size=3), st.integers(3, 12))
    @settings(max_examples=80, deadline=None)
    def test_no_other_division_is_faster(self, workers: list[e.WorkerSpeed], batch: int) -> None:
        shares = e.propose_shares(workers, batch)
        best = min(
            max(w.step_s(b) for w, b in zip(workers, division, strict=True))
            for division in itertools.product(range(1, batch + 1), repeat=len(workers))
            if sum(division) == batch
        )
        assert max(shares.own_s) == best

    @given(st.lists(speeds, min_size=1, max_size=9), st.integers(9, 300))
    @settings(deadline=None)
    def test_all_samples_are_given_out_and_it_is_never_slower_than_equal_shares(
        self, workers: list[e.WorkerSpeed], batch: int
    ) -> None:
        shares = e.propose_shares(workers, batch)
        assert sum(shares.device_batches) == sum(shares.equal_batches) == batch
        assert min(shares.device_batches) >= 1
        assert shares.saved_s >= 0

    def test_a_worker_half_as_fast_takes_half_as_much(self) -> None:
        workers = [e.WorkerSpeed(sample_s=1e-3), e.WorkerSpeed(sample_s=2e-3)]
        shares = e.propose_shares(workers, 48)
        assert shares.device_batches == (32, 16)
        assert shares.lif == 1
        assert shares.equal_lif == pytest.approx(4 / 3)
        assert shares.saved_s == pytest.approx(16e-3)
        assert str(shares) == "32+16 samples: LIF 1.33 to 1, 16 ms less per step"
        assert shares.to_dict()["equal_batches"] == (24, 24)

    def test_speeds_come_from_own_work_at_one_batch_with_the_update_fixed(self) -> None:
        table = run(2, excess={(1, "backward"): 12.4e-3})
        first, second = e.worker_speeds([table])
        assert first.fixed_s == second.fixed_s == pytest.approx(1e-3)
        assert first.sample_s == pytest.approx(12.4e-3 / 16)
        assert second.sample_s == pytest.approx(24.8e-3 / 16)

    def test_a_fixed_part_is_fitted_from_several_batches(self) -> None:
        def table(batch: int) -> e.PhaseTable:
            own = [[{"forward": 3.0 + k * batch}] for k in (1.0, 2.0)]
            return e.PhaseTable.from_workers(records(own), [batch, batch])

        found = e.worker_speeds([table(4), table(8), table(16)])
        assert [s.fixed_s for s in found] == pytest.approx([3.0, 3.0])
        assert [s.sample_s for s in found] == pytest.approx([1.0, 2.0])

    def test_a_fitted_fixed_part_is_never_negative(self) -> None:
        tables = [
            e.PhaseTable.from_workers(records([[{"forward": t}]]), [b])
            for b, t in ((4, 3.0), (8, 9.0))
        ]
        (speed,) = e.worker_speeds(tables)
        assert speed.fixed_s == 0
        assert speed.sample_s == pytest.approx((12 + 72) / 80)

    def test_what_has_no_answer_is_refused(self) -> None:
        with pytest.raises(InfeasibleError, match="at least one sample, but got 1 for 2"):
            e.propose_shares([e.WorkerSpeed(sample_s=1.0)] * 2, 1)
        with pytest.raises(InvalidInputError, match="positive time per sample"):
            e.WorkerSpeed(sample_s=0.0)
        with pytest.raises(InvalidInputError, match="runs of 1, 2 workers"):
            e.worker_speeds([run(1), run(2)])


class TestStudy:
    def study(self) -> dict[tuple[str, str, int], list[e.PhaseTable]]:
        return {
            ("cnn", "torch", n): [
                run(n, jitter=0.1, seed=10 * n + i, excess={(1, "forward"): i * 1e-3})
                for i in range(3)
            ]
            for n in (1, 2, 3)
        }

    def test_phases_have_mean_and_standard_deviation(self) -> None:
        own = [[{"io": 1.0, "forward": 2.0}, {"io": 3.0, "forward": 2.0}]]
        table = e.PhaseTable.from_workers(records(own))
        got = e.phase_table_3_2({("mlp", "jax", 1): table}).set_index("phase")
        assert got.loc["io", "mean_s"] == 2
        assert got.loc["io", "sd_s"] == pytest.approx(math.sqrt(2))
        assert got.loc["step", "mean_s"] == 4
        assert got.loc["forward", "sd_s"] == 0
        assert "update" not in got.index

    def test_phases_add_up_to_the_step(self) -> None:
        got = e.phase_table_3_2(self.study()).set_index("phase")["mean_s"]
        assert got.drop("step").sum() == pytest.approx(got["step"])

    def test_aggregation_is_split_and_only_on_several_workers(self) -> None:
        got = e.aggregation_3_3(self.study())
        assert got["n_workers"].tolist() == [2, 3]
        assert (got["wait_s"] + got["transfer_s"]).to_numpy() == pytest.approx(got["mean_s"])
        assert got["transfer_s"].to_numpy() == pytest.approx(2e-3)

    def test_imbalance_is_over_steps_and_over_the_run(self) -> None:
        got = e.lif_3_4(self.study())
        assert (got["mean"] > 1).all() and (got["lif_run"] > 1).all() and (got["sd"] > 0).all()
        assert (got["problem"] == "").all()

    def test_the_regression_counts_every_repeat(self) -> None:
        row = e.regression_3_5(self.study(), n_samples=60_000).iloc[0]
        assert (row["n_rows"], row["degrees_of_freedom"], row["problem"]) == (9, 6, "")
        assert 0 < row["adjusted_r2"] < row["r2"] <= 1

    def test_without_repeats_the_regression_says_why_there_is_none(self) -> None:
        single = {key: tables[0] for key, tables in self.study().items()}
        row = e.regression_3_5(single, n_samples=60_000).iloc[0]
        assert "saturated" in row["problem"]

    def test_an_epoch_is_its_steps(self) -> None:
        table = run(2, hidden=0.0)
        step_s = sum(BASE.values()) + 2e-3
        assert e.epoch_time_s(table, 3200) == pytest.approx(100 * step_s)

    def test_a_run_under_the_wrong_number_of_workers_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="must have 3 workers, but got 2"):
            e.lif_3_4({("cnn", "torch", 3): run(2)})
