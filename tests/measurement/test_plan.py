from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from tests.measurement.small_studies import small_study

from paceline.measurement._draw import draw_trials
from paceline.measurement._jobs import build_job, count_samples, load_workloads, share_batch
from paceline.measurement._plan import PlannedRun, PlannedTrial, deal_trials, open_runs
from paceline.measurement._study import Study


def planned(study: Study) -> list[PlannedTrial]:
    return deal_trials(study, draw_trials(study, load_workloads(study))[0])


def runs_of(study: Study) -> list[PlannedRun]:
    return open_runs(study, planned(study), set())


LARGE = {"n_trials": 90, "protocol": {"recycle_every": 20}}


def test_every_life_of_a_trial_has_other_processes() -> None:
    study = small_study(**LARGE, executor=["torch", "jax"])
    sessions = defaultdict(list)
    for run in runs_of(study):
        sessions[run.trial.number].append(run.session)
    assert all(len(set(names)) == len(names) == 2 for names in sessions.values())


def test_a_repeat_shares_no_process_with_its_trial() -> None:
    for n_trials in (1, 5, 90):
        study = small_study(n_trials=n_trials, protocol={"repeat_share": 0.3})
        sessions, repeats = defaultdict(set), {}
        for run in runs_of(study):
            sessions[run.trial.number].add(run.session)
            if run.trial.repeat_of is not None:
                repeats[run.trial.number] = run.trial.repeat_of
        assert repeats
        for repeat, first in repeats.items():
            assert not sessions[repeat] & sessions[first]


def test_workers_are_started_rarely_and_recycled() -> None:
    runs = runs_of(small_study(**LARGE))
    n_starts = 1 + sum(a.session != b.session for a, b in pairwise(runs))
    assert n_starts == len({run.session for run in runs})  # no session is left and taken up again
    assert n_starts <= 2 * len(runs) / 20 + 4
    assert max(sum(r.session == s for r in runs) for s in {r.session for r in runs}) <= 20


def test_drift_is_spread_over_worker_counts() -> None:
    """The mean place of trials on one worker is that of trials on two, roughly."""
    runs = [run for run in runs_of(small_study(**LARGE)) if run.trial.repeat_of is None]
    places = defaultdict(list)
    for place, run in enumerate(runs):
        places[run.trial.n_workers].append(place / len(runs))
    means = [sum(p) / len(p) for p in places.values()]
    assert max(means) - min(means) < 0.15


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    assert runs_of(small_study()) == runs_of(small_study())
    assert runs_of(small_study()) != runs_of(small_study(random_state=4))


def test_all_executors_get_the_same_trials() -> None:
    trials = [t for t in planned(small_study(executor=["torch", "jax"])) if t.repeat_of is None]
    by_executor: dict[str, list[Any]] = defaultdict(list)
    for trial in trials:
        by_executor[trial.executor].append(trial.values)
    assert by_executor["torch"] == by_executor["jax"]


@pytest.mark.parametrize(("batch", "shares"), [(10, [4, 3, 3]), (3, [1, 1, 1])])
def test_a_global_batch_is_shared_out(batch: int, shares: list[int]) -> None:
    assert share_batch({"global_batch": batch}, 3) == shares


def test_epochs_of_the_thesis_become_steps() -> None:
    study = small_study(data={"kind": "generated", "n_samples": 100}, protocol={"epochs": 2})
    trial = next(t for t in planned(study) if t.n_workers == 2 and t.values["device_batch"] == 8)
    job = build_job(study, load_workloads(study)["lenet5"], trial)
    assert (job.n_warmup, job.n_steps, job.n_phase_steps) == (7, 7, 7)
    assert job.data["n_samples"] == count_samples(study, trial.values) == 100


def test_an_epoch_has_the_samples_of_the_data() -> None:
    assert count_samples(small_study(), {"dataset": "cifar10"}) == 50_000
    assert count_samples(small_study(n_samples=7), {"dataset": "cifar10"}) == 7
