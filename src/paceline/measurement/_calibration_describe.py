"""From what a calibration measured to a cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paceline.clusters import Cluster, Device, Level, Link, kernel_time, update_time
from paceline.measurement._calibration_fit import fit_kernels, fit_rates, fit_updates, layer_times
from paceline.measurement._calibration_links import link_workers
from paceline.measurement._calibration_plan import Found, Plan, Rows
from paceline.measurement._calibration_probes import NetworkProbe
from paceline.measurement._machine import describe_machine
from paceline.units import format_percent


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
        sources={"device": f"measured by paceline calibrate, torch, {plan.backend}"},
    )
    errors = {
        label: _step_error(device, probe, rows)
        for label, probe, rows in zip(labels, plan.probes, networks, strict=True)
    }
    if max(plan.counts) == 1:
        return Calibration(cluster=cluster, network_errors=errors)
    linked = link_workers(cluster, plan, found)
    return Calibration(
        cluster=linked.cluster,
        network_errors=errors,
        exchange_error=linked.held_out_error,
        exchange_errors=linked.errors,
        point_to_point_s=linked.messages_s,
    )


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
