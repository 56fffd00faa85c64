"""From exchanges and crowded steps to a link, and to how much workers slow each other down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from paceline.clusters import Cluster, all_reduce, broadcast
from paceline.measurement._calibration_around import fit_divided, fit_piped, fit_sharded
from paceline.measurement._calibration_fit import (
    Exchanges,
    FloatArray,
    fit_crowd,
    fit_link,
    fit_messages,
    held_out_error,
    pace_exchanged,
    pace_together,
    predict_exchanges,
    relative_error,
)
from paceline.measurement._calibration_plan import Found, Plan, Rows
from paceline.oracle import communication_time
from paceline.workloads import LayerGraph

_LEAST_FACTOR = 0.1  # of exchanges within steps by those back to back
_N_SMALL = 5  # sizes whose exchanges take the least time that there is
_FLOOR_SHARES = np.geomspace(0.1, 1.0, 11)  # of that least time, where workers wait for cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A cluster with its link, and how well exchanges are described."""

    cluster: Cluster
    held_out_error: float
    errors: Mapping[int, float]  # by number of workers
    messages_s: Mapping[int, float]  # by bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Steps of several networks by workers at once: one number for each network."""

    alone_s: FloatArray  # by one worker, the others waiting
    together_s: FloatArray  # by all, none exchanging anything
    exchanged_s: FloatArray  # by all, adding up gradients
    graphs: tuple[LayerGraph, ...]

    def exchange_s(self, cluster: Cluster, n_workers: int) -> FloatArray:
        """Return what the exchanges of every network take by the cluster's own model.

        Gradients go in buckets as DDP has them, buffers in one broadcast.
        """

        def cost(n_bytes: FloatArray) -> FloatArray:
            return all_reduce(cluster, n_bytes, n_workers)

        found = []
        for graph in self.graphs:
            gradients = communication_time(4.0 * graph.column("n_parameters"), cost, rule="ddp")
            buffers = graph.total("buffer_bytes")
            more = float(broadcast(cluster, buffers, n_workers)) if buffers else 0.0
            found.append(float(gradients) + more)
        return np.array(found)


def link_workers(cluster: Cluster, plan: Plan, found: Found) -> Linked:
    """Return the cluster with what its workers cost each other.

    Parameters
    ----------
    cluster
        Of one level, its link not yet known.
    plan, found
        What was run and measured.
    """
    exchanges, messages = _exchanges(plan, found)
    parts = {n: exchanges.part(exchanges.n_workers == n) for n in plan.counts[1:]}
    first = parts[plan.few]
    alone = replace(cluster, exchange_slowdowns=(1.0,))
    bare = _with_more_workers(_link_fitted(alone, first, messages), parts)
    crowds = {n: _crowd(plan, found, n, 0 < cluster.n_cores < n) for n in parts}
    linked = _with_work_around(_with_crowds(bare, crowds), found, plan.few)
    errors = {
        n: relative_error(predict_exchanges(bare, part), part.seconds) for n, part in parts.items()
    }
    return Linked(
        cluster=linked,
        held_out_error=held_out_error(alone, first),
        errors=errors,
        messages_s=messages,
    )


def _exchanges(plan: Plan, found: Found) -> tuple[Exchanges, dict[int, float]]:
    """Return the least times: of every repeat that of the slowest worker."""
    points: list[tuple[float, float, float]] = []
    messages: dict[int, float] = {}
    for n in plan.counts[1:]:
        for row in _slowest(found[f"exchanges of {n} workers", n]):
            if row["kind"] == "all_reduce":
                points.append((n, row["n_bytes"], row["seconds"]))
            elif n == plan.few:
                messages[int(row["n_bytes"])] = row["seconds"] / 2  # there and back
    table = np.array(points).T
    return Exchanges(n_workers=table[0], n_bytes=table[1], seconds=table[2]), messages


def _slowest(lives: Sequence[Sequence[Rows]]) -> Rows:
    """Return rows with one time each: the least of all repeats, that of the slowest worker."""
    found = []
    for i, row in enumerate(lives[0][0] if lives else ()):
        least = {
            key: min(float(np.max([w[i][key] for w in life], axis=0).min()) for life in lives)
            for key in ("seconds", "alone_s")
            if key in row
        }
        found.append({**row, **least})
    return found


def _link_fitted(cluster: Cluster, exchanges: Exchanges, messages: Mapping[int, float]) -> Cluster:
    link = fit_link(cluster, exchanges)
    if messages:
        sizes, seconds = np.array(list(messages), float), np.array(list(messages.values()))
        latency, bandwidth = fit_messages(sizes, seconds)
        link = replace(link, message_latency_s=latency, message_bandwidth=bandwidth)
    return replace(cluster, levels=(replace(cluster.levels[0], link=link),))


def _with_more_workers(cluster: Cluster, parts: Mapping[int, Exchanges]) -> Cluster:
    """Return the cluster with what exchanges of more workers take than the link of few says.

    Those that wait for a core take longer to begin, whatever they send; what large messages take
    is another matter.
    """
    few = min(parts)
    floors, ratios = {1: 0.0, few: cluster.levels[0].link.floor_s}, {1: 1.0, few: 1.0}
    for n, part in parts.items():
        if n > few:
            floors[n] = _floor(part)
            ratios[n] = _ratio(cluster, part, floors[n])
    return replace(
        cluster,
        exchange_floors_s=_interpolated(floors),
        exchange_slowdowns=_interpolated(ratios),
    )


