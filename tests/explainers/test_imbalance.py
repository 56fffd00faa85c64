"""Where imbalance arises: planted causes are named, chance is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from paceline.estimators import (
    PhaseTable,
    aggregation_3_3,
    extrapolate_waiting,
    lif_3_4,
    phase_table_3_2,
    propose_shares,
    regression_3_5,
    report_speedup,
    worker_speeds,
)
from paceline.explainers import read_imbalance
from paceline.explainers._differences import lasting_difference
from paceline.reports import (
    show_aggregation,
    show_imbalance,
    show_lif,
    show_phases,
    show_regression,
    show_shares,
    show_speedup,
    show_waiting,
)

BASE = {"io": 1e-4, "h2d": 2e-4, "md": 1e-4, "forward": 4e-3, "backward": 8e-3, "update": 1e-3}


def planted(
    n_workers: int,
    *,
    n_steps: int = 30,
    excess: Mapping[tuple[int, str], float] | None = None,
    jitter: float = 0.1,
    spikes: float = 0.0,
    seed: int = 0,
) -> PhaseTable:
    """Return a run with lasting excesses, jitter of every phase, and rare spikes of 20 ms."""
    rng = np.random.default_rng(seed)
    workers: list[dict[str, Any]] = []
    for i in range(n_workers):
        steps = [
            {
                phase: t * (1 + jitter * abs(rng.normal())) + (excess or {}).get((i, phase), 0.0)
                for phase, t in BASE.items()
            }
            for _ in range(n_steps)
        ]
        for step in steps:
            step["forward"] += 20e-3 * (rng.random() < spikes)
        workers.append({"rank": i, "phases": steps})
    return PhaseTable.from_workers(_synchronised(workers), [16] * n_workers)


def _synchronised(workers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for phases in zip(*(w["phases"] for w in workers), strict=True):
        slowest = max(sum(p.values()) for p in phases)
        for p in phases:
            p |= {"wait": slowest - sum(p.values()), "transfer": 2e-3 * (len(workers) > 1)}
    for w in workers:
        w["step_s"] = [sum(p.values()) for p in w["phases"]]
    return workers


@pytest.mark.parametrize("n_workers", [2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_a_planted_excess_is_seen_in_phase_worker_and_amount(n_workers: int, seed: int) -> None:
    table = planted(n_workers, excess={(1, "backward"): 2e-3}, seed=seed)
    (found,) = read_imbalance(table).lasting
    assert (found.worker, found.phase) == (1, "backward")
    assert found.excess_s == pytest.approx(2e-3, rel=0.15)
    assert 0 < found.error_s < 0.4e-3
    assert found.share_of_steps > 0.8


def test_it_is_still_seen_among_spikes() -> None:
    table = planted(2, n_steps=60, excess={(1, "backward"): 2e-3}, spikes=0.05)
    found = read_imbalance(table).lasting
    assert [(x.worker, x.phase) for x in found] == [(1, "backward")]
    assert found[0].excess_s == pytest.approx(2e-3, rel=0.15)


def test_two_causes_are_named_the_larger_first() -> None:
    excess = {(0, "io"): 1e-3, (2, "forward"): 3e-3}
    found = read_imbalance(planted(3, excess=excess)).lasting
    assert [(x.worker, x.phase) for x in found] == [(2, "forward"), (0, "io")]


def test_two_slow_workers_do_not_hide_each_other() -> None:
    excess = {(1, "backward"): 3e-3, (2, "backward"): 3e-3}
    found = read_imbalance(planted(5, excess=excess)).lasting
    assert {x.worker for x in found} == {1, 2}
    assert [x.excess_s for x in found] == pytest.approx([3e-3] * 2, rel=0.15)


@pytest.mark.parametrize("spikes", [0.0, 0.1])
def test_chance_is_rarely_called_lasting(spikes: float) -> None:
    readings = [read_imbalance(planted(3, seed=s, spikes=spikes)) for s in range(60)]
    assert sum(reading.is_persistent for reading in readings) <= 2
    assert "No persistent imbalance" in readings[0].sentences[0]


def test_drift_shared_by_neighbouring_steps_widens_the_error() -> None:
    rng = np.random.default_rng(0)
    drifting = np.cumsum(rng.normal(size=200)) * 0.1
    shuffled = rng.permutation(drifting)
    assert lasting_difference(drifting).error > 2 * lasting_difference(shuffled).error


def test_a_single_disturbed_step_does_not_make_a_difference() -> None:
    table = planted(2, jitter=0.0)
    rows = table.rows.copy()
    rows.loc[(rows["worker"] == 1) & (rows["step"] == 3) & (rows["phase"] == "io"), "seconds"] = 1
    assert not read_imbalance(PhaseTable(rows=rows)).is_persistent


def test_a_lasting_difference_too_small_to_matter_is_left_out() -> None:
    reading = read_imbalance(planted(2, excess={(1, "io"): 5e-5}, jitter=0.0))
    assert not reading.is_persistent


def test_waiting_is_what_balance_would_save_in_two_parts() -> None:
    table = planted(2, excess={(1, "backward"): 2e-3}, jitter=0.0)
    reading = read_imbalance(table)
    assert reading.waiting_s == pytest.approx(1e-3)
    assert reading.lasting_s == pytest.approx(1e-3)
    assert reading.random_s == pytest.approx(0, abs=1e-12)
    assert reading.waiting_share == pytest.approx(1 / 17.4)
    assert reading.waited_s == pytest.approx(1e-3)  # one of two workers waits 2 ms
    assert reading.lif == pytest.approx(2 * 15.4 / 28.8)
    assert reading.slowest == (0.0, 1.0)


def test_random_imbalance_costs_without_a_lasting_cause() -> None:
    reading = read_imbalance(planted(4, n_steps=200, jitter=0.3))
    assert not reading.is_persistent
    assert reading.random_s > 5 * reading.lasting_s
    assert reading.waiting_s == pytest.approx(reading.lasting_s + reading.random_s)


def test_the_sentences_say_who_where_how_often_and_at_what_cost() -> None:
    reading = read_imbalance(planted(2, excess={(1, "backward"): 2e-3}, jitter=1e-6))
    who, cost, nature = reading.sentences
    assert who.startswith("Worker 1 spends 2 ms (± ")
    assert who.endswith(" more in backward than the others, in every step.")
    assert cost == "Waiting for the slowest costs 5.7 % of the step (1 ms); LIF 1.069."
    assert nature.endswith("of that is random; worker 1 is the slowest in 100 % of the steps.")


def test_one_worker_waits_for_nobody() -> None:
    reading = read_imbalance(planted(1))
    assert reading.sentences == ("One worker: there is nobody to wait for.",)
    assert (reading.lif, reading.waiting_s) == (1.0, 0.0)


def test_few_steps_are_said_to_be_too_few() -> None:
    reading = read_imbalance(planted(2, n_steps=4, excess={(1, "backward"): 2e-3}))
    assert not reading.is_persistent
    assert reading.sentences[0].startswith("4 steps are too few")


def test_equal_workers_take_the_same_time() -> None:
    reading = read_imbalance(planted(2, jitter=0.0))
    assert reading.lif == 1
    assert reading.sentences[-1] == "All workers take the same time."


def test_a_reading_is_plain_data() -> None:
    data = json.loads(json.dumps(read_imbalance(planted(2)).to_dict(), allow_nan=False))
    assert {"lif", "lasting", "waiting_share", "sentences"} <= set(data)


def test_everything_reads_at_80_columns() -> None:
    two, one = planted(2, excess={(1, "backward"): 2e-3}), planted(1)
    names = ("autoencoder", "tensorflow")
    study: dict[tuple[str, str, int], PhaseTable | list[PhaseTable]] = {
        (*names, n): [planted(n, seed=s, excess={(1, "io"): s * 1e-3}) for s in range(3)]
        for n in (1, 2, 3)
    }
    study |= {("mlp", "mxnet", 1): one, ("autoencoder", "chainer", 1): one}
    texts = [
        show_imbalance(read_imbalance(two)),
        show_speedup(report_speedup(one, two)),
        show_waiting(extrapolate_waiting(two, [1, 2, 64])),
        show_shares(propose_shares(worker_speeds([two]), 32)),
        show_phases(phase_table_3_2(study)),
        show_aggregation(aggregation_3_3(study)),
        show_lif(lif_3_4(study)),
        show_regression(regression_3_5(study, 60_000)),
    ]
    assert max(len(line) for text in texts for line in text.splitlines()) <= 80
    assert "extrapolated" in texts[2]
    assert "saturated" in texts[-1] and "adjusted" in texts[-1]
    assert all(name in texts[4] for name in ("backward", "step", "tensorflow", "chainer", "mlp"))


def test_where_a_phase_was_not_measured_the_table_has_a_dash() -> None:
    full = planted(1)
    part = PhaseTable(rows=full.rows[full.rows["phase"] != "io"])
    text = show_phases(phase_table_3_2({("cnn", "torch", 1): full, ("cnn", "jax", 1): part}))
    (line,) = [line for line in text.splitlines() if line.startswith("io")]
    assert line.endswith("-")
