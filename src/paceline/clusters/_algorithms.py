"""Ways to exchange bytes within a group: what each costs.

Every one is a function of the spans of a group (`spans_of`), its number of members and the
bytes. Sources, by their names in the docstrings:

- ParaDL: Kahira et al., arXiv 2104.09075, section 4: point-to-point ``a + m b``, ring
  ``2 (p - 1) (a + m b / p)``, all-gather ``(p - 1) (a + m b / p)``, tree ``log2(p) (a + m b)``,
  contention phi on b.
- Paleo: Qi et al., ICLR 2017: parameter server ``2 m (n - 1) b`` (one to all).
- Castello: Castello et al., PDP 2021: ``2 log2(p) a + 2 (p - 1) / p m b``,
  broadcast ``ceil(log2(p)) (a + m b)``.

The arithmetic of a reduction is left out: it is small beside the transfer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from paceline.clusters._spans import FloatArray, Span

Member = Callable[[list[Span], FloatArray, FloatArray], FloatArray]


def slowest_of(spans: list[Span]) -> tuple[FloatArray, FloatArray]:
    """Return latency and seconds per byte of the slowest level that a flat ring crosses."""
    latency = reduce(np.maximum, (np.where(s.members > 1, s.latency_s, 0.0) for s in spans))
    beta = reduce(np.maximum, (np.where(s.members > 1, s.beta_one, 0.0) for s in spans))
    return latency, beta


def _steps(members: FloatArray) -> FloatArray:
    return np.ceil(np.log2(members))


def _ring_pass(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """ParaDL: once around, (n - 1) (a + m b / n); every hop waits for the slowest link."""
    latency, beta = slowest_of(spans)
    return (n - 1) * (latency + m / n * beta)


def _ring_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """ParaDL: a reduce-scatter and an all-gather, 2 (n - 1) (a + m b / n)."""
    return 2 * _ring_pass(spans, n, m)


def _tree_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """ParaDL: log2(n) (a + m b), the whole message exchanged in every step, level by level."""
    return sum((_steps(s.members) * (s.latency_s + m * s.beta_all) for s in spans), np.zeros(()))


def _hierarchical_pass(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Rings level by level: what is left of the message after the level below goes on."""
    return sum(
        ((s.members - 1) * (s.latency_s + m / (s.below * s.members) * s.beta_all) for s in spans),
        np.zeros(()),
    )


def _hierarchical_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Reduce-scatter inwards to outwards, all-gather back; on one level it is the ring."""
    return 2 * _hierarchical_pass(spans, n, m)


def _halving_all_reduce(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Castello ("bta"): 2 log2(n) a + 2 (n - 1) / n m b; not what NCCL and gloo do by default."""
    latency, beta = slowest_of(spans)
    return 2 * _steps(n) * latency + 2 * (n - 1) / n * m * beta


def _doubling_pass(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Recursive doubling: log2(n) a + (n - 1) / n m b, level by level; not a default either."""
    return sum(
        (
            _steps(s.members) * s.latency_s
            + (s.members - 1) / (s.below * s.members) * m * s.beta_all
            for s in spans
        ),
        np.zeros(()),
    )


def _pairwise_all_to_all(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """One partner after another, m / n bytes each: (n - 1) (a + m b / n)."""
    return sum(
        ((s.members - 1) * s.below * (s.latency_s + m / n * s.beta_all) for s in spans),
        np.zeros(()),
    )


def _bruck_all_to_all(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Bruck: ceil(log2 n) steps of half the message each."""
    return sum(
        (_steps(s.members) * (s.latency_s + m / 2 * s.beta_all) for s in spans), np.zeros(())
    )


def _tree_broadcast(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Castello: ceil(log2 n) (a + m b), level by level, without its factor 3 on a."""
    return sum((_steps(s.members) * (s.latency_s + m * s.beta_one) for s in spans), np.zeros(()))


def _scattered_broadcast(spans: list[Span], n: FloatArray, m: FloatArray) -> FloatArray:
    """Cost a scatter and an all-gather: (log2(n) + n - 1) a + 2 (n - 1) / n m b."""
    latency, beta = slowest_of(spans)
    return (_steps(n) + n - 1) * latency + 2 * (n - 1) / n * m * beta


_PASSES: Mapping[str, Member] = {
    "ring": _ring_pass,
    "doubling": _doubling_pass,
    "hierarchical": _hierarchical_pass,
}

ALGORITHMS: Mapping[str, Mapping[str, Member]] = {
    "all_reduce": {
        "ring": _ring_all_reduce,
        "tree": _tree_all_reduce,
        "hierarchical": _hierarchical_all_reduce,
        "halving": _halving_all_reduce,
    },
    "all_gather": _PASSES,
    "reduce_scatter": _PASSES,
    "all_to_all": {"pairwise": _pairwise_all_to_all, "bruck": _bruck_all_to_all},
    "broadcast": {"tree": _tree_broadcast, "scattered": _scattered_broadcast},
}

# by name only: NCCL and gloo take rings by default, and these would hide them. All three or none:
# else an all-reduce would cost more than the reduce-scatter and the all-gather that it is made of
NOT_CHOSEN = {
    ("all_reduce", "halving"),
    ("all_gather", "doubling"),
    ("reduce_scatter", "doubling"),
}
