"""What is planted in real workers is what is measured of them (PyTorch)."""

import uuid
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.estimators import PhaseTable, lif_by_phase, lif_by_step, load_imbalance_factor
from paceline.executors import Delay, Job, SimulatedExecutor, load_executor
from paceline.explainers import read_imbalance
from paceline.measurement import Balance, balance_shares
from paceline.testing import contract_job

pytest.importorskip("torch", reason="PyTorch is not installed. Try: pip install 'paceline[torch]'")

CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
# of the quota: short beside a step, so that every step is slowed alike
PERIOD_US, SHARE = 5000, 0.3
TRIES = 6  # other work on the machine is not planted: the quietest measurement counts


@pytest.fixture(scope="module")
def pool() -> Iterator[Any]:
    with load_executor("torch").open(2) as pool:
        yield pool


@pytest.fixture
def slow_pool() -> Iterator[Any]:
    """Two workers; the second may use 30 % of a core, by a quota of the kernel."""
    group = CPU_GROUPS / f"paceline-{uuid.uuid4().hex[:8]}"
    with load_executor("torch").open(2) as pool:
        try:
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(round(PERIOD_US * SHARE)))
            (group / "cgroup.procs").write_text(str(pool.pids[1]))
        except OSError as error:
            pytest.skip(f"A CPU quota needs root and the cgroup controller `cpu`: {error}.")
        yield pool
    assert not (group / "cgroup.procs").read_text()
    group.rmdir()


def measured(pool: Any, job: Job) -> PhaseTable:
    record = pool.run(job, 120.0)
    return PhaseTable.from_workers([asdict(w) for w in record.workers], job.device_batches)


def planted(*delays: tuple[str, int, float], n_steps: int = 20) -> Job:
    pauses = [Delay(phase=p, worker=w, seconds=s) for p, w, s in delays]
    return contract_job([4, 4], n_warmup=2, n_steps=0, n_phase_steps=n_steps, delays=pauses)


def test_2_ms_more_in_backward_of_worker_1_are_read_as_such(pool: Any) -> None:
    found = []
    for _ in range(TRIES):
        reading = read_imbalance(measured(pool, planted(("backward", 1, 2e-3), n_steps=40)))
        found.extend(reading.lasting[:1])  # nothing lasts where disturbances drown it
        if found and abs(found[-1].excess_s / 2e-3 - 1) < 0.05:
            break
    assert {(excess.worker, excess.phase) for excess in found} == {(1, "backward")}
    nearest = min(found, key=lambda excess: excess.error_s)
    assert nearest.excess_s == pytest.approx(2e-3, rel=0.15)


@pytest.mark.parametrize("phase", ["io", "h2d", "md", "forward", "backward", "update"])
@pytest.mark.parametrize("worker", [0, 1])
def test_more_in_any_phase_of_any_worker_is_seen_there(pool: Any, phase: str, worker: int) -> None:
    found = []
    for _ in range(2 * TRIES):  # again where its own standard error says it was disturbed
        reading = read_imbalance(measured(pool, planted((phase, worker, 20e-3), n_steps=8)))
        found.extend(reading.lasting[:1])  # nothing lasts where disturbances drown it
        if found and found[-1].error_s < 0.05 * 20e-3:
            break
    nearest = min(found, key=lambda excess: excess.error_s)
    assert (nearest.worker, nearest.phase) == (worker, phase)
    assert nearest.excess_s == pytest.approx(20e-3, rel=0.15)


