"""Small plans by hand, with the oracle's figures: what the tests of runs share."""

import itertools

from paceline.clusters import load_cluster
from paceline.oracle import cut_step
from paceline.scenario import Plan, Stage, Strategy
from paceline.workloads import load_workload, trace_file

CLUSTER = "cpu-xeon6148"


def make_plan(name, values, strategy, *, global_batch=8, ends=None, workload=None, **more):
    """Return a plan whose stages end behind the units `ends`, evenly cut when not given."""
    graph = more.pop("graph", None) or load_workload(name).graph(values)
    chosen = Strategy(**strategy)
    n_stages, n_units = chosen.pipeline * chosen.virtual_stages, len(graph.units)
    ends = ends or [round(i * n_units / n_stages) for i in range(1, n_stages + 1)]
    stages = [
        Stage(
            first=graph.units[a][0],
            end=graph.units[b - 1][1],
            names=(graph.layers[graph.units[a][0]].name, graph.layers[graph.units[b - 1][0]].name),
        )
        for a, b in itertools.pairwise([0, *ends])
    ]
    inner = chosen.n_devices // chosen.data
    return Plan(
        workload=workload or {"name": name, "values": dict(values)},
        fingerprint=more.pop("fingerprint", graph.fingerprint),
        cluster=more.pop("cluster", CLUSTER),
        strategy=chosen,
        global_batch=global_batch,
        optimizer=more.pop("optimizer", "sgd"),
        stages=tuple(stages),
        placement=more.pop("placement", None)
        or tuple(tuple(range(q * inner, (q + 1) * inner)) for q in range(chosen.data)),
        replica_batches=more.pop("replica_batches", None)
        or (global_batch // chosen.data,) * chosen.data,
        predicted=more.pop("predicted", None) or predict(graph, chosen, ends, global_batch),
        **more,
    )


def predict(graph, strategy, ends, global_batch):
    """Return what a plan would say of its step."""
    cut = cut_step(
        graph,
        load_cluster(CLUSTER),
        strategy,
        ends if len(ends) > 1 else None,
        global_batch=global_batch,
        optimizer="sgd",
    )
    figures = dict(cut.figures)
    sent = figures["exchange_payload_bytes"] + figures["layerwise_payload_bytes"]
    return {
        **figures,
        "memory_bytes": float(cut.memory_bytes.max()),
        "traffic_bytes": sent + figures["transfer_payload_bytes"] / strategy.pipeline,
    }


def module_plan(file, name, strategy, *, shape=(8, 8), **more):
    """Return a plan for a module in a file."""
    sample = {"shape": list(shape), "n_classes": 10}
    workload = {
        "module": {"file": str(file), "name": name, "arguments": more.pop("arguments", {})},
        "sample": sample,
        "loss": "cross_entropy",
    }
    graph = trace_file(file, name, shape, arguments=workload["module"]["arguments"])
    return make_plan(name, {}, strategy, graph=graph, workload=workload, **more)
