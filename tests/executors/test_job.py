"""What the workers' own times say about the steps of all of them together."""

from __future__ import annotations

import pytest

from paceline.executors import Job, RunRecord, SimulatedExecutor, WorkerRecord


def record(*times_s: tuple[float, ...]) -> RunRecord:
    workers = (WorkerRecord(rank=rank, step_s=times) for rank, times in enumerate(times_s))
    return RunRecord(workers=tuple(workers))


def test_one_worker_tells_the_steps_as_they_are() -> None:
    assert record((0.1, 0.3, 0.2)).step_s == (0.1, 0.3, 0.2)


def test_a_pause_that_two_workers_see_in_different_steps_counts_once() -> None:
    # worker 0 is held up for 1 s after the meeting of step 0, worker 1 waits for it in step 1
    held_up, waiting = (2.0, 1.0, 1.0), (1.0, 2.0, 1.0)
    assert record(held_up, waiting).step_s == pytest.approx((2.0, 1.0, 1.0))


def test_the_steps_of_all_workers_add_up_to_the_time_that_passed() -> None:
    steps = record((1.0, 2.5, 1.0, 1.5), (1.2, 2.2, 1.6, 0.9), (0.9, 2.6, 1.0, 1.5))
    assert sum(steps.step_s) == pytest.approx(6.0)
    assert min(steps.step_s) > 0


def test_workers_that_always_wait_for_the_slowest_show_its_steps() -> None:
    executor = SimulatedExecutor(lambda job: 0.01, imbalance={1: 1.5}, noise=0.0)
    job = Job(
        sample={"shape": [4]}, optimizer={"name": "sgd"}, device_batches=[1, 1, 1], n_steps=5
    )
    with executor.open(3) as pool:
        found = pool.run(job, 1.0)
    assert found.step_s == pytest.approx(found.workers[1].step_s)
