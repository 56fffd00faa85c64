"""Which strategies a network and a batch cannot take, and why."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.oracle._columns import Columns
from paceline.oracle.strategies import DIVISIONS, Limit
from paceline.oracle.strategies.pipeline import pipeline_limit
from paceline.scenario import SCHEDULES, StrategyTable
from paceline.units import format_count

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = Callable[[StrategyTable, Integers, int], str]


@dataclass(frozen=True)
class Rule:
    """Something that must hold for every row.

    Parameters
    ----------
    degree
        Which degree it limits.
    broken
        By row, whether it does not hold.
    words
        Says why, of a table, global batches and a row.
    """

    degree: str
    broken: Mask
    words: Words


def find_rules(columns: Columns, table: StrategyTable, global_batch: Integers) -> list[Rule]:
    """Return the rules that some row breaks."""
    rules = [_degree_rule(d.degree, d.limit(columns), table) for d in DIVISIONS if _used(table, d)]
    rules += [_stages(columns, table), *_batches(table, global_batch), *_pipelines(table)]
    return [rule for rule in rules if rule.broken.any()]


def limits_of(columns: Columns) -> dict[str, Limit]:
    """Return the largest degree of every strategy that the network limits."""
    found = {division.degree: division.limit(columns) for division in DIVISIONS}
    return found | {"pipeline": pipeline_limit(columns)}


def _used(table: StrategyTable, division: object) -> bool:
    return bool((table[division.degree] > 1).any())  # type: ignore[attr-defined]


def _degree_rule(name: str, limit: Limit, table: StrategyTable) -> Rule:
    degree = table[name]

    def words(table: StrategyTable, _: Integers, row: int) -> str:
        wanted = int(table[name][row])
        even = f"divide {limit.largest}" if limit.divisors_only else "cut every axis into parts"
        rule = f"be at most {limit.largest}" if wanted > limit.largest else even
        return f"`{name}` must {rule} here, but is {wanted}: {limit}"

    return Rule(name, (degree > 1) & ~limit.allows(degree), words)


def _stages(columns: Columns, table: StrategyTable) -> Rule:
    n = len(columns.graph.units)
    pieces = table["pipeline"] * table["virtual_stages"]

    def words(table: StrategyTable, _: Integers, row: int) -> str:
        wanted = int(table["pipeline"][row] * table["virtual_stages"][row])
        return f"`pipeline` must leave a part for {wanted} pieces, but {pipeline_limit(columns)}"

    return Rule("pipeline", pieces > n, words)


def _batches(table: StrategyTable, global_batch: Integers) -> list[Rule]:
    shares = table["data"] * table["expert"]
    pieces = shares * table["micro_batches"]
    few = global_batch < shares

    def too_few(table: StrategyTable, batch: Integers, row: int) -> str:
        n, all_ = int(table["data"][row] * table["expert"][row]), int(batch[row])
        return (
            f"`data` must be at most the global batch, but {n} devices share "
            f"{format_count(all_, 'sample')}"
        )

    def uneven(table: StrategyTable, batch: Integers, row: int) -> str:
        factors = [int(table[n][row]) for n in ("data", "expert", "micro_batches")]
        used = [f for f in factors if f > 1]
        product, whole, given = " * ".join(map(str, used)), math.prod(used), int(batch[row])
        equals = f" = {whole}" if len(used) > 1 else ""
        below = given - given % whole
        near = " or ".join(str(n) for n in (below, below + whole) if n)
        return (
            f"`global_batch` must be a multiple of {product}{equals} (data, expert, "
            f"micro-batches), but is {given}: take {near}"
        )

    return [
        Rule("data", few, too_few),
        Rule("batch", ~few & (global_batch % pieces != 0), uneven),
    ]


def _pipelines(table: StrategyTable) -> list[Rule]:
    deep = table["pipeline"] > 1
    interleaved = table["schedule"] == SCHEDULES.index("interleaved")
    virtual = table["virtual_stages"] > 1
    rounds = deep & interleaved & virtual & (table["micro_batches"] % table["pipeline"] != 0)
    return [
        Rule(
            "shard",
            deep & (table["shard"] > 1),
            lambda *_: (
                "`shard` must be 0 or 1 in a pipeline: its micro-batches would have to "
                "gather weights and scatter gradients again and again"
            ),
        ),
        Rule(
            "pipeline",
            virtual & ~(deep & interleaved),
            lambda *_: "`virtual_stages` must be 1 but for interleaved pipelines",
        ),
        Rule(
            "pipeline",
            rounds,
            lambda table, _, row: (
                "`micro_batches` must be a multiple of the stages of an "
                f"interleaved pipeline, but {table['micro_batches'][row]} are not of "
                f"{table['pipeline'][row]}"
            ),
        ),
    ]
