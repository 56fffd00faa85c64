"""Uneven shares tried for real: measure workers, divide the batch by their speed, run it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from paceline.errors import InvalidInputError
from paceline.estimators import (
    PhaseTable,
    Shares,
    equal_shares,
    lif_over_run,
    propose_shares,
    worker_speeds,
)
from paceline.executors import Job, Pool, RunRecord
from paceline.units import format_number

_N_PHASE_STEPS = 12  # when the job has none


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceTry:
    """One division of the global batch, run.

    Parameters
    ----------
    device_batches
        Samples of each worker in a step.
    lif
        Measured load imbalance factor (3.8) of the workers' own work in all steps together.
    step_s
        Mean step without overlap.
    record
        Everything that the workers measured.
    """

    device_batches: tuple[int, ...]
    lif: float
    step_s: float
    record: RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What uneven shares bring, measured.

    Parameters
    ----------
    tries
        Divisions in the order in which they were run, the equal one first.
    shares
        The proposal that led to the best one, with what it was predicted to bring; None when
        equal shares were balanced already.
    """

    tries: tuple[BalanceTry, ...]
    shares: Shares | None

    @property
    def equal(self) -> BalanceTry:
        """The run with equal shares."""
        return self.tries[0]

    @property
    def best(self) -> BalanceTry:
        """The run with the smallest load imbalance factor."""
        return min(self.tries, key=lambda one: one.lif)

    def __str__(self) -> str:
        return (
            f"{'+'.join(map(str, self.equal.device_batches))} samples: LIF "
            f"{format_number(self.equal.lif, 4)}; "
            f"{'+'.join(map(str, self.best.device_batches))}: "
            f"{format_number(self.best.lif, 4)} (measured)"
        )


def balance_shares(
    pool: Pool, job: Job, *, timeout_s: float = 600.0, tol: float = 0.02, max_rounds: int = 4
) -> Balance:
    """Divide the global batch of a job so that no worker waits, and measure that it is so.

    The job is run with equal shares; from the workers' own work their speeds are taken, from
    these the division whose slowest worker is fastest; it is run, the speeds are taken again
    where it stands, and so on. Gradients are weighted by samples, so the training is the same.

    Parameters
    ----------
    pool
        Workers that stay alive meanwhile: a process has its own speed for life.
    job
        What to train. Its `device_batches` give the global batch; `n_phase_steps` are the steps
        that each round measures (12 when it has none).
    timeout_s
        Seconds that one round may take.
    tol
        Shares are good when the load imbalance factor is at most 1 + `tol`.
    max_rounds
        Rounds after the one with equal shares, at most.

    Raises
    ------
    InvalidInputError
        When there is one worker only, or the framework cannot tell work from waiting.
    """
    if job.n_workers < 2:
        raise InvalidInputError(f"Shares need at least 2 workers, but got {job.n_workers}.")
    job = replace(job, n_phase_steps=job.n_phase_steps or _N_PHASE_STEPS)
    global_batch = sum(job.device_batches)
    tries: list[BalanceTry] = []
    proposals: list[Shares | None] = [None]
    batches = equal_shares(global_batch, job.n_workers)
    while True:
        table, tried = _run(pool, replace(job, device_batches=batches), timeout_s)
        tries.append(tried)
        if tried.lif <= 1 + tol or len(tries) > max_rounds:
            break
        # of the last run alone: divisions that hardly differ cannot give a line through them
        proposal = propose_shares(worker_speeds([table]), global_batch)
        proposals.append(proposal)
        batches = proposal.device_batches
    best = min(range(len(tries)), key=lambda i: tries[i].lif)
    return Balance(tries=tuple(tries), shares=proposals[best])


def _run(pool: Pool, job: Job, timeout_s: float) -> tuple[PhaseTable, BalanceTry]:
    record = pool.run(job, timeout_s)
    table = PhaseTable.from_workers([asdict(w) for w in record.workers], job.device_batches)
    tried = BalanceTry(
        device_batches=tuple(job.device_batches),
        lif=lif_over_run(table),
        step_s=float(table.unoverlapped_s().mean()),
        record=record,
    )
    return table, tried
