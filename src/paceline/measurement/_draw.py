"""Where the trials of a campaign come from: drawn at once, or chosen as results come in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from paceline.measurement._adaptive import choose_next
from paceline.measurement._ledger import Ledger
from paceline.measurement._plan import (
    PlannedTrial,
    choose_repeats,
    chunk_size,
    deal_trials,
    number_trials,
)
from paceline.measurement._study import DEVICES, Study
from paceline.space import Trial
from paceline.workloads import Workload, sample_buildable

# an adaptive design starts with this share of its trials, and then goes in such steps
FIRST_SHARE, BATCH_SHARE = 0.3, 0.1
_MIN_FIRST = 12
_MIN_MEASURED = 8  # with fewer results there is nothing to learn from
_POOL_FACTOR, _MIN_POOL, _MAX_POOL = 4, 300, 1200
_OVERHEAD_S = 0.02  # of a run, beside its steps


def draw_trials(
    study: Study, workloads: Mapping[str, Workload], n: int | None = None, design: str = ""
) -> tuple[dict[str, list[Trial]], int]:
    """Return trials of each workload by a fixed design, and how many could not be built."""
    drawn, n_infeasible = {}, 0
    for name, workload in workloads.items():
        drawn[name], rejected = sample_buildable(
            workload,
            study.sampled_space,
            study.n_trials if n is None else n,
            design=design or study.design,
            random_state=study.random_state,
        )
        n_infeasible += rejected
    return drawn, n_infeasible


class TrialSource:
    """Gives a campaign its trials, and commits them as planned."""

    def __init__(self, study: Study, workloads: Mapping[str, Workload], ledger: Ledger) -> None:
        self._study = study
        self._workloads = workloads
        self._ledger = ledger
        self._candidates: dict[str, list[Trial]] = {}
        notes = ledger.notes()
        self.n_infeasible = int(notes.get("n_infeasible", 0))
        self.n_unplanned = int(notes.get("n_unplanned", 0))

    @property
    def is_exhausted(self) -> bool:
        """Whether all trials are planned."""
        return self.n_unplanned == 0

    def plan_first(self) -> list[PlannedTrial]:
        """Plan what can be planned before anything is measured."""
        if self._study.design == "adaptive":
            n_first = self._n_first()
            drawn, self.n_infeasible = draw_trials(self._study, self._workloads, n_first, "latin")
            everything = {(w, e): drawn[w] for w in drawn for e in self._study.executors}
            trials = number_trials(everything)
            self.n_unplanned = ((self._study.n_trials or n_first) - n_first) * len(everything)
        else:
            drawn, self.n_infeasible = draw_trials(self._study, self._workloads)
            trials = deal_trials(self._study, drawn)
        self._commit(trials)
        return trials

    def plan_next(self, round_: int | None, planned: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Plan the trials of a round that is about to begin, where they depend on results."""
        if self.is_exhausted:
            return []
        last = max(trial.chunk for trial in planned)
        if round_ is not None and round_ <= last:
            return []
        chunk = last + 1
        trials = number_trials(self._choose(planned), first=len(planned), chunk=chunk)
        self.n_unplanned -= len(trials)
        if self.n_unplanned == 0:
            trials += choose_repeats(self._study, [*planned, *trials])
        self._commit(trials)
        return trials

    def _commit(self, trials: Sequence[PlannedTrial]) -> None:
        self._ledger.plan(trials, n_infeasible=self.n_infeasible, n_unplanned=self.n_unplanned)

    def _n_first(self) -> int:
        n_trials = self._study.n_trials or 1
        return min(n_trials, max(_MIN_FIRST, math.ceil(FIRST_SHARE * n_trials)))

    def _choose(self, planned: Sequence[PlannedTrial]) -> dict[tuple[str, str], list[Trial]]:
        times_s = self._ledger.results()
        study = self._study
        n_pools = len(study.workloads) * len(study.executors)
        n = min(self._batch(), math.ceil(self.n_unplanned / n_pools))
        return {
            (workload, executor): self._choose_for(
                [t for t in planned if (t.workload, t.executor) == (workload, executor)],
                times_s,
                n,
            )
            for workload in study.workloads
            for executor in study.executors
        }

    def _batch(self) -> int:
        most = chunk_size(self._study) * len(self._device_counts())
        return max(1, min(most, math.ceil(BATCH_SHARE * (self._study.n_trials or 1))))

    def _device_counts(self) -> Sequence[object]:
        space = self._study.sampled_space
        return space[DEVICES].values if DEVICES in space.names else (1,)

    def _choose_for(
        self, trials: Sequence[PlannedTrial], times_s: Mapping[int, float], n: int
    ) -> list[Trial]:
        """Choose for one workload and executor among candidates that were not chosen yet."""
        workload = trials[0].workload
        taken = [dict(trial.values) for trial in trials]
        candidates = [c for c in self._pool(workload) if c not in taken]
        measured = [trial for trial in trials if trial.number in times_s]
        if len(measured) < _MIN_MEASURED:
            return candidates[:n]
        steps = self._study.protocol.n_warmup + self._study.protocol.n_steps
        chosen = choose_next(
            self._study.sampled_space,
            [trial.values for trial in measured],
            [times_s[trial.number] for trial in measured],
            candidates,
            n,
            n_steps=steps * self._study.protocol.lives,
            overhead_s=_OVERHEAD_S * self._study.protocol.lives,
        )
        return [candidates[i] for i in chosen]

    def _pool(self, workload: str) -> list[Trial]:
        if not self._candidates:
            wanted = _POOL_FACTOR * (self._study.n_trials or 1)
            n = min(max(wanted, _MIN_POOL), _MAX_POOL)
            self._candidates, _ = draw_trials(self._study, self._workloads, n, "random")
        return self._candidates[workload]
