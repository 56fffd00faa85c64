"""From times to a device and a link: lines with non-negative slopes, fitted to relative errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls

from paceline.clusters import Cluster, Kernel, Link, all_reduce
from paceline.executors import joint_steps
from paceline.measurement._protocol import pace
from paceline.workloads import LayerGraph

FloatArray = NDArray[np.float64]

_PARTS = tuple(field.name for field in fields(Kernel))
PROBE_OPTIMIZER = "adam"  # what the networks of a calibration are trained with
_LEAST_SHARE = 0.5  # of layers timed one by one in a step: less is noise
_REWEIGHTINGS = 4
_SOFT_S = 2e-5  # errors of so little matter in no network


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTime:
    """One measured pass of one layer, with what explains it."""

    kernel: str
    figures: tuple[float, ...]  # FLOP; bytes of input, output, weights; weights by sample
    seconds: float


def layer_times(
    graph: LayerGraph, batch: int, rows: Iterable[Mapping[str, Any]]
) -> list[LayerTime]:
    """Return what a network probe measured, pass by pass.

    The input counts with the forward pass of the loss, which comes once a step too. Where layers
    add up to more than a step without clocks in it, the clocks lengthened them, and all are as
    much shorter.
    """
    by_name = {row["name"]: row for row in rows}
    share, input_s = _share(by_name), by_name["_input"]["forward_s"]
    found = []
    for layer in graph.layers:
        row = by_name.get("_rest" if layer.kind == "loss" else layer.name)
        if row is None:
            continue
        once = input_s if layer.kind == "loss" else 0.0
        weights = float(layer.weight_bytes)
        moved = (batch * layer.input_bytes, batch * layer.output_bytes, weights, batch * weights)
        for kernel, flop, seconds in (
            (layer.operation, layer.forward_flop, share * row["forward_s"] + once),
            (f"{layer.operation}_backward", layer.backward_flop, share * row["backward_s"]),
        ):
            figures = (float(batch * flop), *map(float, moved))
            found.append(LayerTime(kernel=kernel, figures=figures, seconds=seconds))
    return found


def _share(by_name: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the share of the measured layers that a step without clocks holds."""
    passes = [row for row in by_name.values() if "backward_s" in row]
    parts = sum(row["forward_s"] + row["backward_s"] for row in passes)
    others = (by_name[name]["forward_s"] for name in ("_input", f"_update_{PROBE_OPTIMIZER}"))
    whole = by_name["_step"]["forward_s"] - sum(others)
    return float(np.clip(whole / max(parts, 1e-12), _LEAST_SHARE, 1.0))


def fit_kernels(times: Sequence[LayerTime]) -> dict[str, Kernel]:
    """Return a line for every kind of layer and pass."""
    kernels = {}
    for name in sorted({time.kernel for time in times}):
        own = [time for time in times if time.kernel == name]
        figures = np.array([time.figures for time in own])
        line = fit_line(figures, np.array([time.seconds for time in own]))
        kernels[name] = Kernel(**dict(zip(_PARTS, map(float, line), strict=True)))
    return kernels


def fit_line(figures: FloatArray, seconds: FloatArray) -> FloatArray:
    """Return constant and slopes, none negative, of small relative errors on either side.

    Weights follow measured and fitted times together: by measured times alone a line would lie
    too low.
    """
    columns = np.column_stack([np.ones(len(figures)), figures])
    scale = np.where(columns.max(axis=0) > 0, columns.max(axis=0), 1.0)
    solution, fitted = np.zeros(columns.shape[1]), seconds
    for _ in range(_REWEIGHTINGS):
        weights = ((seconds + _SOFT_S) * (fitted + _SOFT_S)) ** -0.5
        solution, _ = nnls(columns / scale * weights[:, None], seconds * weights)
        fitted = columns / scale @ solution
    return np.asarray(solution / scale)


def fit_updates(
    graphs: Sequence[LayerGraph], rows: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, Kernel]:
    """Return the line of every optimizer: per layer with weights, and per byte of them."""
    counts = [sum(layer.n_parameters > 0 for layer in graph.layers) for graph in graphs]
    n_bytes = [4.0 * graph.total("n_parameters") for graph in graphs]
    columns = np.column_stack([counts, n_bytes]).astype(float)
    names = [row["name"] for row in rows[0] if row["name"].startswith("_update_")]
    kernels = {}
    for name in names:
        seconds = np.array([_seconds(own, name) for own in rows])
        scale = columns.max(axis=0)
        solution, _ = nnls(columns / scale / seconds[:, None], np.ones_like(seconds))
        launch, slope = solution / scale
        kernels[name.removeprefix("_")] = Kernel(
            launch_s=float(launch), s_per_weight_byte=float(slope)
        )
    return kernels