@pytest.mark.parametrize("seconds", [(0.04, 0.06), (0.08, 0.04), (0.05, 0.05)])
def test_the_load_imbalance_factor_is_the_planted_one(
    pool: Any, seconds: tuple[float, float]
) -> None:
    """Pauses that dwarf the network's own work, in different phases of the two workers."""
    truth = load_imbalance_factor(seconds)
    delays = (("forward", 0, seconds[0]), ("backward", 1, seconds[1]))
    tables = [measured(pool, planted(*delays, n_steps=6)) for _ in range(2)]
    lif = min((float(np.median(lif_by_step(t))) for t in tables), key=lambda x: abs(x - truth))
    assert lif == pytest.approx(truth, rel=0.05)
    by_phase = lif_by_phase(tables[0]).set_index("phase")["lif"]
    assert by_phase["forward"] > 1.8 and by_phase["backward"] > 1.8  # 2: one worker does all


def test_waiting_is_no_work(pool: Any) -> None:
    table = measured(pool, planted(("forward", 1, 50e-3), n_steps=6))
    waited = table.of_phase("wait").mean(axis=0)
    assert waited[0] > 0.045 and waited[1] < 0.02
    assert np.median(table.own_s()[:, 0]) < 0.02  # though its step took 50 ms


def test_uneven_shares_balance_a_worker_slowed_by_a_quota(slow_pool: Any) -> None:
    job = contract_job(
        [512, 512], n_warmup=2, n_steps=0, n_phase_steps=12, data={"n_samples": 4096}
    )
    for _ in range(TRIES):
        balance = balance_shares(slow_pool, job, timeout_s=120.0, max_rounds=6)
        if balance.best.lif <= 1.05:
            break
    assert balance.equal.lif > 1.2
    assert balance.best.lif <= 1.05, str(balance)
    first, second = balance.best.device_batches
    assert first > second and first + second == 1024
    assert balance.best.step_s < 0.9 * balance.equal.step_s
    assert_trains_like_one_worker(balance, job)


def assert_trains_like_one_worker(balance: Balance, job: Job) -> None:
    with load_executor("torch").open(1) as pool:
        (serial,) = pool.run(replace(job, device_batches=(1024,)), 120.0).workers
    workers = balance.best.record.workers
    losses = np.average([w.losses for w in workers], axis=0, weights=balance.best.device_batches)
    np.testing.assert_allclose(losses, serial.losses, rtol=1e-4)
    assert len({w.weights_digest for w in workers}) == 1
    assert losses[-1] < losses[0]


def test_shares_are_found_for_planted_speeds() -> None:
    """Workers that take 1 and 3 ms per sample and 10 ms beside, without any process."""
    executor = PerSample(lambda job: 0.0, noise=0.0)
    with executor.open(2) as pool:
        balance = balance_shares(pool, contract_job([32, 32]), tol=0.02)
    assert balance.equal.device_batches == (32, 32) and balance.equal.lif > 1.4
    assert balance.best.device_batches == (48, 16) and balance.best.lif < 1.02
    assert balance.shares is not None and balance.shares.device_batches == (48, 16)
    assert str(balance).startswith("32+32 samples: LIF 1.4")


def test_equal_workers_keep_equal_shares() -> None:
    with SimulatedExecutor(lambda job: 0.01, noise=0.0).open(2) as pool:
        balance = balance_shares(pool, contract_job([8, 8]))
        assert len(balance.tries) == 1 and balance.shares is None
    alone = SimulatedExecutor(lambda job: 0.01).open(1)
    with pytest.raises(ValueError, match="at least 2 workers, but got 1"):
        balance_shares(alone, contract_job([8]))


class PerSample(SimulatedExecutor):
    """Workers whose own work grows with their samples, each at its own speed."""

    def open(self, n_workers: int, *, memory_bytes: int | None = None) -> Any:
        pool = super().open(n_workers, memory_bytes=memory_bytes)
        inner = pool.run

        def run(job: Job, timeout_s: float) -> Any:
            own = [1e-3 * b * (1 + 2 * rank) + 1e-2 for rank, b in enumerate(job.device_batches)]
            delays = [Delay(phase="forward", worker=i, seconds=s) for i, s in enumerate(own)]
            return inner(replace(job, delays=delays), timeout_s)

        pool.run = run
        return pool
