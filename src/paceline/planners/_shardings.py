"""How every layer's product Y = X W is divided on a mesh, layer by layer (REFERENCE 7).

Along every axis of the mesh a layer is divided by samples (``data``), by its outputs (``column``)
or by its inputs (``row``). The choices of a layer and of the next decide what is converted
between them; for a chain the best of all is found exactly, and coordinate descent is held to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import Cluster, Link
from paceline.errors import InvalidInputError
from paceline.workloads import LayerGraph

Array = NDArray[np.float64]

WAYS = ("data", "column", "row")
# what a way needs of its input and leaves of its output: samples split, features split, whole
_NEEDS = {"data": "samples", "column": "whole", "row": "features"}
_LEAVES = {"data": "samples", "column": "features", "row": "whole"}


@dataclass(frozen=True, kw_only=True)
class ShardingProblem:
    """Layers in a row, a mesh, and what moving bytes along each of its axes costs.

    Parameters
    ----------
    compute_s
        Time of every layer on one device, both passes.
    input_bytes, output_bytes, weight_bytes
        Of every layer and the whole batch.
    mesh
        Devices along every axis.
    latency_s, seconds_per_byte
        Of the links along every axis.
    names
        Of the layers.
    """

    compute_s: Array
    input_bytes: Array
    output_bytes: Array
    weight_bytes: Array
    mesh: tuple[int, ...]
    latency_s: tuple[float, ...]
    seconds_per_byte: tuple[float, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, d = len(self.compute_s), len(self.mesh)
        columns = (self.input_bytes, self.output_bytes, self.weight_bytes)
        if n == 0 or any(len(column) != n for column in columns):
            raise InvalidInputError("Every layer must have a time, an input, an output, weights.")
        if d == 0 or len(self.latency_s) != d or len(self.seconds_per_byte) != d:
            raise InvalidInputError("Every axis of the mesh must have a latency and a bandwidth.")

    @cached_property
    def signatures(self) -> tuple[tuple[str, ...], ...]:
        """Every way to divide one layer: one word per axis."""
        return tuple(itertools.product(WAYS, repeat=len(self.mesh)))

    @cached_property
    def own_s(self) -> Array:
        """Time of every layer (rows) under every signature: compute and its own collectives."""
        even = self.compute_s / np.prod(self.mesh)
        return np.array([even + self._collectives(s) for s in self.signatures]).T

    def _collectives(self, signature: tuple[str, ...]) -> Array:
        """Return the all-reduces that a signature makes: weights, inputs or outputs."""
        total = np.zeros(len(self.compute_s))
        for axis, way in enumerate(signature):
            others = [
                (w, p)
                for i, (w, p) in enumerate(zip(signature, self.mesh, strict=True))
                if i != axis
            ]
            n_bytes = {
                "data": self.weight_bytes / _split(others, ("column", "row")),
                "column": self.input_bytes / _split(others, ("data", "row")),
                "row": self.output_bytes / _split(others, ("data", "column")),
            }[way]
            total = total + self._all_reduce(n_bytes, axis)
        return total

    def _all_reduce(self, n_bytes: Array, axis: int) -> Array:
        p = self.mesh[axis]
        moved = 2 * (p - 1) / p * n_bytes * self.seconds_per_byte[axis]
        return moved + 2 * (p - 1) * self.latency_s[axis]

    def between_s(self, layer: int) -> Array:
        """Return what converting between a layer (rows) and the next (columns) costs."""
        n_bytes = float(self.output_bytes[layer])
        found = np.zeros((len(self.signatures),) * 2)
        for i, here in enumerate(self.signatures):
            for j, there in enumerate(self.signatures):
                found[i, j] = self._conversion(n_bytes, here, there)
        return found

    def _conversion(self, n_bytes: float, here: Sequence[str], there: Sequence[str]) -> float:
        """Return the time to convert what one layer leaves into what the next needs, and back."""
        leaves, needs = [_LEAVES[w] for w in here], [_NEEDS[w] for w in there]
        total = 0.0
        for axis, (old, new) in enumerate(zip(leaves, needs, strict=True)):
            split = float(
                np.prod([p for i, p in enumerate(self.mesh) if i != axis and leaves[i] != "whole"])
            )
            local = n_bytes / split
            total += self._moved(local, old, new, axis)  # activations
            total += self._moved(local, new, old, axis)  # and their gradients
        return total

    def _moved(self, n_bytes: float, old: str, new: str, axis: int) -> float:
        if old in (new, "whole"):  # a part of a whole is there already
            return 0.0
        p, beta = self.mesh[axis], self.seconds_per_byte[axis]
        start = (p - 1) * self.latency_s[axis]
        share = (p - 1) / p * n_bytes * beta
        return start + (share if new == "whole" else share / p)  # all-gather, or all-to-all

    def step_s(self, choice: Sequence[int]) -> float:
        """Return the time of all layers with these signatures."""
        own = sum(self.own_s[layer, s] for layer, s in enumerate(choice))
        pairs = itertools.pairwise(choice)
        return float(own + sum(self.edges[i][a, b] for i, (a, b) in enumerate(pairs)))

    @cached_property
    def edges(self) -> list[Array]:
        """Conversions behind every layer but the last; layers of equal output share one."""
        known: dict[float, Array] = {}
        for layer, n_bytes in enumerate(self.output_bytes[:-1]):
            if float(n_bytes) not in known:
                known[float(n_bytes)] = self.between_s(layer)
        return [known[float(n_bytes)] for n_bytes in self.output_bytes[:-1]]


def _split(others: Sequence[tuple[str, int]], ways: tuple[str, ...]) -> float:
    return float(np.prod([p for way, p in others if way in ways]))


@dataclass(frozen=True, kw_only=True)
class Shardings:
    """A way to divide every layer.

    Parameters
    ----------
    signatures
        By layer, a word per axis of the mesh.
    step_s
        Time of all layers.
    data_s
        Time when all are divided by samples.
    is_exact
        Whether nothing better exists.
    n_sweeps
        Times that all layers were gone through.
    """

    signatures: tuple[tuple[str, ...], ...]
    step_s: float
    data_s: float
    is_exact: bool
    n_sweeps: int = 0


def search_shardings(
    problem: ShardingProblem, *, n_starts: int = 8, random_state: int = 0
) -> Shardings:
    """Return what coordinate descent finds: layer after layer the best while others stay.

    Parameters
    ----------
    problem
        Layers and mesh.
    n_starts
        From all layers alike, every way, and this many random starts.
    random_state
        Of those.
    """
    rng = np.random.default_rng(random_state)
    n, n_ways = problem.own_s.shape
    alike = np.repeat(np.arange(n_ways)[:, None], n, axis=1)
    starts = np.concatenate([alike, rng.integers(n_ways, size=(n_starts, n))])
    best, sweeps = None, 0
    for start in starts:
        choice, n_sweeps = _descend(problem, start)
        sweeps += n_sweeps
        if best is None or problem.step_s(choice) < problem.step_s(best):
            best = choice
    assert best is not None  # there is always a start
    return _described(problem, best, is_exact=False, n_sweeps=sweeps)


def _descend(problem: ShardingProblem, start: NDArray[np.int64]) -> tuple[list[int], int]:
    choice, n_sweeps, is_moving = [int(s) for s in start], 0, True
    while is_moving:
        is_moving, n_sweeps = False, n_sweeps + 1
        for layer in range(len(choice)):
            costs = problem.own_s[layer].copy()
            if layer:
                costs += problem.edges[layer - 1][choice[layer - 1]]
            if layer < len(choice) - 1:
                costs += problem.edges[layer][:, choice[layer + 1]]
            if costs.min() < costs[choice[layer]] * (1 - 1e-12):
                choice[layer], is_moving = int(np.argmin(costs)), True
    return choice, n_sweeps


def shard_exactly(problem: ShardingProblem) -> Shardings:
    """Return the best way of all, by dynamic programming along the chain (Viterbi)."""
    n = len(problem.own_s)
    cost, back = problem.own_s[0], []
    for layer in range(1, n):
        through = cost[:, None] + problem.edges[layer - 1]
        back.append(np.argmin(through, axis=0))
        cost = through.min(axis=0) + problem.own_s[layer]
    choice = [int(np.argmin(cost))]
    for came in reversed(back):
        choice.append(int(came[choice[-1]]))
    return _described(problem, choice[::-1], is_exact=True, n_sweeps=1)


def _described(
    problem: ShardingProblem, choice: Sequence[int], *, is_exact: bool, n_sweeps: int
) -> Shardings:
    data = problem.signatures.index(("data",) * len(problem.mesh))
    return Shardings(
        signatures=tuple(problem.signatures[s] for s in choice),
        step_s=problem.step_s(choice),
        data_s=problem.step_s([data] * len(choice)),
        is_exact=is_exact,
        n_sweeps=n_sweeps,
    )


def sharding_problem(
    graph: LayerGraph, cluster: Cluster, mesh: Sequence[int], global_batch: int
) -> ShardingProblem:
    """Return the layers with weights of a network as a chain to be divided on a mesh.

    Parameters
    ----------
    graph, cluster
        What is trained, and on what, in float32 at the efficiency of its kind of layer.
    mesh
        Devices along every axis, inside out: each axis talks over the innermost level that joins
        its members.
    global_batch
        Samples of a step.
    """
    layers = [layer for layer in graph.layers if layer.weight_shape and layer.forward_flop]
    if not layers:
        raise InvalidInputError(f"{graph.name} must have layers with weights to divide.")
    device = cluster.device
    peak = device.peak_flops.get("float32", max(device.peak_flops.values()))
    usual = device.efficiency.get("default", 0.5)
    flop = np.array([x.forward_flop + x.backward_flop for x in layers], dtype=float)
    share = np.array([device.efficiency.get(x.kind, usual) for x in layers])
    links = [_axis_link(cluster, mesh, axis) for axis in range(len(mesh))]
    return ShardingProblem(
        compute_s=flop * global_batch / (peak * share),
        input_bytes=np.array([x.input_bytes for x in layers], dtype=float) * global_batch,
        output_bytes=np.array([x.output_bytes for x in layers], dtype=float) * global_batch,
        weight_bytes=np.array([4.0 * x.n_parameters for x in layers]),
        mesh=tuple(mesh),
        latency_s=tuple(link.latency_s for link in links),
        seconds_per_byte=tuple(1 / link.bandwidth for link in links),
        names=tuple(x.name for x in layers),
    )


def _axis_link(cluster: Cluster, mesh: Sequence[int], axis: int) -> Link:
    span = int(np.prod(mesh[: axis + 1]))
    capacity = 1
    for level in cluster.levels:
        capacity *= level.size or span
        if span <= capacity:
            return level.link
    return cluster.levels[-1].link
