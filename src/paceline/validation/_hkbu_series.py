"""Published throughput of data parallelism on slow and fast networks beside our predictions.

One device sets the seconds per sample; four devices, one node, set the bandwidth within a node
(it is not published); eight devices and more test. How gradients are merged is the published
one, so that these series test the overlap of exchange and backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.clusters import Cluster, Device, Level, Link, all_reduce
from paceline.oracle import exposed_communication
from paceline.validation._accuracy import (
    Prediction,
    check_at_least,
    mean_accuracy,
    show_accuracy,
)
from paceline.validation._checks import Check
from paceline.validation._oracle_facts import load_oracle_facts
from paceline.workloads import load_workload

Array = NDArray[np.float64]

SOURCE = "HKBU-HPML ddl-benchmarks, arXiv 2005.13247"
DEVICES_PER_NODE = 4
ACHIEVED = 0.8  # of the network's nominal bandwidth, as for ABCI
NETWORK_LATENCY_S = 40e-6
BACKWARD_SHARE = 2 / 3

FLOOR = 0.90

# mean over the cases that test, by network, link and rule: ours as recorded
RECORDED = {
    ("resnet50", "10GbE", "merged"): 0.938,
    ("resnet50", "10GbE", "layers"): 0.861,  # many small messages: Horovod's own cost is not ours
    ("resnet50", "10GbE", "greedy"): 0.975,
    ("resnet50", "100Gb InfiniBand", "merged"): 0.995,
    ("resnet50", "100Gb InfiniBand", "layers"): 0.959,
    ("resnet50", "100Gb InfiniBand", "greedy"): 0.983,
    ("bert-large", "10GbE", "merged"): 0.880,
    ("bert-large", "100Gb InfiniBand", "merged"): 0.934,
}


def check_hkbu_series() -> list[Check]:
    """Show our accuracy in every series, and check the mean."""
    facts = load_oracle_facts("hkbu")
    found = [(s, predict_throughput(facts, s)) for s in facts["series"]]
    checks = [
        show_accuracy(
            f"mean accuracy, data {s['network']}, {s['link']}, gradients {s['rule']}, "
            f"{len(predictions)} cases",
            SOURCE,
            recorded=RECORDED[s["network"], s["link"], s["rule"]],
            got=mean_accuracy(predictions),
            beside="1 device sets the compute, 4 the link of a node",
        )
        for s, predictions in found
    ]
    everything = [p for _, predictions in found for p in predictions]
    name = f"mean accuracy of {len(everything)} cases"
    return [
        *checks,
        check_at_least(name, SOURCE, floor=FLOOR, got=mean_accuracy(everything)),
    ]


def predict_throughput(facts: Mapping[str, Any], series: Mapping[str, Any]) -> list[Prediction]:
    """Return our predictions of the seconds of a step, for more than one node."""
    batch, network = series["device_batch"], facts["networks"][series["link"]]
    step_s = {
        n: batch * n / rate
        for n, rate in zip(series["n_devices"], series["samples_per_s"], strict=True)
    }
    bandwidth = _node_bandwidth(facts, series)
    predict = _predictor(series, step_s[1], _cluster(bandwidth, network * ACHIEVED))
    return [
        Prediction(
            name=f"{series['network']}, {series['link']}, {series['rule']}",
            n_devices=n,
            predicted=predict(n),
            measured=measured,
        )
        for n, measured in step_s.items()
        if n > DEVICES_PER_NODE
    ]


def _predictor(
    series: Mapping[str, Any], one_s: float, cluster: Cluster
) -> Callable[[int], float]:
    flop, n_bytes = _layers(series)
    backward_s = BACKWARD_SHARE * one_s * flop / flop.sum()

    def predict(n: int) -> float:
        exposed = exposed_communication(
            backward_s, n_bytes, lambda m: all_reduce(cluster, m, n), rule=series["rule"]
        )
        return one_s + float(exposed)

    return predict


def _layers(series: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return backward FLOP and bytes of gradients by layer; one layer where that is all known."""
    if "weights" in series:
        return np.ones(1), np.array([4.0 * series["weights"]])
    graph = load_workload(series["network"]).graph()
    return graph.column("backward_flop"), 4.0 * graph.column("n_parameters")


def _node_bandwidth(facts: Mapping[str, Any], series: Mapping[str, Any]) -> float:
    """Return what four devices of the bulk synchronous series say of a node's links."""
    bulk = next(
        s
        for s in facts["series"]
        if (s["network"], s["link"], s["rule"]) == (series["network"], series["link"], "merged")
    )
    rates = dict(zip(bulk["n_devices"], bulk["samples_per_s"], strict=True))
    n, batch = DEVICES_PER_NODE, bulk["device_batch"]
    exchange_s = batch * n / rates[n] - batch / rates[1]
    return float(2 * (n - 1) / n * _layers(bulk)[1].sum() / exchange_s)


def _cluster(node: float, network: float) -> Cluster:
    device = Device(
        name="unknown", peak_flops={"float32": 1e13}, memory_bytes=1e10, memory_bandwidth=5e11
    )
    levels = (
        Level(
            name="node", size=DEVICES_PER_NODE, link=Link(name="", latency_s=9e-6, bandwidth=node)
        ),
        Level(
            name="network",
            size=0,
            # one adapter a node, which its devices share
            link=Link(
                name="",
                latency_s=NETWORK_LATENCY_S,
                bandwidth=network,
                contention=DEVICES_PER_NODE,
            ),
        ),
    )
    return Cluster(name="hkbu", device=device, levels=levels)