def _floor(exchanges: Exchanges) -> float:
    """Return the least time that an exchange takes, from the smallest ones."""
    return float(np.median(exchanges.seconds[np.argsort(exchanges.n_bytes)[:_N_SMALL]]))


def _ratio(cluster: Cluster, exchanges: Exchanges, floor_s: float) -> float:
    """Return how many times longer large exchanges take than the link of fewer workers says."""
    predicted = predict_exchanges(cluster, exchanges)
    large = predicted >= min(floor_s, predicted.max())
    return float(np.median(exchanges.seconds[large] / predicted[large]))


def _crowd(plan: Plan, found: Found, n: int, shares_cores: bool) -> Crowd:
    probes = {i: plan.probes[i] for i in plan.crowded}
    lives = [found[f"{i}: {probe}", n] for i, probe in probes.items()]
    return Crowd(
        alone_s=np.array([_least(_seconds(own, "_alone")) for own in lives]),
        together_s=np.array(
            [pace_together(_seconds(own, "_together"), shares_cores) for own in lives]
        ),
        exchanged_s=np.array(
            [pace_exchanged(_seconds(own, "_exchanged"), shares_cores) for own in lives]
        ),
        graphs=tuple(probe.graph for probe in probes.values()),
    )


def _least(lives: Sequence[Sequence[Sequence[float]]]) -> float:
    return min(time_s for life in lives for times in life for time_s in times)


def _seconds(lives: Sequence[Sequence[Rows]], name: str) -> list[list[Sequence[float]]]:
    """Return the times of the steps of one name, by life and worker."""
    return [
        [row["seconds"] for rows in life for row in rows if row["name"] == name] for life in lives
    ]


def _with_crowds(cluster: Cluster, crowds: Mapping[int, Crowd]) -> Cluster:
    """Return the cluster with how much longer workers compute and exchange in steps at once."""
    computing, exchanging = {1: 1.0}, {1: 1.0}
    for n, crowd in crowds.items():
        waiting = float(cluster.crowding(n))
        if waiting > 1:
            cluster = _with_floor_share(cluster, n, _floor_share(cluster, crowd, n, waiting))
        longer, factor = _within_steps(cluster, crowd, n, waiting)
        computing[n] = longer / waiting
        exchanging[n] = factor * cluster.exchange_slowdowns[n - 1]
    return replace(
        cluster,
        slowdowns=_interpolated(computing),
        exchange_slowdowns=_interpolated(exchanging),
    )


def _floor_share(cluster: Cluster, crowd: Crowd, n: int, waiting: float) -> float:
    """Return which share of the least time of an exchange is left of it within steps.

    Back to back, workers without a core of their own hand it over at every exchange; in a step
    others compute meanwhile. The share is that with which steps are fitted best.
    """

    def left(share: float) -> float:
        exchange = crowd.exchange_s(_with_floor_share(cluster, n, share), n)
        return fit_crowd(crowd.alone_s, exchange, crowd.exchanged_s, least=waiting)[-1]

    return float(min(_FLOOR_SHARES[::-1], key=left))


def _with_floor_share(cluster: Cluster, n: int, share: float) -> Cluster:
    floors = list(cluster.exchange_floors_s)
    floors[n - 1] *= share
    return replace(cluster, exchange_floors_s=tuple(floors))


def _within_steps(cluster: Cluster, crowd: Crowd, n: int, waiting: float) -> tuple[float, float]:
    """Return how many times longer workers compute, and exchange gradients, within steps.

    Steps with and without an exchange tell of both. Where workers wait for cores, one that has to
    wait begins its step later, so that only those that exchange count. Exchanges take less time
    within steps than back to back only where nothing can hide.
    """
    alone, exchange, steps = crowd.alone_s, crowd.exchange_s(cluster, n), crowd.exchanged_s
    if waiting <= 1:
        alone = np.concatenate([alone, alone])
        exchange = np.concatenate([exchange, np.zeros_like(exchange)])
        steps = np.concatenate([steps, crowd.together_s])
    longer, factor, _ = fit_crowd(alone, exchange, steps, least=waiting)
    return longer, max(factor, 1.0 if cluster.can_overlap(n) else _LEAST_FACTOR)


def _interpolated(measured: Mapping[int, float]) -> tuple[float, ...]:
    """Return one figure for every number of workers up to the largest."""
    known = sorted(measured)
    counts = np.arange(1, known[-1] + 1)
    return tuple(map(float, np.interp(counts, known, [measured[n] for n in known])))


def _with_work_around(cluster: Cluster, found: Found, n_workers: int) -> Cluster:
    """Return the cluster with what its devices do around exchanges, beyond what the link says."""
    around = {
        **fit_divided(cluster, _slowest(found["divided layers", n_workers]), n_workers),
        **fit_sharded(cluster, _slowest(found["sharded networks", n_workers]), n_workers),
        **fit_piped(_slowest(found.get(("pipelines", n_workers), ()))),
    }
    kernels = {**cluster.device.kernels, **around}
    return replace(cluster, device=replace(cluster.device, kernels=kernels))
