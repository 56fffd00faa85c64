"""Where load imbalance arises: which worker, which phase, lasting or random, at what cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paceline.estimators import (
    PhaseTable,
    lif_by_phase,
    lif_by_step,
    lif_over_run,
)
from paceline.explainers._differences import MIN_STEPS, Difference, lasting_difference
from paceline.units import format_number, format_percent, format_seconds

_LEVEL = 0.01  # chance of calling anything in a balanced run lasting
_WORTH_SAYING = 0.01  # of a worker's own work; smaller differences are not worth a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingExcess:
    """A worker that spends more in a phase than the others, step after step.

    Parameters
    ----------
    worker, phase
        Which worker, and what it does then.
    excess_s, error_s
        How much more than the median of the others, and the standard error of that.
    share_of_steps
        In how many steps it spends more.
    """

    worker: int
    phase: str
    excess_s: float
    error_s: float
    share_of_steps: float

    def __str__(self) -> str:
        often = "every step"
        if self.share_of_steps < 1:
            often = f"{format_percent(self.share_of_steps)} of the steps"
        return (
            f"Worker {self.worker} spends {format_seconds(self.excess_s)} "
            f"(± {format_seconds(self.error_s, 2)}) more in {self.phase} than the others, "
            f"in {often}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImbalanceReading:
    """How unequal the workers' own work is, where, and what it costs.

    Parameters
    ----------
    n_workers, n_steps
        Size of the run.
    lif, lif_run
        Load imbalance factor (3.8): mean over steps, and of all steps together.
    lif_phases
        Mean over steps, by phase.
    lasting
        Who spends more in which phase, the largest first.
    step_s
        Mean step without overlap.
    waiting_s
        What the slowest worker needs beyond the mean one, mean over steps: what perfect balance
        would save. It is `lasting_s` + `random_s`.
    lasting_s
        The part that would remain if every step were like the mean one.
    random_s
        The part that comes from chance: another worker is slowest in another step.
    waited_s
        Measured waiting of a worker, mean over workers: up to N / (N - 1) times `waiting_s`
        per waiting worker, and the barrier itself.
    slowest
        In which share of the steps each worker was the slowest.
    """

    n_workers: int
    n_steps: int
    lif: float
    lif_run: float
    lif_phases: dict[str, float]
    lasting: tuple[LastingExcess, ...]
    step_s: float
    waiting_s: float
    lasting_s: float
    random_s: float
    waited_s: float
    slowest: tuple[float, ...]

    @property
    def is_persistent(self) -> bool:
        """Whether some worker is slower step after step, beyond chance."""
        return bool(self.lasting)

    @property
    def waiting_share(self) -> float:
        """Share of the step without overlap that is waiting for the slowest worker."""
        return self.waiting_s / self.step_s if self.step_s > 0 else 0.0

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a person should know, the most important first."""
        if self.n_workers == 1:
            return ("One worker: there is nobody to wait for.",)
        found = [str(excess) for excess in self.lasting]
        return (*(found or [self._no_finding()]), self._cost(), self._nature())

    def to_dict(self) -> dict[str, Any]:
        """Return the reading as plain data."""
        names = ("is_persistent", "waiting_share", "sentences")
        return asdict(self) | {name: getattr(self, name) for name in names}

    def _no_finding(self) -> str:
        if self.n_steps < MIN_STEPS:
            return f"{self.n_steps} steps are too few to tell lasting imbalance from chance."
        return "No persistent imbalance: no worker is slower than the others beyond chance."

    def _cost(self) -> str:
        return (
            f"Waiting for the slowest costs {format_percent(self.waiting_share)} of the step "
            f"({format_seconds(self.waiting_s)}); LIF {format_number(self.lif, 4)}."
        )

    def _nature(self) -> str:
        worker = int(np.argmax(self.slowest))
        often = format_percent(self.slowest[worker])
        if self.waiting_s <= 0:
            return "All workers take the same time."
        share = format_percent(self.random_s / self.waiting_s)
        return (
            f"{share} of that is random; worker {worker} is the slowest in {often} of the steps."
        )


def read_imbalance(table: PhaseTable) -> ImbalanceReading:
    """Say where the imbalance of a run arises.

    A difference between workers is called lasting only when it exceeds its standard error
    beyond chance (trimmed mean of step-wise differences, Student's t, the level divided by the
    number of comparisons) and is at least 1 % of a worker's own work. It lasts as long as
    the processes that were measured: a process has its own speed for life.
    """
    own = table.own_s()
    means = own.mean(axis=0)
    waiting_s = float((own.max(axis=1) - own.mean(axis=1)).mean())
    lasting_s = float(means.max() - means.mean())
    phases = lif_by_phase(table).set_index("phase")["lif"]
    return ImbalanceReading(
        n_workers=table.n_workers,
        n_steps=table.n_steps,
        lif=float(lif_by_step(table).mean()),
        lif_run=lif_over_run(table),
        lif_phases={str(name): float(value) for name, value in phases.items()},
        lasting=_lasting(table, own),
        step_s=float(table.unoverlapped_s().mean()),
        waiting_s=max(waiting_s, 0.0),
        lasting_s=lasting_s,
        random_s=max(waiting_s - lasting_s, 0.0),
        waited_s=float(table.of_phase("wait").mean()),
        slowest=_slowest(own),
    )


def _lasting(table: PhaseTable, own: np.ndarray) -> tuple[LastingExcess, ...]:
    if table.n_workers == 1 or table.n_steps < MIN_STEPS:
        return ()
    phases = table.own_phases
    level = _LEVEL / (len(phases) * table.n_workers)
    least_s = _WORTH_SAYING * float(own.mean())
    names = sorted(set(table.rows["worker"]))
    found = []
    for phase in phases:
        times = table.of_phase(phase)
        for i, name in enumerate(names):
            difference = lasting_difference(times[:, i] - _others(times, i))
            if difference.is_beyond_chance(level) and difference.mean > least_s:
                found.append(_excess(int(name), phase, difference))
    return tuple(sorted(found, key=lambda excess: -excess.excess_s))


def _others(times: np.ndarray, worker: int) -> np.ndarray:
    """Return the median of the other workers per step: one slow neighbour does not move it."""
    return np.asarray(np.median(np.delete(times, worker, axis=1), axis=1))


def _excess(worker: int, phase: str, difference: Difference) -> LastingExcess:
    return LastingExcess(
        worker=worker,
        phase=phase,
        excess_s=difference.mean,
        error_s=difference.error,
        share_of_steps=difference.share_positive,
    )


def _slowest(own: np.ndarray) -> tuple[float, ...]:
    counts = np.bincount(own.argmax(axis=1), minlength=own.shape[1])
    return tuple(float(count) / len(own) for count in counts)
