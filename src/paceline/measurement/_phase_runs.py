"""The phases that a campaign has stored, run by run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.dataset import level_name, open_store, read_meta, read_rows
from paceline.errors import InvalidInputError, SchemaError, UnknownNameError
from paceline.estimators import PhaseTable
from paceline.measurement._jobs import share_batch

# what tells runs apart otherwise, and is no part of what was trained
_PLACE = ("workload", "executor", "n_devices")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRun:
    """One trial with the phases of its workers, one table per process life.

    Parameters
    ----------
    workload, executor, n_workers
        What was trained, by what, on how many workers.
    values
        Its other values, as far as they vary in the campaign.
    n_samples
        Samples of an epoch; 0 when unknown.
    lives
        What each life measured.
    """

    workload: str
    executor: str
    n_workers: int
    values: Mapping[str, Any]
    n_samples: int
    lives: tuple[PhaseTable, ...]

    @property
    def network(self) -> str:
        """The workload and its values in one short name, as ``lenet5/32``."""
        return "/".join([self.workload, *map(level_name, self.values.values())])


def load_phase_runs(
    path: str | Path, *, at: Mapping[str, Any] | None = None
) -> tuple[PhaseRun, ...]:
    """Return the runs of a campaign whose phases were timed, by network, executor and workers.

    Parameters
    ----------
    path
        The store of the campaign.
    at
        Only trials with these values.

    Raises
    ------
    InvalidInputError
        When no run has phases, or none has the values of `at`.
    """
    path = Path(path)
    with open_store(path) as connection:
        read_meta(connection, path)
        try:
            runs = list(_runs(list(read_rows(connection)), at or {}))
        except (KeyError, TypeError, AttributeError) as error:
            raise SchemaError(path, f"must be the store of a campaign, but: {error!r}.") from error
    if not runs:
        wanted = "".join(f", {name} = {value}" for name, value in (at or {}).items())
        hint = (
            "leave --at out to see what there is"
            if at
            else "measure with `n_phase_steps` or `epochs` in the study's table `protocol`"
        )
        raise InvalidInputError(
            f"{str(path)!r} must hold trials with phases{wanted}, but has none: {hint}."
        )
    return tuple(sorted(runs, key=lambda r: (r.network, r.executor, r.n_workers)))


def _runs(rows: Sequence[tuple[Any, dict[str, Any]]], at: Mapping[str, Any]) -> Iterator[PhaseRun]:
    varying = list(rows[0][0].values) if rows else []
    for name in at:
        if rows and name not in {*varying, *rows[0][1]}:
            raise UnknownNameError("parameter", name, dict.fromkeys([*varying, *rows[0][1]]))
    for seen, other in rows:
        everything = {**other, **seen.values}
        wanted = all(level_name(everything.get(n)) == level_name(v) for n, v in at.items())
        if seen.failed or not wanted:
            continue
        batches = share_batch(everything, int(everything.get("n_devices", 1)))
        lives = tuple(_tables(seen.provenance.get("lives") or (), batches))
        if lives:
            yield PhaseRun(
                workload=str(everything.get("workload", "")),
                executor=str(everything.get("executor", "")),
                n_workers=lives[0].n_workers,
                values={n: v for n, v in seen.values.items() if n not in (*_PLACE, *at)},
                n_samples=int(everything.get("n_samples") or 0),
                lives=lives,
            )


def _tables(lives: Sequence[Mapping[str, Any]], batches: Sequence[int]) -> Iterator[PhaseTable]:
    for life in lives:
        if all(worker.get("phases") for worker in life["workers"]):
            yield PhaseTable.from_workers(life["workers"], batches)
