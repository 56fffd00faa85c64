import contextlib
import json
import math
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.measurement.small_studies import simulated, small_study, step_time

from paceline.dataset import TimeBasis, load_dataset, read_observations, read_store
from paceline.errors import (
    DeviceMemoryError,
    ExecutionError,
    InvalidInputError,
    MissingDependencyError,
    PacelineError,
    RunTimeoutError,
    SchemaError,
    UnknownNameError,
)
from paceline.executors import Job, RunRecord, WorkerRecord
from paceline.measurement import Assignment, Campaign, Progress, dry_run, measure, noise_floor


def record_of(assignment: Assignment, seconds: float = 0.01) -> RunRecord:
    workers = [
        WorkerRecord(rank=rank, step_s=(seconds,) * 4) for rank in range(assignment.n_workers)
    ]
    return RunRecord(workers=tuple(workers))


def n_rows(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def test_a_campaign_gives_a_dataset_with_all_trials_and_repeats(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    dataset = measure(small_study(), path, executors=simulated(life_noise=0.1))
    assert len(dataset) == 12 + 3
    assert dataset.basis == TimeBasis(time_per="step", batch="device_batch")
    assert dataset.extrinsic == ["n_devices", "device_batch"]
    assert dataset.times_s is not None and {len(t) for t in dataset.times_s} == {8}
    assert (dataset.other["minimum_s"] <= dataset.y).all()
    assert noise_floor(path) is not None
    assert load_dataset(path).n_rows == 15


def test_an_epoch_can_be_derived_from_what_is_stored(tmp_path: Path) -> None:
    dataset = measure(small_study(), tmp_path / "runs.db", executors=simulated())
    batch = dataset.X["n_devices"] * dataset.X["device_batch"]
    assert (dataset.other["global_batch"] == batch).all()
    assert (dataset.other["n_samples"] == 60_000).all()


def test_an_observation_keeps_raw_times_phases_and_the_machine(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    study = small_study(protocol={"n_phase_steps": 2})
    measure(study, path, executors=simulated())
    seen = read_observations(path)[0]
    lives = seen.provenance["lives"]
    processes = [worker["process"] for life in lives for worker in life["workers"]]
    assert len(lives) == 2 and len(set(processes)) == len(processes)
    assert len(lives[0]["workers"][0]["phases"]) == 2
    assert set(lives[0]["machine"]) == {"load_before", "load_after"}
    machine = read_store(path).provenance["machine"]
    assert machine["versions"]["paceline"] and "affinity" in machine
    import platform

    assert platform.node() not in json.dumps(machine).split('"')


def test_progress_counts_up_to_the_end(tmp_path: Path) -> None:
    seen: list[Progress] = []
    measure(small_study(), tmp_path / "runs.db", executors=simulated(), progress=seen.append)
    assert [p.runs_done for p in seen] == list(range(1, 31))
    assert {p.runs_total for p in seen} == {30} and seen[-1].done == seen[-1].total == 15
    assert seen[0].remaining_s and seen[0].estimated_end and seen[-1].noise is not None
    assert "15 of 15 trials, 0 failed" in str(seen[-1])


def test_a_stopped_campaign_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, made = tmp_path / "runs.db", Counter[tuple[Any, ...]]()

    def counted(job: Job) -> float:
        made["runs"] += 1
        return step_time(job)

    stops = iter([False] * 13 + [True])
    part = measure(
        small_study(), path, executors=simulated(counted), should_stop=lambda: next(stops)
    )
    assert n_rows(path, "campaign_runs") == 13 and len(part) < 15
    whole = measure(small_study(), path, executors=simulated(counted))
    assert len(whole) == 15
    assert sorted(whole.other["trial"]) == list(range(15))
    # the simulated executor asks for a time once per step and worker; no run was made twice
    again = measure(small_study(), path, executors=simulated(counted))
    assert n_rows(path, "campaign_runs") == 30 and len(again) == 15


def test_ask_and_tell_can_be_driven_from_outside(tmp_path: Path) -> None:
    with Campaign(small_study(), tmp_path / "runs.db") as campaign:
        out = [campaign.ask() for _ in range(30)]
        assert campaign.ask() is None and not campaign.is_finished
        for assignment in reversed(out):
            assert assignment is not None and "life" in str(assignment)
            campaign.tell(assignment, record_of(assignment))
        assert campaign.is_finished and campaign.progress.done == 15


def test_a_run_is_told_once_and_only_when_asked_for(tmp_path: Path) -> None:
    with Campaign(small_study(), tmp_path / "runs.db") as campaign:
        assignment = campaign.ask()
        assert assignment is not None
        campaign.tell(assignment, record_of(assignment))
        with pytest.raises(InvalidInputError, match="asked for once and told once"):
            campaign.tell(assignment, record_of(assignment))


def test_what_is_given_back_is_handed_out_again(tmp_path: Path) -> None:
    with Campaign(small_study(), tmp_path / "runs.db") as campaign:
        assignment = campaign.ask()
        assert assignment is not None
        campaign.give_back(assignment)
        again = campaign.ask()
        assert again is not None and again.key == assignment.key


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ExecutionError("worker 1 died"), "worker 1 died"),
        (DeviceMemoryError("out of memory"), "out of memory"),
        (RunTimeoutError("longer than 3 s"), "longer than 3 s"),
        (PacelineError("two\nlines"), "two lines"),
    ],
)
def test_a_failed_trial_is_kept_with_its_reason(
    tmp_path: Path, error: PacelineError, reason: str
) -> None:
    path = tmp_path / "runs.db"
    with Campaign(small_study(), path) as campaign:
        assignment = campaign.ask()
        assert assignment is not None
        campaign.tell(assignment, error)
        while (later := campaign.ask()) is not None:
            assert later.trial != assignment.trial  # its other life is not tried
            campaign.tell(later, record_of(later))
        assert campaign.is_finished and campaign.progress.failed == 1
    failed = [seen for seen in read_observations(path) if seen.failed]
    assert [seen.reason for seen in failed] == [reason]


