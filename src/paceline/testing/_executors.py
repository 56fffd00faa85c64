"""What every executor that really runs jobs must do."""

from __future__ import annotations

import contextlib
import os
import statistics
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from paceline.errors import ExecutionError, RunTimeoutError
from paceline.executors import PHASES, Delay, Job, RunRecord

_TIMEOUT_S = 120.0  # generous: some frameworks compile a job before its first step
_PLANTED_S = 0.002
_FEWEST_PAIRS, _MOST_PAIRS = 5, 15

# a small LeNet, written out: what is tested must not depend on the workloads
_NETWORK: Sequence[Mapping[str, Any]] = (
    {"op": "conv", "name": "conv1", "dims": 2, "in": 1, "out": 4, "kernel": 5}
    | {"stride": 1, "padding": [2, 2], "bias": True},
    {"op": "activation", "name": "active1", "function": "relu"},
    {"op": "pool", "name": "pool1", "dims": 2, "kernel": 2, "stride": 2}
    | {"padding": [0, 0], "kind": "max"},
    {"op": "conv", "name": "conv2", "dims": 2, "in": 4, "out": 8, "kernel": 3}
    | {"stride": 1, "padding": [0, 0], "bias": True},
    {"op": "activation", "name": "active2", "function": "tanh"},
    {"op": "pool", "name": "pool2", "dims": 2, "kernel": 2, "stride": 2}
    | {"padding": [0, 0], "kind": "average"},
    {"op": "flatten", "name": "flat"},
    {"op": "linear", "name": "linear1", "in": 72, "out": 32, "bias": True},
    {"op": "activation", "name": "active3", "function": "relu"},
    {"op": "dropout", "name": "drop", "share": 0.0},
    {"op": "linear", "name": "linear2", "in": 32, "out": 4, "bias": True},
)


def contract_job(device_batches: Sequence[int], **changes: Any) -> Job:
    """Return a small job with learnable samples, for tests of executors."""
    settings: dict[str, Any] = {
        "network": _NETWORK,
        "sample": {"shape": [1, 16, 16], "n_classes": 4},
        "optimizer": {"name": "sgd", "learning_rate": 0.1},
        "data": {"kind": "generated", "n_samples": 96},
    }
    return Job(device_batches=tuple(device_batches), **{**settings, **changes})