def _seconds(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(next(row["forward_s"] for row in rows if row["name"] == name))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCurve:
    """What matrix products and convolutions reach: ``launch + (flop + half_flop) / peak``."""

    peak_flops: float
    efficiency: Mapping[str, float]
    half_flop: float
    launch_s: float


def fit_rates(rows: Sequence[Mapping[str, Any]]) -> RateCurve:
    """Return the curve through measured rates; the peak is the best rate of any of them."""
    best: dict[str, float] = {}
    for row in rows:
        for key, share in (("forward_s", 1.0), ("backward_s", 2.0)):
            rate = share * row["flop"] / row[key]
            best[row["kind"]] = max(best.get(row["kind"], 0.0), rate)
    peak = max(best.values())
    efficiency = {kind: rate / peak for kind, rate in best.items()}
    work = np.array([row["flop"] / best[row["kind"]] for row in rows])
    seconds = np.array([row["forward_s"] for row in rows])
    smallest = int(np.argmin(work))
    launch = max(0.0, float(seconds[smallest] - work[smallest]))
    spare = np.median(np.clip(seconds - launch - work, 0, None))
    return RateCurve(
        peak_flops=peak,
        efficiency={"default": float(np.mean(list(efficiency.values()))), **efficiency},
        half_flop=float(spare * peak),
        launch_s=launch,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanges:
    """Measured exchanges: workers, bytes and seconds."""

    n_workers: FloatArray
    n_bytes: FloatArray
    seconds: FloatArray

    def part(self, chosen: NDArray[np.bool_]) -> Exchanges:
        """Return some of them."""
        return Exchanges(
            n_workers=self.n_workers[chosen],
            n_bytes=self.n_bytes[chosen],
            seconds=self.seconds[chosen],
        )


def fit_link(cluster: Cluster, exchanges: Exchanges) -> Link:
    """Return the link of a one-level cluster with which all-reduces take what was measured.

    ``max(floor, a + b n)`` by the cluster's own collectives, on relative errors.
    """
    link = cluster.levels[0].link
    smallest, largest = exchanges.seconds.min(), exchanges.seconds.max()
    start: FloatArray = np.log([smallest / 4, exchanges.n_bytes.max() / largest, smallest])
    least = start[0] - 3.0

    def loss(logs: FloatArray) -> float:
        predicted = predict_exchanges(_with_link(cluster, _link(link, logs)), exchanges)
        far = max(0.0, least - logs[0])  # a latency that the floor hides stays sensible
        return float(np.mean(np.abs(np.log(predicted / exchanges.seconds))) + 0.01 * far)

    options: Any = {"maxiter": 2000, "xatol": 1e-4, "fatol": 1e-6}
    for _ in range(3):  # started again, a simplex leaves where it was stuck
        start = minimize(loss, start, method="Nelder-Mead", options=options).x
    return _link(link, start)


def fit_messages(n_bytes: FloatArray, seconds: FloatArray) -> tuple[float, float]:
    """Return latency and bandwidth of plain messages."""
    latency, slope = fit_line(n_bytes[:, None], seconds)
    return float(latency), float(1 / slope) if slope > 0 else float("inf")


def held_out_error(cluster: Cluster, exchanges: Exchanges) -> float:
    """Return the mean relative error on every second size, fitted to the others."""
    sizes = np.unique(exchanges.n_bytes)
    kept = np.isin(exchanges.n_bytes, sizes[::2])
    fitted = _with_link(cluster, fit_link(cluster, exchanges.part(kept)))
    rest = exchanges.part(~kept)
    return relative_error(predict_exchanges(fitted, rest), rest.seconds)


def predict_exchanges(cluster: Cluster, exchanges: Exchanges) -> FloatArray:
    """Return what all-reduces take by the cluster's own model."""
    return all_reduce(cluster, exchanges.n_bytes, exchanges.n_workers)


def pace_together(lives: Sequence[Sequence[Sequence[float]]], shares_cores: bool) -> float:
    """Return the time of steps that all workers begin at once, by life, worker and step.

    A step lasts as long as its slowest worker. Of lives the fastest counts.
    """
    steps = ([max(times) for times in zip(*workers, strict=True)] for workers in lives)
    return min(pace(own, shares_cores=shares_cores) for own in steps)


def pace_exchanged(lives: Sequence[Sequence[Sequence[float]]], shares_cores: bool) -> float:
    """Return the same for steps in which workers wait for each other, as runs have them."""
    return min(pace(joint_steps(workers), shares_cores=shares_cores) for workers in lives)


def fit_crowd(
    alone: FloatArray, exchange: FloatArray, steps: FloatArray, *, least: float = 1.0
) -> tuple[float, float, float]:
    """Return how many times longer workers compute, `least` or more, and exchange, in steps.

    The factors s and f of ``s alone + f exchange = steps`` on relative errors, by least squares
    that large errors count less in (Huber's weights): a network whose exchange hides, or is too
    small for the link to limit, must not speak for the others. The third figure is the mean of
    the errors that are left.
    """
    whole = np.maximum(steps, alone + exchange)
    columns, gained = np.column_stack([alone, exchange]), steps - least * alone
    weights: FloatArray = np.ones_like(steps)
    solution, errors = np.zeros(2), weights
    for _ in range(_REWEIGHTINGS):
        root = np.sqrt(weights) / whole
        solution, _ = nnls(columns * root[:, None], gained * root)
        errors = np.abs(columns @ solution - gained) / whole
        weights = np.minimum(1.0, np.median(errors) / np.maximum(errors, 1e-12))
    return float(least + solution[0]), float(solution[1]), float(errors.mean())


def relative_error(predicted: FloatArray, measured: FloatArray) -> float:
    """Return the mean of the absolute relative errors."""
    return float(np.mean(np.abs(predicted / measured - 1)))


def _link(link: Link, logs: FloatArray) -> Link:
    latency, bandwidth, floor = (float(x) for x in np.exp(logs))
    return replace(link, latency_s=latency, bandwidth=bandwidth, floor_s=floor)


def _with_link(cluster: Cluster, link: Link) -> Cluster:
    return replace(cluster, levels=(replace(cluster.levels[0], link=link),))
