"""Load imbalance: its factor, what waiting costs, and shares that even it out."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimators.planted_runs import records, run

import paceline.estimators as e
from paceline.errors import InfeasibleError, InvalidInputError
from paceline.estimators._waiting import WorkerTimes

times = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=8)


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