class ExecutorContract:
    """Checks for an executor; inherit, and give a fixture named `executor`.

    Workers are started once per class and number, as a campaign does it.
    """

    _pools: ClassVar[dict[int, Any]]

    @classmethod
    def setup_class(cls) -> None:
        """Begin without workers."""
        cls._pools = {}

    @classmethod
    def teardown_class(cls) -> None:
        """End all workers, whatever the tests did."""
        for pool in cls._pools.values():
            pool.close()

    def run(self, executor: Any, job: Job, timeout_s: float = _TIMEOUT_S) -> RunRecord:
        """Run a job on workers that are there already, if there are any."""
        record: RunRecord = self.pool(executor, job.n_workers).run(job, timeout_s)
        return record

    def pool(self, executor: Any, n_workers: int) -> Any:
        """Return the workers of this class."""
        if n_workers not in self._pools:
            self._pools[n_workers] = executor.open(n_workers)
        return self._pools[n_workers]

    def test_it_is_ready(self, executor: Any) -> None:
        """Readiness is an empty reason."""
        assert executor.readiness() == ""

    def test_the_loss_falls(self, executor: Any) -> None:
        """By a third in 30 steps."""
        adam = {"name": "adam", "learning_rate": 0.01}
        job = contract_job([16, 16], n_warmup=0, n_steps=30, optimizer=adam)
        record = self.run(executor, job)
        losses = np.mean([worker.losses for worker in record.workers], axis=0)
        assert len(losses) == 30 and np.isfinite(losses).all()
        assert losses[-5:].mean() < 0.67 * losses[:5].mean()

    def test_all_workers_hold_equal_weights(self, executor: Any) -> None:
        """After steps of both passes, bit for bit."""
        record = self.run(executor, contract_job([8, 8], n_steps=4, n_phase_steps=3))
        digests = {worker.weights_digest for worker in record.workers}
        assert len(digests) == 1 and digests != {""}
        assert [worker.rank for worker in record.workers] == [0, 1]

    def test_two_workers_equal_one_with_the_whole_batch(self, executor: Any) -> None:
        """In both passes."""
        for passes in ({"n_steps": 5}, {"n_steps": 0, "n_phase_steps": 5}):
            self._assert_equals_serial(executor, [8, 8], passes)

    def test_unequal_batches_equal_one_with_the_whole_batch(self, executor: Any) -> None:
        """Gradients are weighted by samples, in both passes."""
        for passes in ({"n_steps": 5}, {"n_steps": 0, "n_phase_steps": 5}):
            self._assert_equals_serial(executor, [12, 4], passes)

    def test_weights_depend_on_the_seed_alone(self, executor: Any) -> None:
        """The same seed gives the same run, another one another."""
        seeds = (1, 1, 2)
        jobs = [contract_job([8], n_steps=2, seed=seed, return_weights=True) for seed in seeds]
        first, again, other = (self.run(executor, job).workers[0].weights for job in jobs)
        np.testing.assert_allclose(first, again, rtol=1e-6)
        assert not np.allclose(first, other)

    def test_phases_sum_to_the_step(self, executor: Any) -> None:
        """Within a tenth, on every worker."""
        record = self.run(executor, contract_job([32, 32], n_phase_steps=20))
        for worker in record.workers:
            assert len(worker.phases) == len(worker.phase_step_s) == 20
            sums = [sum(phases.values()) for phases in worker.phases]
            ratios = np.divide(sums, worker.phase_step_s)
            assert 0.9 < statistics.median(ratios) <= 1.001

    def test_phases_are_known_and_merged_ones_are_said(self, executor: Any) -> None:
        """A phase is timed, or it is said where its time went."""
        for worker in self.run(executor, contract_job([8, 8], n_phase_steps=2)).workers:
            hidden = {name for names in worker.merged.values() for name in names}
            assert set(worker.phases[0]) <= set(PHASES)
            assert set(PHASES) - set(worker.phases[0]) <= hidden
            assert executor.capabilities == set(PHASES) - hidden
            assert all(seconds >= 0 for step in worker.phases for seconds in step.values())

    def test_one_worker_does_not_communicate(self, executor: Any) -> None:
        """Neither does it wait."""
        worker = self.run(executor, contract_job([8], n_phase_steps=3)).workers[0]
        for step in worker.phases:
            assert step.get("wait", 0.0) + step.get("transfer", 0.0) <= 0.01 * sum(step.values())

    def test_layers_sum_to_their_phase(self, executor: Any) -> None:
        """Within a tenth; frameworks that cannot time layers give none."""
        job = contract_job([256, 256], n_phase_steps=24, per_layer=True)
        for worker in self.run(executor, job).workers:
            if not executor.has_layer_times:
                assert worker.layers == ()
                continue
            assert [layer["name"] for layer in worker.layers] == [op["name"] for op in _NETWORK]
            for phase in ("forward", "backward"):
                total = sum(layer[f"{phase}_s"] for layer in worker.layers)
                times = [step[phase] for step in worker.phases]
                assert 0.9 < total / _middle(times) < 1.1, phase

    def test_a_planted_delay_is_seen_where_it_is(self, executor: Any) -> None:
        """Phase, worker, and amount within 15 %."""
        for phase, guilty in (("backward", 1), ("forward", 0), ("io", 1)):
            if phase not in executor.capabilities:
                continue
            more = self._planted(executor, Delay(phase=phase, worker=guilty, seconds=_PLANTED_S))
            # the others wait for the guilty one, and processes that move gradients yield to it
            own = {k: seconds for k, seconds in more.items() if k[1] not in ("wait", "transfer")}
            assert max(own, key=own.__getitem__) == (guilty, phase)
            assert abs(more[guilty, phase] / _PLANTED_S - 1) < 0.15, (phase, more)

    def test_a_job_that_cannot_be_done_fails_and_the_next_one_runs(self, executor: Any) -> None:
        """A layer that does not fit the one before it."""
        broken = [*_NETWORK[:-1], {**_NETWORK[-1], "in": 33}]
        with _expected(ExecutionError) as errors:
            self.run(executor, contract_job([4, 4], network=broken))
        assert errors[0].reason and "\n" not in errors[0].reason
        assert self.run(executor, contract_job([4, 4])).step_s

    def test_a_worker_that_dies_fails_its_job_and_the_next_one_runs(self, executor: Any) -> None:
        """Killed in the middle of a step, while the other one waits for it."""
        pool = self.pool(executor, 2)
        self.run(executor, contract_job([4, 4]))
        before = pool.pids
        timer = threading.Timer(0.5, lambda: os.kill(before[1], 9))
        slow = Delay(phase="forward", worker=1, seconds=_TIMEOUT_S)
        with _expected(ExecutionError):
            timer.start()
            self.run(executor, contract_job([4, 4], delays=[slow]))
        timer.join()
        assert not any(_exists(pid) for pid in before)
        assert self.run(executor, contract_job([4, 4])).step_s

    def test_a_job_that_hangs_is_ended_by_its_limit(self, executor: Any) -> None:
        """With all workers, also the one that only waits."""
        self.run(executor, contract_job([4, 4]))
        before = self.pool(executor, 2).pids
        stuck = Delay(phase="forward", worker=0, seconds=10 * _TIMEOUT_S)
        with _expected(RunTimeoutError):
            self.run(executor, contract_job([4, 4], delays=[stuck]), timeout_s=1.0)
        assert not any(_exists(pid) for pid in before)
        assert self.run(executor, contract_job([4, 4])).step_s

    def test_nothing_is_left_running(self, executor: Any) -> None:
        """After closing."""
        with executor.open(1) as pool:
            pids = pool.pids
            assert pool.is_alive and all(_exists(pid) for pid in pids)
        assert not pool.is_alive and not any(_exists(pid) for pid in pids)

    def _assert_equals_serial(
        self, executor: Any, batches: Sequence[int], passes: Mapping[str, int]
    ) -> None:
        jobs = [
            contract_job(each, n_warmup=0, return_weights=True, **passes)
            for each in (batches, [sum(batches)])
        ]
        parallel, serial = (self.run(executor, job).workers for job in jobs)
        shares = np.divide(batches, sum(batches))
        losses = np.average([worker.losses for worker in parallel], axis=0, weights=shares)
        np.testing.assert_allclose(losses, serial[0].losses, rtol=1e-3)
        np.testing.assert_allclose(parallel[1].weights, serial[0].weights, rtol=1e-3, atol=1e-5)

    def _planted(self, executor: Any, delay: Delay) -> dict[tuple[int, str], float]:
        """Return how much longer every phase took with the delay than without.

        Each run with it is compared with those without it right before and right after, so
        that drift cancels; the median over such pairs counts. There are as many as it takes for
        the pairs to agree, whatever they say.
        """
        place = delay.worker, delay.phase
        pairs: list[dict[tuple[int, str], float]] = []
        before = _phase_times(self.run(executor, _short_job([])))
        while len(pairs) < _MOST_PAIRS and not _agree([pair[place] for pair in pairs]):
            with_it, after = (
                _phase_times(self.run(executor, _short_job(delays))) for delays in ([delay], [])
            )
            pairs.append({k: with_it[k] - 0.5 * (before[k] + after[k]) for k in before})
            before = after
        return {k: statistics.median(pair[k] for pair in pairs) for k in before}


