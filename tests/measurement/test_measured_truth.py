"""What is planted in real workers is what is measured of them (PyTorch)."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from paceline.estimators import PhaseTable, lif_by_phase, lif_by_step, load_imbalance_factor
from paceline.executors import Delay, Job, SimulatedExecutor, load_executor
from paceline.explainers import LastingExcess, read_imbalance
from paceline.measurement import Balance, balance_shares
from paceline.testing import contract_job

pytest.importorskip("torch", reason="PyTorch is not installed. Try: pip install 'paceline[torch]'")

CPU_GROUPS = Path("/sys/fs/cgroup/cpu")
# of the quota: short beside a step, so that every step is slowed alike
PERIOD_US, SHARE = 5000, 0.3
TRIES = 12
MOST_S = 60.0
MOST_TAKEN = 0.1  # of the busy time by a host: more, and pauses of milliseconds drown
STAT = Path("/proc/stat")


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


def share_taken_by_host() -> Callable[[], float]:
    """Return what tells how much of the busy time a host has taken since (Linux's steal)."""

    def ticks() -> npt.NDArray[np.float64]:
        return np.array(STAT.read_text().split("\n", 1)[0].split()[1:9], dtype=float)

    if not STAT.exists():
        return lambda: 0.0
    before = ticks()

    def share() -> float:
        *busy, _idle, _waiting, irq, softirq, stolen = ticks() - before
        return float(stolen / max(sum(busy) + irq + softirq + stolen, 1.0))

    return share


def assert_measured(measure: Callable[[], Any], is_planted: Callable[[Any], bool]) -> None:
    """Assert that one of some measurements shows what was planted.

    Other work on the machine only adds to phases, and is read as well: what a disturbed
    measurement says is true of it. What reads wrongly does so every time.
    """
    taken, end = share_taken_by_host(), time.monotonic() + MOST_S
    found = []
    while len(found) < TRIES and time.monotonic() < end:
        found.append(measure())
        if is_planted(found[-1]):
            return
    if taken() > MOST_TAKEN:
        pytest.skip(f"The host took {taken():.0%} of the busy time; measured were {found}.")
    pytest.fail(f"What was planted was not measured, but {found}.")


def assert_read(pool: Any, phase: str, worker: int, seconds: float, n_steps: int) -> None:
    """Assert that nothing lasts more than a pause that is planted, and that it is as long."""

    def largest() -> LastingExcess | None:
        table = measured(pool, planted((phase, worker, seconds), n_steps=n_steps))
        return next(iter(read_imbalance(table).lasting), None)

    def is_planted(excess: LastingExcess | None) -> bool:
        if excess is None or (excess.worker, excess.phase) != (worker, phase):
            return False
        return excess.excess_s == pytest.approx(seconds, rel=0.15)

    assert_measured(largest, is_planted)


def test_2_ms_more_in_backward_of_worker_1_are_read_as_such(pool: Any) -> None:
    assert_read(pool, "backward", 1, 2e-3, n_steps=40)


@pytest.mark.parametrize("phase", ["io", "h2d", "md", "forward", "backward", "update"])
@pytest.mark.parametrize("worker", [0, 1])
def test_more_in_any_phase_of_any_worker_is_seen_there(pool: Any, phase: str, worker: int) -> None:
    assert_read(pool, phase, worker, 20e-3, n_steps=8)


@pytest.mark.parametrize("seconds", [(0.04, 0.06), (0.08, 0.04), (0.05, 0.05)])
def test_the_load_imbalance_factor_is_the_planted_one(
    pool: Any, seconds: tuple[float, float]
) -> None:
    """Pauses that dwarf the network's own work, in different phases of the two workers."""
    delays = (("forward", 0, seconds[0]), ("backward", 1, seconds[1]))

    def factors() -> tuple[float, float, float]:
        table = measured(pool, planted(*delays, n_steps=6))
        of_phase = lif_by_phase(table).set_index("phase")["lif"]
        lif = float(np.median(lif_by_step(table)))
        return lif, float(of_phase["forward"]), float(of_phase["backward"])

    def are_planted(found: tuple[float, float, float]) -> bool:
        lif, *of_phases = found  # 2: one worker does all
        return lif == pytest.approx(load_imbalance_factor(seconds), rel=0.05) and (
            min(of_phases) > 1.8
        )

    assert_measured(factors, are_planted)


def test_waiting_is_no_work(pool: Any) -> None:
    def waited_and_own() -> tuple[float, float, float]:
        table = measured(pool, planted(("forward", 1, 50e-3), n_steps=6))
        first, second = table.of_phase("wait").mean(axis=0)
        return float(first), float(second), float(np.median(table.own_s()[:, 0]))

    def is_planted(found: tuple[float, float, float]) -> bool:
        waited, other_waited, own = found  # though its step took 50 ms
        return waited > 0.045 and other_waited < 0.02 and own < 0.02

    assert_measured(waited_and_own, is_planted)


def test_uneven_shares_balance_a_worker_slowed_by_a_quota(slow_pool: Any) -> None:
    job = contract_job(
        [512, 512], n_warmup=2, n_steps=0, n_phase_steps=12, data={"n_samples": 4096}
    )
    found: list[Balance] = []

    def balance() -> str:
        found.append(balance_shares(slow_pool, job, timeout_s=120.0, max_rounds=6))
        return str(found[-1])

    def is_balanced(_: str) -> bool:
        equal, best = found[-1].equal, found[-1].best
        first, second = best.device_batches
        is_shared = first > second and first + second == 1024
        is_faster = best.step_s < 0.9 * equal.step_s
        return equal.lif > 1.2 and best.lif <= 1.05 and is_shared and is_faster

    assert_measured(balance, is_balanced)
    assert_trains_like_one_worker(found[-1], job)


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
