from pathlib import Path

import numpy as np
import pytest
from tests.measurement.small_studies import simulated, small_study

from paceline.errors import InvalidInputError, UnknownNameError
from paceline.estimators import GenericRegressor
from paceline.executors import Job
from paceline.measurement import measure, replay
from paceline.measurement._adaptive import Coordinates, choose_next, fit_surrogate
from paceline.space import load_space
from paceline.validation import generate_study

ADAPTIVE = {"design": "adaptive", "n_trials": 30, "space": "table_4_1"}


def time_of(job: Job) -> float:
    return 1e-4 * float(sum(job.device_batches)) ** 0.9 + 1e-3 * job.n_workers


def test_an_adaptive_campaign_measures_as_many_different_trials(tmp_path: Path) -> None:
    dataset = measure(small_study(**ADAPTIVE), tmp_path / "runs.db", executors=simulated(time_of))
    first = dataset.take(np.flatnonzero(dataset.other["trial"] < 30))
    assert len(first) == len(first.X.drop_duplicates()) == 30
    assert len(dataset) == 38  # and a quarter again


def test_an_adaptive_campaign_is_the_same_when_it_was_interrupted(tmp_path: Path) -> None:
    def chosen(name: str, pieces: int) -> list[dict[str, object]]:
        for _ in range(pieces):
            left = iter([False] * 17 + [True])
            measure(
                small_study(**ADAPTIVE),
                tmp_path / name,
                executors=simulated(time_of, noise=0.0),
                should_stop=lambda left=left: pieces > 1 and next(left),  # type: ignore[misc]
            )
        dataset = measure(
            small_study(**ADAPTIVE), tmp_path / name, executors=simulated(time_of, noise=0.0)
        )
        order = np.argsort(dataset.other["trial"])
        return dataset.X.iloc[order].to_dict("records")

    assert chosen("whole.db", 1) == chosen("pieces.db", 4)


def test_the_surrogate_learns_which_parameters_matter() -> None:
    space = load_space("table_4_1")
    trials = space.sample(80, random_state=1)
    rng = np.random.default_rng(0)
    factor = {"adam": 2.0, "sgd": 1.0}
    logs = np.log([float(t["device_batch"]) * factor[str(t["optimizer"])] for t in trials])
    surrogate = fit_surrogate(
        Coordinates(space, trials).of(trials), logs + 0.01 * rng.standard_normal(80)
    )
    weights = dict(zip(space.names, surrogate.weights, strict=False))
    matter = {"device_batch", "optimizer"}
    assert min(weights[n] for n in matter) > 10 * max(
        w for n, w in weights.items() if n not in matter
    )


def test_a_dear_trial_is_chosen_only_when_it_is_worth_it() -> None:
    """Of trials that teach the same, the cheaper ones are measured."""
    space = load_space("table_4_1")
    measured = space.sample(60, random_state=1)
    candidates = space.sample(200, random_state=2)
    times_s = [float(t["device_batch"]) ** 2 * float(t["filters"]) for t in measured]
    costs = np.array([float(t["device_batch"]) ** 2 * float(t["filters"]) for t in candidates])
    chosen = choose_next(space, measured, times_s, candidates, 20)
    assert len(set(chosen)) == 20
    assert np.median(costs[chosen]) < np.median(costs)
    free = choose_next(space, measured, times_s, candidates, 20, n_steps=0.0, overhead_s=1.0)
    assert np.mean(costs[free]) > np.mean(costs[chosen])


def test_adaptive_is_not_worse_than_random_on_a_generated_study() -> None:
    dataset = generate_study("tensorflow", n_rows=400, noise=0.05, random_state=1).dataset
    model = GenericRegressor(extrinsic=dataset.extrinsic)
    keywords = {"estimator": model, "n_steps": 1.0, "overhead_s": 0.0}
    random, adaptive = (
        replay(dataset, design, 100, seeds=(0, 1), **keywords)  # type: ignore[arg-type]
        for design in ("random", "adaptive")
    )
    assert adaptive.error <= 1.1 * random.error
    assert "100 adaptive trials: error" in str(adaptive)


def test_a_replay_refuses_what_it_cannot_do() -> None:
    dataset = generate_study("mxnet", n_rows=50, random_state=1).dataset
    with pytest.raises(UnknownNameError, match="design"):
        replay(dataset, "latin", 10)
    with pytest.raises(InvalidInputError, match="`n` must be at most 70% of the 50 rows"):
        replay(dataset, "random", 40)
