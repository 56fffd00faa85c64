"""Which trial is measured when, so that neither drift nor a process looks like an effect.

Trials are dealt into chunks. In round r every pool (an executor with a number of workers) is
started once, in random order, and runs in random order the first life of chunk r, the second
life of chunk r - 1, and so on: each life of a trial falls into another round, hence into
other processes, and no pool is started for one trial alone. Repeats for the noise floor lie so
much later that no process measures both a trial and its repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from paceline.measurement._study import DEVICES, Study
from paceline.space import Trial

# streams of random numbers, so that one does not shift another
_DEAL, _REPEAT, _ORDER, _BLOCK = 11, 12, 13, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A trial with its place in the plan; `again` is the chunk of its second attempt."""

    number: int
    workload: str
    executor: str
    n_workers: int
    values: Mapping[str, Any]
    chunk: int = 0
    repeat_of: int | None = None
    again: int | None = None

    @property
    def pool(self) -> tuple[str, int]:
        """Which workers can run it."""
        return self.executor, self.n_workers


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One life of one attempt at a trial."""

    trial: PlannedTrial
    attempt: int
    life: int

    @property
    def key(self) -> tuple[int, int, int]:
        """Trial, attempt and life: what no two runs share."""
        return self.trial.number, self.attempt, self.life

    @property
    def round(self) -> int:
        """When it is run: one life of a chunk per round."""
        chunk = self.trial.again if self.attempt else self.trial.chunk
        assert chunk is not None  # a second attempt is planned with its chunk
        return chunk + self.life

    @property
    def session(self) -> str:
        """Runs of one session share the same worker processes."""
        return f"{self.trial.executor}-{self.trial.n_workers}-{self.round}"


def deal_trials(study: Study, drawn: Mapping[str, Sequence[Trial]]) -> list[PlannedTrial]:
    """Return all trials of a study with a fixed design, and their repeats.

    Parameters
    ----------
    study
        Gives the executors, the protocol and the seed.
    drawn
        The trials of each workload.
    """
    trials = number_trials({(w, e): drawn[w] for w in drawn for e in study.executors})
    size = chunk_size(study)
    n_chunks = max(math.ceil(len(part) / size) for part in _by_pool(trials).values())
    rng = np.random.default_rng([study.random_state, _DEAL])
    dealt = []
    for part in _by_pool(trials).values():
        order = rng.permutation(len(part))
        for chunk, members in enumerate(np.array_split(order, n_chunks)):
            dealt += [replace(part[i], chunk=chunk) for i in members]
    dealt.sort(key=lambda trial: trial.number)
    return dealt + choose_repeats(study, dealt)


def number_trials(
    drawn: Mapping[tuple[str, str], Sequence[Trial]], first: int = 0, chunk: int = 0
) -> list[PlannedTrial]:
    """Return the trials drawn for each workload and executor, numbered from `first`."""
    places = [(*pair, values) for pair, trials in drawn.items() for values in trials]
    return [
        PlannedTrial(
            number=first + i,
            workload=workload,
            executor=executor,
            n_workers=int(values.get(DEVICES, 1)),
            values=values,
            chunk=chunk,
        )
        for i, (workload, executor, values) in enumerate(places)
    ]


def chunk_size(study: Study) -> int:
    """Return how many trials a pool gets anew in each round."""
    return max(1, study.protocol.recycle_every // study.protocol.lives)


def choose_repeats(study: Study, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
    """Return copies of some trials, to be measured in processes that never saw the first."""
    wanted = math.ceil(study.protocol.repeat_share * len(trials))
    lives, n_chunks = study.protocol.lives, 1 + max(trial.chunk for trial in trials)
    first_chunk = max(n_chunks, lives)
    early = [trial for trial in trials if trial.chunk <= first_chunk - lives]
    rng = np.random.default_rng([study.random_state, _REPEAT])
    chosen = rng.permutation(len(early))[:wanted]
    number, size = 1 + max(trial.number for trial in trials), chunk_size(study)
    counts: dict[tuple[str, int], int] = {}
    repeats = []
    for i, place in enumerate(chosen):
        trial = early[place]
        nth = counts[trial.pool] = counts.get(trial.pool, -1) + 1
        chunk = first_chunk + nth // size
        repeats.append(replace(trial, number=number + i, chunk=chunk, repeat_of=trial.number))
    return repeats


def open_runs(
    study: Study, trials: Iterable[PlannedTrial], done: set[tuple[int, int, int]]
) -> list[PlannedRun]:
    """Return the runs of these trials that are still to be made, in order."""
    runs = [
        PlannedRun(trial=trial, attempt=attempt, life=life)
        for trial in trials
        for attempt in ((0,) if trial.again is None else (0, 1))
        for life in range(study.protocol.lives)
    ]
    return sort_runs(study, (run for run in runs if run.key not in done))


def sort_runs(study: Study, runs: Iterable[PlannedRun]) -> list[PlannedRun]:
    """Return the runs in the order in which they are to be made."""
    seed = study.random_state
    return sorted(
        runs,
        key=lambda run: (
            run.round,
            _rank(seed, _BLOCK, run.round, *_code(run.trial.pool)),
            run.trial.pool,
            _rank(seed, _ORDER, *run.key),
        ),
    )


@lru_cache(maxsize=1 << 16)  # runs are sorted again whenever one joins them
def _rank(*entropy: int) -> int:
    """Return a random number that depends on nothing but its arguments."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def _code(pool: tuple[str, int]) -> tuple[int, int]:
    return int.from_bytes(pool[0].encode(), "big"), pool[1]


def _by_pool(trials: Iterable[PlannedTrial]) -> dict[tuple[str, int], list[PlannedTrial]]:
    pools: dict[tuple[str, int], list[PlannedTrial]] = {}
    for trial in trials:
        pools.setdefault(trial.pool, []).append(trial)
    return pools