@pytest.mark.parametrize("times", [(), (0.1, -1.0), (0.1, math.nan)])
def test_garbage_fails_the_trial(tmp_path: Path, times: tuple[float, ...]) -> None:
    with Campaign(small_study(), tmp_path / "runs.db") as campaign:
        assignment = campaign.ask()
        assert assignment is not None
        workers = [WorkerRecord(rank=i, step_s=times) for i in range(assignment.n_workers)]
        campaign.tell(assignment, RunRecord(workers=tuple(workers)))
        assert campaign.progress.failed == 1


def test_failures_do_not_stop_the_campaign(tmp_path: Path) -> None:
    def fails_on_two(job: Job) -> float:
        if job.n_workers == 2:
            raise ExecutionError("two workers never work")
        return step_time(job)

    path = tmp_path / "runs.db"
    dataset = measure(small_study(), path, executors=simulated(fails_on_two))
    failed = [seen for seen in read_observations(path) if seen.failed]
    assert failed and {seen.values["n_devices"] for seen in failed} == {2}
    assert len(dataset) + len(failed) + len(_dropped(path)) == 15


def _dropped(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT number FROM campaign_trials WHERE state = 'dropped'")
        return [number for (number,) in rows]


def test_a_campaign_without_a_success_is_an_error_with_the_first_reason(tmp_path: Path) -> None:
    def fails(job: Job) -> float:
        raise ExecutionError("no luck today")

    with pytest.raises(ExecutionError, match=r"one successful trial.*no luck today"):
        measure(small_study(), tmp_path / "runs.db", executors=simulated(fails))


def test_a_disturbed_trial_is_measured_again_once(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    study = small_study(protocol={"remeasure_share": 1.0, "disagreement": 0.5})
    attempts: Counter[int] = Counter()
    with Campaign(study, path) as campaign:
        while (assignment := campaign.ask()) is not None:
            disturbed = assignment.trial == 0 and assignment.key != (0, 0, 0)
            slow = 3.0 if disturbed and assignment.attempt == 0 else 1.0
            always = 3.0 if assignment.trial == 1 and assignment.life == 1 else 1.0
            campaign.tell(assignment, record_of(assignment, 0.01 * slow * always))
            attempts[assignment.trial] = max(attempts[assignment.trial], assignment.attempt)
    assert {trial for trial, attempt in attempts.items() if attempt} == {0, 1}
    seen = {o.provenance["trial"]: o for o in read_observations(path)}
    assert seen[0].time_s == 0.01 and seen[0].provenance["disturbed"]
    assert len(seen[0].provenance["discarded"][0]) == 8  # the first attempt's times are kept
    assert len(seen) == 15


def test_only_a_share_of_the_trials_is_measured_again(tmp_path: Path) -> None:
    study = small_study(protocol={"remeasure_share": 0.1, "disagreement": 0.5})
    again = 0
    with Campaign(study, tmp_path / "runs.db") as campaign:
        while (assignment := campaign.ask()) is not None:
            again += assignment.attempt
            campaign.tell(assignment, record_of(assignment, 0.01 * (1 + 2 * assignment.life)))
    assert again == 2 * 2  # two trials of 15, in two lives each


def test_a_failing_second_attempt_leaves_the_first(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    study = small_study(protocol={"remeasure_share": 1.0})
    with Campaign(study, path) as campaign:
        while (assignment := campaign.ask()) is not None:
            slow = 3.0 if assignment.trial == 0 and assignment.life else 1.0
            outcome = ExecutionError("broken") if assignment.attempt else None
            campaign.tell(assignment, outcome or record_of(assignment, 0.01 * slow))
        assert campaign.is_finished
    assert not any(seen.failed for seen in read_observations(path))


def test_a_resumed_campaign_remembers_second_attempts(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    study = small_study(protocol={"remeasure_share": 1.0})
    keys: list[tuple[int, int, int]] = []
    while True:
        with Campaign(study, path) as campaign:  # a new campaign for every single run
            assignment = campaign.ask()
            if assignment is None:
                break
            keys.append(assignment.key)
            slow = 3.0 if assignment.trial == 0 and assignment.life else 1.0
            campaign.tell(assignment, record_of(assignment, 0.01 * slow))
    assert len(set(keys)) == len(keys) == 32
    assert len(read_observations(path)) == 15


def test_the_same_file_serves_one_campaign_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with (
        Campaign(small_study(), path),
        pytest.raises(InvalidInputError, match=r"Only one campaign .*process [0-9]+ does"),
    ):
        Campaign(small_study(), path)
    Campaign(small_study(), path).close()
    assert [p.name for p in tmp_path.iterdir()] == ["runs.db"]


def test_a_changed_study_is_refused_and_names_the_field(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    Campaign(small_study(), path).close()
    before = path.read_bytes()
    for changed, words in (
        (small_study(n_trials=13), "`n_trials` was 12 and is 13"),
        (small_study(protocol={"n_steps": 5}), "`protocol.n_steps` was 4 and is 5"),
        (small_study(restrict={"filters": [4]}), "`space` was another one"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            Campaign(changed, path)
    assert path.read_bytes() == before


def test_files_of_others_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.db"
    text.write_text("dear diary")
    with pytest.raises(SchemaError, match="must be a store of Paceline"):
        Campaign(small_study(), text)
    assert text.read_text() == "dear diary"
    from paceline.dataset import save_store

    other = tmp_path / "other.db"
    save_store(measure(small_study(), tmp_path / "runs.db", executors=simulated()), other)
    with pytest.raises(SchemaError, match="it holds other data"):
        Campaign(small_study(), other)
    with pytest.raises(InvalidInputError, match="folder of a new file must exist"):
        Campaign(small_study(), tmp_path / "absent" / "runs.db")


def test_unknown_names_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with pytest.raises(UnknownNameError, match="workload"):
        measure(small_study(workload="lenet6"), path, executors=simulated())
    with pytest.raises(UnknownNameError, match="engine"):
        measure(small_study(), path, engine="rai")
    with pytest.raises(UnknownNameError, match="executor"):
        measure(small_study(executor="tourch"), path)
    assert not path.exists()


def test_an_executor_that_is_not_ready_is_refused(tmp_path: Path) -> None:
    executors = simulated()
    executors["torch"].readiness = lambda: "Not here. Try: something"  # type: ignore[method-assign]
    with pytest.raises(InvalidInputError, match=r"'torch' must be ready.*Try: something"):
        measure(small_study(), tmp_path / "runs.db", executors=executors)


def test_several_workloads_and_executors_become_parameters(tmp_path: Path) -> None:
    study = small_study(
        workload=["mlp", "autoencoder"],
        executor=["torch", "jax"],
        parameter=[
            {"name": "n_devices", "role": "extrinsic", "kind": "numeric", "values": [1, 2]},
            {"name": "device_batch", "role": "extrinsic", "kind": "numeric", "values": [8, 16]},
        ],
        n_trials=None,
        design="grid",
        protocol={"repeat_share": 0.0},
    )
    executors = {**simulated(), "jax": simulated(lambda job: 0.5)["torch"]}
    dataset = measure(study, tmp_path / "runs.db", executors=executors)
    assert len(dataset) == 2 * 2 * 4
    assert dataset.categorical == ["workload", "executor"]
    assert (dataset.y[dataset.X["executor"] == "jax"] > 0.4).all()


def test_infeasible_trials_are_counted_and_not_run(tmp_path: Path) -> None:
    study = small_study(space="table_4_1", n_trials=20)
    with Campaign(study, tmp_path / "runs.db") as campaign:
        assert campaign.progress.n_infeasible > 0
        assert len(campaign.plan) == 2 * (20 + 5)


def test_ray_missing_is_said_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"Ray engine needs ray.*paceline\[ray\]"):
        measure(small_study(), tmp_path / "runs.db", engine="ray", executors=simulated())


def test_a_dry_run_runs_a_few_trials_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    estimate = dry_run(small_study(), path, executors=simulated())
    assert (estimate.n_trials, estimate.n_repeats, estimate.n_runs) == (12, 3, 30)
    assert estimate.n_done == 0 and estimate.n_starts >= 4 and estimate.seconds > 0
    assert "12 trials and 3 repeats in 30 runs" in str(estimate)
    assert not list(tmp_path.iterdir())
    stops = iter([False] * 7 + [True])
    with contextlib.suppress(ExecutionError):  # perhaps no trial had both lives yet
        measure(small_study(), path, executors=simulated(), should_stop=lambda: next(stops))
    before = path.read_bytes()
    assert dry_run(small_study(), path, executors=simulated()).n_done == 7
    assert path.read_bytes() == before
