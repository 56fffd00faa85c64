"""Strategies by name, and all the ways to give them a number of devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from paceline.clusters import Cluster
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle.strategies import DIVISIONS
from paceline.oracle.strategies import accumulation as _accumulation
from paceline.oracle.strategies import data as _data
from paceline.oracle.strategies import layerwise as _layerwise
from paceline.oracle.strategies import pipeline as _pipeline
from paceline.oracle.strategies import sharded as _sharded
from paceline.scenario import SCHEDULES, StrategyTable
from paceline.workloads import LayerGraph

# what a name stands for: the degree that it divides by, other parts of a strategy, one line
_Part = tuple[str | None, Mapping[str, int], str]
Row = dict[str, int]  # parts of a strategy that are not at their default

PARTS: Mapping[str, _Part] = {
    "serial": (None, {}, "one device"),
    "data": ("data", {}, _data.SUMMARY),
    "zero1": ("data", {"shard": 1}, f"{_sharded.SUMMARY}: state alone"),
    "zero2": ("data", {"shard": 2}, f"{_sharded.SUMMARY}: state and gradients"),
    "zero3": ("data", {"shard": 3}, f"{_sharded.SUMMARY}: all three"),
    **{d.degree: (d.degree, {}, d.summary) for d in DIVISIONS},
    "layer": ("pipeline", {"schedule": SCHEDULES.index("sequential")}, _layerwise.SUMMARY),
    "pipeline": ("pipeline", {"schedule": SCHEDULES.index("1f1b")}, f"{_pipeline.SUMMARY} (1F1B)"),
    "gpipe": (
        "pipeline",
        {"schedule": SCHEDULES.index("gpipe")},
        f"{_pipeline.SUMMARY}: all forward passes first",
    ),
    "interleaved": (
        "pipeline",
        {"schedule": SCHEDULES.index("interleaved")},
        f"{_pipeline.SUMMARY}: several pieces per device",
    ),
    "accumulation": (None, {}, _accumulation.SUMMARY),
    "recompute": (None, {"recompute": 1}, "activations are computed again instead of being kept"),
}

# what is asked when everything is
ALL = (
    "serial",
    "data",
    "data+accumulation",
    "data+recompute",
    "zero1",
    "zero2",
    "zero3",
    "spatial",
    "data+spatial",
    "layer",
    "gpipe",
    "pipeline",
    "interleaved",
    "data+pipeline",
    "filter",
    "data+filter",
    "channel",
    "data+channel",
    "tensor",
    "data+tensor",
    "zero3+tensor",
    "tensor+pipeline",
    "data+tensor+pipeline",
    "context",
    "data+context",
    "expert",
    "data+expert",
)

# what needs less memory, asked where nothing of the above fits
SPARING = (
    "accumulation",
    "accumulation+recompute",
    "data+accumulation",
    "data+accumulation+recompute",
    "zero3+accumulation",
    "zero3+recompute",
    "zero3+accumulation+recompute",
    "pipeline+recompute",
    "data+pipeline+recompute",
    "zero1+pipeline+recompute",
    "zero3+tensor+accumulation+recompute",
    "tensor+pipeline+recompute",
    "data+tensor+pipeline+recompute",
    "zero1+tensor+pipeline+recompute",
    "zero3+context+recompute",
)

_MOST_PER_STAGE = 16  # micro-batches by stage beyond which a bubble is hardly smaller
_MOST_CHOICES = 6
_VIRTUAL = (2, 4)


def list_strategies() -> dict[str, str]:
    """Return the names that strategies are put together from, with a line for each.

    Examples
    --------
    >>> list_strategies()["filter"]
    'output channels of convolutions and linear maps are dealt out'
    """
    return {name: summary for name, (_, _, summary) in PARTS.items()}


def enumerate_strategies(
    graph: LayerGraph,
    cluster: Cluster,
    n_devices: int,
    *,
    names: Sequence[str] = ALL,
    global_batch: int | None = None,
    sparing: bool = False,
) -> StrategyTable:
    """Return every strategy of these names for so many devices.

    Parameters
    ----------
    graph, cluster
        What is trained, and on what. Degrees beyond the limits of either are left in: a sweep
        says why they are impossible.
    n_devices
        Which the degrees multiply to.
    names
        Of `list_strategies`, joined by ``+`` for hybrids, all of whose degrees are above one.
    global_batch
        Which micro-batches must divide; None: powers of two up to 16 per stage.
    sparing
        Whether micro-batches may be as small as one sample, to spare memory.
    """
    rows = [row for name in names for row in named_rows(name, n_devices, global_batch, sparing)]
    if not rows:
        raise InvalidInputError(
            f"A strategy of {', '.join(names)} must have degrees above one that multiply to the "
            f"number of devices, but none has for {n_devices}. Try: data"
        )
    return table_of(rows)


def named_rows(
    name: str, n_devices: int, global_batch: int | None, sparing: bool = False
) -> list[Row]:
    """Return the strategies of one name; none when it cannot take so many devices."""
    parts = [_part(part) for part in name.split("+")]
    degrees = degrees_of(name)
    rows: list[Row] = []
    for factors in _factorings(n_devices, len(degrees)):
        given = dict(zip(degrees, factors, strict=True))
        for _, options, _ in parts:
            given |= options
        rows += _with_micro_batches(name, given, global_batch, sparing)
    return rows


def degrees_of(name: str) -> list[str]:
    """Return the degrees that a name divides by, in its order.

    Raises
    ------
    InvalidInputError
        When two of its parts divide by the same: one would take the devices of the other.
    """
    parts = name.split("+")
    degrees = [_part(part)[0] for part in parts]
    for i, degree in enumerate(degrees):
        first = degrees.index(degree)
        if degree and first < i:
            fewer = dict.fromkeys("+".join(parts[:k] + parts[k + 1 :]) for k in (i, first))
            raise InvalidInputError(
                f"Names joined by + must divide by different degrees, but {name!r} divides by "
                f"`{degree}` twice. Take: {' or '.join(fewer)}"
            )
    return [degree for degree in degrees if degree]


def table_of(rows: Sequence[Row]) -> StrategyTable:
    """Return rows that name some parts of a strategy as a table, the others at their default."""
    fields = {field for row in rows for field in row} or {"data"}
    others = {"shard": 0, "recompute": 0, "schedule": SCHEDULES.index("1f1b")}
    return StrategyTable.from_columns(
        **{
            field: np.array([row.get(field, others.get(field, 1)) for row in rows])
            for field in fields
        }
    )


def _part(name: str) -> _Part:
    if name not in PARTS:
        raise UnknownNameError("strategy", name, PARTS)
    return PARTS[name]


def _factorings(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write `n` as a product of `k` factors above one, in order."""
    if k == 0:
        if n == 1:
            yield ()
        return
    if k == 1:
        if n > 1:
            yield (n,)
        return
    for first in divisors(n):
        if first > 1:
            for rest in _factorings(n // first, k - 1):
                yield (first, *rest)


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """Return all divisors of a number, in order.

    Examples
    --------
    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [i for i in range(1, int(n**0.5) + 1) if n % i == 0]
    return tuple(sorted({*small, *(n // i for i in small)}))


def _with_micro_batches(
    name: str, given: Row, global_batch: int | None, sparing: bool
) -> list[Row]:
    """Return a strategy with every sensible number of micro-batches and pieces."""
    names, stages = name.split("+"), given.get("pipeline", 1)
    if (stages == 1 and "accumulation" not in names) or "layer" in names:
        return [given]
    share = None if global_batch is None else _share(global_batch, given)
    if share == 0:
        return [given]  # too few samples: the sweep says so
    rows = []
    for virtual in _VIRTUAL if "interleaved" in names else (1,):
        for n in _counts(share, stages, stages if virtual > 1 else 1, sparing):
            rows.append({**given, "micro_batches": n, "virtual_stages": virtual})
    if "interleaved" in names and not rows:  # the sweep says what the batch must be
        return [{**given, "micro_batches": stages, "virtual_stages": _VIRTUAL[0]}]
    return rows if rows or "accumulation" in names else [given]


def _share(global_batch: int, given: Mapping[str, int]) -> int:
    replicas = given.get("data", 1) * given.get("expert", 1)
    return global_batch // replicas if global_batch % replicas == 0 else 0


def _counts(share: int | None, stages: int, multiple: int, sparing: bool) -> list[int]:
    """Return numbers of micro-batches to try: the largest few that divide a replica's share.

    To spare memory, more than a bubble asks for too, down to one sample each.
    """
    most = _MOST_PER_STAGE * stages
    if share is None:
        known: Sequence[int] = [2**i for i in range(1, most.bit_length()) if 2**i <= most]
    else:
        known = divisors(share)
    allowed = [n for n in known if n > 1 and n % multiple == 0]
    usual = [n for n in allowed if n <= most]
    more = [n for n in allowed if n > most] if sparing else []
    return usual[-_MOST_CHOICES:] + more[:: -max(1, len(more) // _MOST_CHOICES)][::-1]
