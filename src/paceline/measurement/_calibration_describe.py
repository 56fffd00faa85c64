"""From what a calibration measured to a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from paceline.clusters import (
    Cluster,
    Device,
    Level,
    Link,
    all_reduce,
    kernel_time,
    update_time,
)
from paceline.measurement._calibration_around import fit_divided, fit_piped, fit_sharded
from paceline.measurement._calibration_fit import (
    Exchanges,
    fit_factor,
    fit_kernels,
    fit_link,
    fit_messages,
    fit_rates,
    fit_updates,
    held_out_error,
    layer_times,
    least_together,
    predict_exchanges,
    relative_error,
)
from paceline.measurement._calibration_plan import Found, Plan, Rows
from paceline.measurement._calibration_probes import NetworkProbe
from paceline.measurement._machine import describe_machine
from paceline.units import format_percent

_LEAST_FACTOR = 0.1  # of exchanges within steps by those back to back


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A machine as a cluster, and how well it is described.

    Parameters
    ----------
    cluster
        Device, link, cores.
    network_errors
        Relative error of the fitted step of every network that was run, by its name.
    exchange_error
        Mean relative error of all-reduces that the fit has not seen; None for one worker.
    exchange_errors
        Mean relative error of the final fit by number of workers.
    point_to_point_s
        Bytes and least seconds of plain messages between two workers.
    load
        Processes that wanted to run when it began, its own not among them; None: unknown.
    """

    cluster: Cluster
    network_errors: Mapping[str, float]
    exchange_error: float | None = None
    exchange_errors: Mapping[int, float] = field(default_factory=dict)
    point_to_point_s: Mapping[int, float] = field(default_factory=dict)
    load: float | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs took more than a quarter of the machine."""
        return self.load is not None and self.load > (os.cpu_count() or 1) / 4

    def __str__(self) -> str:
        device, link = self.cluster.device, self.cluster.levels[0].link
        mean = float(np.mean(np.abs(list(self.network_errors.values()))))
        lines = [
            f"{device.name}: {device.peak_flops['float32'] / 1e9:.3g} GFLOP/s in float32, "
            f"memory {device.memory_bandwidth / 1e9:.3g} GB/s a worker",
            f"steps of {len(self.network_errors)} networks are fitted within "
            f"{format_percent(mean)} on average",
        ]
        if self.exchange_error is not None:
            lines.append(
                f"{link.name}: {link.latency_s * 1e6:.3g} us, {link.bandwidth / 1e9:.3g} GB/s, "
                f"at least {link.floor_s * 1e6:.3g} us; all-reduces that were held out are off "
                f"by {format_percent(self.exchange_error)} on average"
            )
        slow = ", ".join(f"{s:.2f}" for s in self.cluster.slowdowns)
        lines.append(f"workers side by side compute {slow} times as long")
        if self.is_disturbed:
            lines.append(
                f"The machine was busy with other programs (load {self.load:.3g}): exchanges are "
                "too slow here, and layers somewhat; calibrate again when it is quiet."
            )
        return "\n".join(lines)


def describe(plan: Plan, found: Found, name: str) -> Calibration:
    """Return the machine that was measured, under a name."""
    labels = [f"{i}: {probe}" for i, probe in enumerate(plan.probes)]
    networks = [_least([life[0] for life in found[label, 1]]) for label in labels]
    device = _device(plan, found, networks)
    cores = os.cpu_count() or 1
    alone = Link(name=plan.backend, latency_s=1e-5, bandwidth=1e9)
    cluster = Cluster(
        name=name,
        device=device,
        levels=(Level(name="node", size=max(plan.counts), link=alone),),
        n_devices=max(plan.counts),
        n_cores=cores if plan.backend == "gloo" else 0,
        slowdowns=_slowdowns(plan, found, labels, networks),
        sources={"device": f"measured by paceline calibrate, torch, {plan.backend}"},
    )
    errors = {
        label: _step_error(device, probe, rows)
        for label, probe, rows in zip(labels, plan.probes, networks, strict=True)
    }
    if max(plan.counts) == 1:
        return Calibration(cluster=cluster, network_errors=errors)
    return _with_exchanges(Calibration(cluster=cluster, network_errors=errors), plan, found)


def _least(lives: Sequence[Rows]) -> Rows:
    """Return the rows of one run with the least time of all lives in every place."""
    return [
        {
            key: value if key in ("name", "kind", "size") else min(row[key] for row in rows)
            for key, value in rows[0].items()
        }
        for rows in zip(*lives, strict=True)
    ]


def _device(plan: Plan, found: Found, networks: Sequence[Rows]) -> Device:
    curve = fit_rates(_least([life[0] for life in found["rates", 1]]))
    memory = _least([life[0] for life in found["memory", 1]])[0]
    graphs = [probe.graph for probe in plan.probes]
    times = [
        time
        for probe, graph, rows in zip(plan.probes, graphs, networks, strict=True)
        for time in layer_times(graph, probe.batch, rows)
    ]
    return Device(
        name=str(describe_machine()["processor"]) if plan.backend == "gloo" else plan.backend,
        peak_flops={"float32": curve.peak_flops},
        memory_bytes=_memory_bytes() / max(plan.counts),
        memory_bandwidth=memory["n_bytes"] / memory["seconds"],
        efficiency=curve.efficiency,
        half_flop=curve.half_flop,
        launch_s=curve.launch_s,
        memory_efficiency=1.0,
        kernels={**fit_kernels(times), **fit_updates(graphs, networks)},
    )


def _memory_bytes() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _slowdowns(
    plan: Plan,
    found: Found,
    labels: Sequence[str],
    networks: Sequence[Rows],
) -> tuple[float, ...]:
    """Return how much longer workers compute at once, beyond waiting for a core.

    A step of many lasts as long as its slowest worker, which this includes.
    """
    measured = {1: 1.0}
    for n in plan.counts[1:]:
        waiting = max(1.0, n / (os.cpu_count() or 1)) if plan.backend == "gloo" else 1.0
        ratios = [
            _together_s(found[labels[i], n], "_together") / _plain_s(plan.probes[i], networks[i])
            for i in plan.crowded
        ]
        measured[n] = max(1.0, float(np.mean(ratios)) / waiting)
    return _interpolated(measured)


def _together_s(lives: Sequence[Sequence[Rows]], name: str) -> float:
    return least_together(
        [
            [row["seconds"] for rows in life for row in rows if row["name"] == name]
            for life in lives
        ]
    )


def _plain_s(probe: NetworkProbe, rows: Rows) -> float:
    """Return the least time of a step alone, by plain gradient descent as crowds take theirs."""
    seconds = {row["name"]: row["forward_s"] for row in rows}
    own = probe.job().optimizer["name"]
    return float(seconds["_step"] - seconds[f"_update_{own}"] + seconds["_update_sgd"])


def _step_s(rows: Rows) -> float:
    return float(next(row["forward_s"] for row in rows if row["name"] == "_step"))


def _step_error(device: Device, probe: NetworkProbe, rows: Rows) -> float:
    """Return the relative error of the fitted step without its input."""
    column, batch = probe.graph.column, probe.batch
    figures: dict[str, Any] = {
        "kind": [layer.operation for layer in probe.graph.layers],
        "input_bytes": batch * column("input_bytes"),
        "output_bytes": batch * column("output_bytes"),
        "weight_bytes": column("weight_bytes"),
        "samples": batch,
    }
    forward = kernel_time(device, batch * column("forward_flop"), **figures)
    backward = kernel_time(device, batch * column("backward_flop"), backward=True, **figures)
    update = update_time(device, 4.0 * column("n_parameters"))
    return float((forward + backward + update).sum() / _step_s(rows) - 1)


def _with_exchanges(calibration: Calibration, plan: Plan, found: Found) -> Calibration:
    exchanges, messages = _exchanges(plan, found)
    few = plan.few
    alone = replace(calibration.cluster, exchange_slowdowns=(1.0,))
    first = exchanges.part(exchanges.n_workers == few)
    cluster = _link_fitted(alone, first, messages)
    parts = {n: exchanges.part(exchanges.n_workers == n) for n in plan.counts[1:]}
    ratios = {n: _ratio(cluster, parts[n]) for n in plan.counts[1:]}
    bare = replace(cluster, exchange_slowdowns=_interpolated({**ratios, 1: 1.0, few: 1.0}))
    errors = {
        n: relative_error(predict_exchanges(bare, part), part.seconds) for n, part in parts.items()
    }
    within = {n: _within_steps(bare, plan, found, n) for n in plan.counts[1:]}
    slow = {n: within[n] * bare.exchange_slowdowns[n - 1] for n in within}
    linked = replace(bare, exchange_slowdowns=_interpolated({1: 1.0, **slow}))
    return replace(
        calibration,
        cluster=_with_work_around(linked, found, few),
        exchange_error=held_out_error(alone, first),
        exchange_errors=errors,
        point_to_point_s=messages,
    )


def _with_work_around(cluster: Cluster, found: Found, n_workers: int) -> Cluster:
    """Return the cluster with what its devices do around exchanges, beyond what the link says."""
    around = {
        **fit_divided(cluster, _slowest(found["divided layers", n_workers]), n_workers),
        **fit_sharded(cluster, _slowest(found["sharded networks", n_workers]), n_workers),
        **fit_piped(_slowest(found.get(("pipelines", n_workers), ()))),
    }
    kernels = {**cluster.device.kernels, **around}
    return replace(cluster, device=replace(cluster.device, kernels=kernels))


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


def _within_steps(cluster: Cluster, plan: Plan, found: Found, n: int) -> float:
    """Return how many times longer gradients take between passes than back to back.

    Less than once only where nothing can hide: workers that crowd their cores exchange faster
    when they do not all want to at once.
    """
    least = 1.0 if cluster.can_overlap(n) else _LEAST_FACTOR
    times = []
    for i in plan.crowded:
        lives = found[f"{i}: {plan.probes[i]}", n]
        n_bytes = 4.0 * plan.probes[i].graph.column("n_parameters").sum()
        times.append(
            (
                _together_s(lives, "_together"),
                _together_s(lives, "_exchanged"),
                float(all_reduce(cluster, n_bytes, n)),
            )
        )
    return fit_factor(*np.array(times).T, least=least)


def _link_fitted(cluster: Cluster, exchanges: Exchanges, messages: Mapping[int, float]) -> Cluster:
    link = fit_link(cluster, exchanges)
    if messages:
        sizes, seconds = np.array(list(messages), float), np.array(list(messages.values()))
        latency, bandwidth = fit_messages(sizes, seconds)
        link = replace(link, message_latency_s=latency, message_bandwidth=bandwidth)
    return replace(cluster, levels=(replace(cluster.levels[0], link=link),))


def _ratio(cluster: Cluster, exchanges: Exchanges) -> float:
    """Return how many times longer exchanges take than the link of fewer workers says."""
    if not len(exchanges.seconds):
        return 1.0
    ratios = exchanges.seconds / predict_exchanges(cluster, exchanges)
    return max(1.0, float(np.median(ratios)))


def _interpolated(measured: Mapping[int, float]) -> tuple[float, ...]:
    """Return one figure for every number of workers up to the largest, never falling."""
    known = sorted(measured)
    counts = np.arange(1, known[-1] + 1)
    found = np.interp(counts, known, [measured[n] for n in known])
    return tuple(float(x) for x in np.maximum.accumulate(found))


def _exchanges(plan: Plan, found: Found) -> tuple[Exchanges, dict[int, float]]:
    """Return the least times: of every repeat that of the slowest worker."""
    points: list[tuple[float, float, float]] = []
    messages: dict[int, float] = {}
    for n in plan.counts[1:]:
        lives = found[f"exchanges of {n} workers", n]
        for row in _slowest(lives):
            if row["kind"] == "all_reduce":
                points.append((n, row["n_bytes"], row["seconds"]))
            elif n == plan.few:
                messages[int(row["n_bytes"])] = row["seconds"] / 2  # there and back
    table = np.array(points).T
    return Exchanges(n_workers=table[0], n_bytes=table[1], seconds=table[2]), messages