def _short_job(delays: Sequence[Delay]) -> Job:
    """Return a job whose own phases are short beside the delay, and so is their noise."""
    steps = {"n_warmup": 3, "n_steps": 0, "n_phase_steps": 40}
    network = (_NETWORK[6], {**_NETWORK[7], "in": 256, "out": 4})
    return contract_job([8, 8], network=network, delays=delays, **steps)


def _agree(differences: Sequence[float]) -> bool:
    """Whether the median of these is sure to a few hundredths of the delay."""
    if len(differences) < _FEWEST_PAIRS:
        return False
    middle = statistics.median(differences)
    spread = 1.48 * statistics.median(abs(difference - middle) for difference in differences)
    return spread / len(differences) ** 0.5 < 0.03 * _PLANTED_S


def _phase_times(record: RunRecord) -> dict[tuple[int, str], float]:
    """Return a low quartile of every phase: what else runs on a machine only adds time."""
    return {
        (worker.rank, phase): float(np.quantile([step[phase] for step in worker.phases], 0.25))
        for worker in record.workers
        for phase in worker.phases[0]
    }


def _middle(times: Sequence[float]) -> float:
    quarter = len(times) // 4
    return statistics.fmean(sorted(times)[quarter : len(times) - quarter])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def _expected(kind: type[ExecutionError]) -> Iterator[list[ExecutionError]]:
    caught: list[ExecutionError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    assert caught, f"{kind.__name__} must be raised, but nothing was."
