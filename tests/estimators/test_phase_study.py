"""Tables like 3.2 to 3.5 of the thesis, and the regression of the epoch time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.estimators.planted_runs import BASE, records, run

import paceline.estimators as e
from paceline.errors import InvalidInputError


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
