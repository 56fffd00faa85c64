"""Micro-batches of another size in every stage, and in every pass (REFERENCE 8, after UMPIPE).

Simulated only: autograd ties a gradient's micro-batch to its forward pass. A step is a forward
pass, a flush and a backward pass, whose sizes do not depend on each other, so that an individual
has two chromosomes which are judged apart; with 1F1B the passes would overlap and this would not
hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paceline.errors import InvalidInputError
from paceline.oracle import unequal_pass_time
from paceline.planners._task import Task
from paceline.scenario import Strategy

Array = NDArray[np.float64]
Genes = NDArray[np.int64]  # (individuals, stages): places among the divisors of the batch

POPULATION = 60
GENERATIONS = 150
PATIENCE = 30
CROSSOVER = 0.8
TOURNAMENT = 3


@dataclass(frozen=True, kw_only=True)
class PassTimes:
    """What a micro-batch of b samples takes in every stage: fixed_s + b sample_s.

    Parameters
    ----------
    fixed_s, sample_s
        By stage, in the order in which the pass goes through them.
    latency_s, transfer_sample_s
        The same of the hand-over to the next stage, one fewer.
    """

    fixed_s: Array
    sample_s: Array
    latency_s: Array
    transfer_sample_s: Array

    def seconds(self, sizes: ArrayLike, batch: int) -> Array:
        """Return the time of the pass for every row of sizes."""
        return unequal_pass_time(
            sizes,
            batch,
            fixed_s=self.fixed_s,
            sample_s=self.sample_s,
            latency_s=self.latency_s,
            transfer_sample_s=self.transfer_sample_s,
        )


@dataclass(frozen=True, kw_only=True)
class UnequalSchedule:
    """Sizes of micro-batches by stage, and what a step takes with them.

    Parameters
    ----------
    forward_sizes, backward_sizes
        Samples by stage, in network order.
    step_s
        Both passes.
    equal_size, equal_s
        The best size that is the same everywhere, and its time.
    greedy_s
        Time when every stage takes the size at which a sample costs it least, by itself.
    n_evaluations
        Sizes looked at.
    """

    forward_sizes: tuple[int, ...]
    backward_sizes: tuple[int, ...]
    step_s: float
    equal_size: int
    equal_s: float
    greedy_s: float
    n_evaluations: int

    @property
    def gain(self) -> float:
        """Share of the time of the best equal size that is saved."""
        return 1 - self.step_s / self.equal_s


def search_unequal(
    forward: PassTimes,
    backward: PassTimes,
    global_batch: int,
    *,
    max_sizes: Sequence[int] | None = None,
    population: int = POPULATION,
    generations: int = GENERATIONS,
    random_state: int = 0,
) -> UnequalSchedule:
    """Return the best sizes that a dual-chromosome genetic search finds.

    Never worse than the best equal size or the greedy one, which it begins with.

    Parameters
    ----------
    forward, backward
        Times of the two passes; the backward one's stages come in the order of that pass, last
        stage first.
    global_batch
        Samples of a pass; sizes are its divisors.
    max_sizes
        By stage in network order, the most samples of a micro-batch that memory allows.
    population, generations
        Individuals, and how often they have children; 30 without gain end it.
    random_state
        Seed.
    """
    sizes = np.array([d for d in range(1, global_batch + 1) if global_batch % d == 0])
    n_stages = len(forward.fixed_s)
    limits = np.full(n_stages, len(sizes)) if max_sizes is None else _limits(sizes, max_sizes)
    sides = [_Side(forward, sizes, limits, global_batch)]
    sides.append(_Side(backward, sizes, limits[::-1], global_batch))
    best = [
        side.evolve(population, generations, np.random.default_rng((random_state, i)))
        for i, side in enumerate(sides)
    ]
    equal, equal_s = _best_equal(sides)
    return UnequalSchedule(
        forward_sizes=tuple(int(b) for b in sizes[best[0]]),
        backward_sizes=tuple(int(b) for b in sizes[best[1]][::-1]),
        step_s=sum(float(side.cost(g[None])[0]) for side, g in zip(sides, best, strict=True)),
        equal_size=int(sizes[equal]),
        equal_s=equal_s,
        greedy_s=sum(float(side.cost(side.greedy()[None])[0]) for side in sides),
        n_evaluations=sum(side.n_evaluations for side in sides),
    )


def _limits(sizes: Genes, most: Sequence[int]) -> Genes:
    """Return how many of the sizes every stage may have."""
    found = np.searchsorted(sizes, np.asarray(most), side="right")
    if (found < 1).any():
        raise InvalidInputError(
            f"Every stage must hold a micro-batch of one sample, but stage "
            f"{int(np.argmin(found))} does not."
        )
    return found


def _best_equal(sides: Sequence[_Side]) -> tuple[int, float]:
    n = int(min(side.limits.min() for side in sides))
    genes = np.repeat(np.arange(n)[:, None], len(sides[0].limits), axis=1)
    totals = np.sum([side.cost(genes) for side in sides], axis=0)
    return int(np.argmin(totals)), float(totals.min())


class _Side:
    """One pass and its chromosome."""

    def __init__(self, times: PassTimes, sizes: Genes, limits: Genes, batch: int) -> None:
        self.times, self.sizes, self.limits, self.batch = times, sizes, limits, batch
        self.n_evaluations = 0

    def cost(self, genes: Genes) -> Array:
        """Return the seconds of the pass of every individual, all at once."""
        self.n_evaluations += len(genes)
        return self.times.seconds(self.sizes[genes], self.batch)

    def greedy(self) -> Genes:
        """Return for every stage the size at which its own work by sample is least."""
        each = self.times.fixed_s[:, None] / self.sizes[None, :] + self.times.sample_s[:, None]
        allowed = np.arange(len(self.sizes))[None, :] < self.limits[:, None]
        return np.asarray(np.argmin(np.where(allowed, each, np.inf), axis=1), dtype=np.int64)

    def evolve(self, population: int, generations: int, rng: np.random.Generator) -> Genes:
        """Return the best chromosome of a genetic search."""
        genes = self._first(population, rng)
        costs = self.cost(genes)
        best, since = costs.min(), 0
        for _ in range(generations):
            children = self._children(genes, costs, rng)
            keep = np.argsort(costs, kind="stable")[:2]
            genes = np.concatenate([genes[keep], children])
            costs = np.concatenate([costs[keep], self.cost(children)])
            since = 0 if costs.min() < best * (1 - 1e-9) else since + 1
            best = min(best, costs.min())
            if since >= PATIENCE:
                break
        return self._polished(genes[int(np.argmin(costs))])

    def _first(self, population: int, rng: np.random.Generator) -> Genes:
        n = int(self.limits.min())
        equal = np.repeat(np.arange(n)[:, None], len(self.limits), axis=1)
        drawn = rng.integers(self.limits, size=(max(population - n - 1, 2), len(self.limits)))
        return np.concatenate([equal, self.greedy()[None], drawn])

    def _children(self, genes: Genes, costs: Array, rng: np.random.Generator) -> Genes:
        n, n_stages = len(genes) - 2, genes.shape[1]
        rivals = rng.integers(len(genes), size=(2, n, TOURNAMENT))
        parents = [genes[r[np.arange(n), np.argmin(costs[r], axis=1)]] for r in rivals]
        is_crossed = (rng.random((n, 1)) < CROSSOVER) & (rng.random((n, n_stages)) < 0.5)
        children = np.where(is_crossed, parents[1], parents[0])
        steps = rng.choice([-1, 1], size=children.shape)
        is_changed = rng.random(children.shape) < 1 / n_stages
        changed = np.clip(children + steps * is_changed, 0, self.limits - 1)
        return np.asarray(changed, dtype=np.int64)

    def _polished(self, genes: Genes) -> Genes:
        """Change one stage at a time, or two that follow each other, while that helps."""
        cost = float(self.cost(genes[None])[0])
        while True:
            tried = self._neighbours(genes)
            costs = self.cost(tried)
            if costs.min() >= cost * (1 - 1e-12):
                return genes
            genes, cost = tried[int(np.argmin(costs))], float(costs.min())

    def _neighbours(self, genes: Genes) -> Genes:
        found = [genes]
        n_stages = len(genes)
        for stage in range(n_stages):
            for size in range(int(self.limits[stage])):
                for width in (1, 2, n_stages):  # itself, its neighbour too, all behind it
                    moved = genes.copy()
                    moved[stage : stage + width] = size
                    found.append(np.minimum(moved, self.limits - 1))
        return np.unique(np.array(found), axis=0)


def pass_times(task: Task, strategy: Strategy, ends: Sequence[int]) -> tuple[PassTimes, PassTimes]:
    """Return both passes' times of a cut network, as affine functions of the micro-batch.

    They are drawn through the oracle's times of one micro-batch for all samples and of one sample
    each. The backward one's stages come in the order of that pass.

    Parameters
    ----------
    task, strategy, ends
        A pipeline and where it is cut.
    """
    batch = task.global_batch // strategy.data
    if batch < 2:
        raise InvalidInputError(f"A replica must have several samples, but has {batch}.")
    whole, single = (
        task.cost(replace(strategy, micro_batches=n), ends, task.global_batch) for n in (1, batch)
    )

    def affine(large: Array, small: Array) -> tuple[Array, Array]:
        slope = np.maximum((large - small) / (batch - 1), 0.0)
        return np.maximum(small - slope, 0.0), slope

    transfer = affine(whole.transfer_s, single.transfer_s)
    forward = affine(whole.forward_s, single.forward_s)
    backward = affine(whole.backward_s, single.backward_s)
    return (
        _times(forward, transfer),
        _times(*((a[::-1], b[::-1]) for a, b in (backward, transfer))),
    )


def _times(compute: tuple[Array, Array], transfer: tuple[Array, Array]) -> PassTimes:
    return PassTimes(
        fixed_s=compute[0],
        sample_s=compute[1],
        latency_s=transfer[0],
        transfer_sample_s=transfer[1],
    )
