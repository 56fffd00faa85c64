"""Which workers run what on this machine."""

from __future__ import annotations

from pathlib import Path

from tests.measurement.small_studies import small_study

from paceline.executors import SimulatedExecutor
from paceline.measurement import Campaign
from paceline.measurement._local import run_local


class WarmExecutor(SimulatedExecutor):
    """Counts what workers would be forked from; a pool's life names it."""

    def __init__(self) -> None:
        super().__init__(lambda job: 0.01)
        self.opened: list[WarmExecutor] = []
        self.is_closed, self.n_pools = False, 0

    def warm(self) -> WarmExecutor:
        assert all(other.is_closed for other in self.opened)  # one at a time
        self.opened.append(WarmExecutor())
        return self.opened[-1]

    def open(self, n_workers: int, *, memory_bytes: int | None = None):
        assert not self.is_closed
        self.n_pools += 1
        return super().open(n_workers, memory_bytes=memory_bytes)

    def close(self) -> None:
        self.is_closed = True


def test_rounds_share_no_process_and_nothing_stays_open(tmp_path: Path) -> None:
    executor = WarmExecutor()
    with Campaign(small_study(), tmp_path / "runs.db") as campaign:
        rounds = {run.round for run in campaign.plan}
        sessions = {run.session for run in campaign.plan}
        run_local(campaign, {"torch": executor})
        assert campaign.is_finished
    assert len(executor.opened) >= len(rounds)
    assert sum(other.n_pools for other in executor.opened) >= len(sessions)
    assert all(other.is_closed for other in executor.opened)
    assert executor.n_pools == 0 and not executor.is_closed
