"""``paceline phases``: tables like 3.2 to 3.5 from one command."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.measurement.small_studies import small_study

from paceline.cli import main
from paceline.estimators import PhaseTable
from paceline.executors import Job, SimulatedExecutor
from paceline.explainers import explain_phases
from paceline.measurement import load_phase_runs, load_study, measure

SLOWER = 1.5


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chapter 3's study by workers that pretend; the last one takes half as long again."""
    path = tmp_path_factory.mktemp("phases") / "chapter3.db"
    executor = SimulatedExecutor(
        lambda job: 1e-4 * job.device_batches[0],
        transfer_s=lambda job: 2e-4 if job.n_workers > 1 else 0.0,
        noise=0.02,
        imbalance={1: SLOWER},
    )
    measure(load_study("chapter3").reduced(), path, executors={"torch": executor})
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def tables(store: Path, **at: Any) -> dict[str, Any]:
    return explain_phases(load_phase_runs(store, at=at)).to_dict()


def test_every_table_of_chapter_3_is_printed(store: Path, capsys: Any) -> None:
    code, out, err = run(capsys, "phases", store)
    assert code == 0 and not err
    for word in ("table 3.2", "table 3.3", "table 3.4", "table 3.5", "3.7", "lenet5/32, torch"):
        assert word in out
    assert "N = 1" in out and "N = 2" in out
    assert "Worker 1 spends" in out and "more in backward" in out
    assert max(map(len, out.splitlines())) <= 88


def test_json_holds_the_same_numbers(store: Path, capsys: Any) -> None:
    code, out, _ = run(capsys, "phases", store, "--output-format", "json")
    found = json.loads(out)
    assert code == 0 and found["schema"] == "paceline/phases/1"
    assert found == {"schema": found["schema"], **json.loads(json.dumps(tables(store)))}


def test_phases_are_those_that_were_planted(store: Path) -> None:
    found = tables(store, workload="mlp", device_batch=64)
    means = {(r["phase"], r["n_workers"]): r["mean_s"] for r in found["phases"]}
    assert means["forward", 1] == pytest.approx(0.3 * 64e-4, rel=0.02)
    assert means["forward", 2] == pytest.approx(0.3 * 64e-4 * (1 + SLOWER) / 2, rel=0.02)
    assert means["transfer", 2] == pytest.approx(2e-4, rel=0.03)
    assert {r["n_workers"] for r in found["aggregation"]} == {2}


def test_imbalance_is_the_planted_one_and_its_place_is_said(store: Path) -> None:
    found = tables(store, workload="mlp", device_batch=32)
    truth = 2 * SLOWER / (1 + SLOWER)
    (lif,) = found["lif"]
    assert lif["mean"] == pytest.approx(truth, rel=0.02)
    assert all(row["lif"] == pytest.approx(truth, rel=0.02) for row in found["lif_phases"])
    assert len(found["imbalance"]) == 2  # one reading per process life
    assert {life["lasting"][0]["worker"] for life in found["imbalance"]} == {1}


def test_speedup_is_measured_beside_predicted(store: Path) -> None:
    (row,) = tables(store, workload="mlp", device_batch=64)["speedup"]
    step = 64e-4 * SLOWER + 2e-4
    assert row["measured"] == pytest.approx(2 * 64e-4 / step, rel=0.04)
    assert row["exposed_shared"] == pytest.approx(row["measured"], rel=0.2)


def test_the_regression_says_its_degrees_of_freedom(store: Path) -> None:
    rows = tables(store, workload="mlp")["regression"]
    assert [row["degrees_of_freedom"] for row in rows] == [1, 1]
    assert all(row["adjusted_r2"] < row["r2"] <= 1 for row in rows)


def test_runs_without_one_worker_have_no_speedup_and_say_so(tmp_path: Path, capsys: Any) -> None:
    study = small_study(n_trials=4, restrict={"n_devices": [2]}, protocol={"n_phase_steps": 3})
    path = tmp_path / "runs.db"
    measure(study, path, executors={"torch": SimulatedExecutor(lambda job: 1e-3)})
    code, out, _ = run(capsys, "phases", path)
    assert code == 0 and "no run on one worker" in out


def test_merged_waiting_gives_no_factor_but_a_reason(store: Path) -> None:
    (life,) = (run.lives[0] for run in load_phase_runs(store)[-1:])
    merged = PhaseTable(rows=life.rows, merged={"backward": ("wait",)})
    (run_,) = load_phase_runs(store)[-1:]
    changed = type(run_)(
        **{name: getattr(run_, name) for name in run_.__slots__ if name != "lives"},
        lives=(merged, merged),
    )
    found = explain_phases([changed]).to_dict()
    assert "apart from waiting" in found["lif"][0]["problem"]
    assert "apart from waiting" in found["imbalance"][0]["problem"]


def test_mistakes_are_one_line(store: Path, tmp_path: Path, capsys: Any) -> None:
    plain = tmp_path / "plain.db"
    measure(small_study(n_trials=2), plain, executors={"torch": SimulatedExecutor(_step)})
    cases = {
        ("phases", plain): "must hold trials with phases, but has none: measure with",
        ("phases", store, "--at", "workload=resnet"): "workload = resnet, but has none",
        ("phases", store, "--at", "worklod=mlp"): "Did you mean 'workload'",
        ("phases", tmp_path / "absent.db"): "must be readable",
    }
    for words, message in cases.items():
        code, out, err = run(capsys, *words)
        assert code == 2 and not out and message in err and len(err.splitlines()) == 1


def _step(job: Job) -> float:
    return 1e-3


def test_lives_are_joined_step_by_step(store: Path) -> None:
    (first, *_) = load_phase_runs(store, at={"workload": "mlp"})
    joined = PhaseTable.join(first.lives)
    assert joined.n_steps == sum(life.n_steps for life in first.lives)
    assert len(joined.overlapped_s()) == sum(len(life.overlapped_s()) for life in first.lives)
    one, two = load_phase_runs(store, at={"workload": "mlp", "device_batch": 32})
    with pytest.raises(ValueError, match="same workers and shares, but got 2 kinds"):
        PhaseTable.join([one.lives[0], two.lives[0]])
