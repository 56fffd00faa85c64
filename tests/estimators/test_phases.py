"""Phases of a step: equations by hand, planted runs, and properties that must hold."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.estimators.planted_runs import BASE, records, run

import paceline.estimators as e
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.executors import PHASES as EXECUTORS_PHASES


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
