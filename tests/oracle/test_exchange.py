"""What replicas exchange, and what of it compute hides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.oracle.sums import passes, units

from paceline.clusters import (
    Cluster,
    all_gather,
    all_reduce,
    broadcast,
    reduce_scatter,
)
from paceline.oracle import assign_buckets, exposed_communication, sweep
from paceline.scenario import Strategy
from paceline.workloads import LayerGraph, load_workload


def test_data_parallelism_hides_what_the_backward_pass_can(
    chain: LayerGraph, cluster: Cluster
) -> None:
    result = sweep(chain, cluster, [Strategy(data=8)], global_batch=256)
    _, backward = passes(chain, cluster, 32)
    sizes = chain.column("n_parameters") * 4
    exposed = exposed_communication(
        backward, sizes, lambda n_bytes: all_reduce(cluster, n_bytes, 8), rule="ddp"
    )
    assert result["gradient_s"][0] == pytest.approx(float(exposed))
    assert result["exchange_payload_bytes"][0] == sizes.sum()


def test_nothing_hides_where_every_core_computes(crowded: Cluster) -> None:
    chain = load_workload("mlp").graph({"hidden": 3, "width": 1024})

    def gradient_s(n_cores: int) -> float:
        cluster = replace(crowded, n_cores=n_cores)
        return float(sweep(chain, cluster, [Strategy(data=2)], global_batch=64)["gradient_s"][0])

    messages = [all_reduce(crowded, m, 2) for m in _buckets_of(chain)]
    assert gradient_s(2) == pytest.approx(sum(messages))
    assert gradient_s(3) < gradient_s(2)


def _buckets_of(graph: LayerGraph) -> list[float]:
    sizes = graph.column("n_parameters") * 4
    bucket = assign_buckets(sizes)
    return [float(sizes[bucket == k].sum()) for k in np.unique(bucket[sizes > 0])]


def test_gradients_are_exchanged_once_for_accumulated_pieces(
    chain: LayerGraph, cluster: Cluster
) -> None:
    table = [Strategy(data=8), Strategy(data=8, micro_batches=4)]
    whole, pieces = sweep(chain, cluster, table, global_batch=[64, 256]).frame.to_dict("records")
    assert pieces["gradient_s"] == pytest.approx(whole["gradient_s"])
    assert pieces["forward_s"] == pytest.approx(4 * whole["forward_s"])
    assert pieces["activations_bytes"] == whole["activations_bytes"]


def test_buffers_are_broadcast_with_the_gradients(resnet: LayerGraph, cluster: Cluster) -> None:
    row = sweep(resnet, cluster, [Strategy(data=2)], global_batch=8)
    wanted = resnet.total("n_parameters") * 4 + resnet.total("buffer_bytes")
    assert row["exchange_payload_bytes"][0] == wanted


def test_sharding_needs_less_memory_by_stage(resnet: LayerGraph, cluster: Cluster) -> None:
    table = [Strategy(data=8, shard=shard) for shard in range(4)]
    rows = sweep(resnet, cluster, table, global_batch=64)
    assert (np.diff(rows.memory_bytes) < 0).all()
    assert rows["state_bytes"][1] == pytest.approx(rows["state_bytes"][0] / 8)
    # at the peak of the backward pass not all of them are there yet
    assert 0 < rows["gradients_bytes"][2] <= rows["weights_bytes"][0] / 8
    assert rows["weights_bytes"][3] < rows["weights_bytes"][0]
    gathered = resnet.total("n_parameters") * 4
    whole, state, *sharded = rows["exchange_payload_bytes"].tolist()
    buffers = resnet.total("buffer_bytes")  # which only whole replicas broadcast
    assert [whole - buffers, state - buffers] == [gathered, 2 * gathered]
    assert sharded == [2 * gathered, 3 * gathered]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_sharing_out_gradients_never_needs_more_memory(
    resnet: LayerGraph, cluster: Cluster, optimizer: str
) -> None:
    table = [Strategy(data=2, shard=shard) for shard in (1, 2)]
    for batch in (2, 4, 32, 256):
        rows = sweep(resnet, cluster, table, global_batch=batch, optimizer=optimizer)
        assert rows.memory_bytes[1] <= rows.memory_bytes[0]


def test_a_parameter_server_is_slower_than_a_ring_of_many(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    ring, server = (
        sweep(resnet, cluster, [Strategy(data=32)], global_batch=64, gradients=scheme)
        for scheme in ("all_reduce", "parameter_server")
    )
    assert server["gradient_total_s"][0] > ring["gradient_total_s"][0]


def test_traffic_is_counted_by_collective(resnet: LayerGraph, cluster: Cluster) -> None:
    table = [Strategy(data=4), Strategy(data=4, shard=3, micro_batches=2), Strategy(filter=2)]
    rows = sweep(resnet, cluster, table, global_batch=64)
    weights, buffers = 4 * resnet.total("n_parameters"), resnet.total("buffer_bytes")
    kinds = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
    data, sharded, divided = (
        [float(rows[f"{kind}_bytes"][i]) for kind in kinds] for i in range(3)
    )
    assert data == [weights, 0, 0, buffers]
    assert sharded == [0, 2 * weights, 4 * weights, 0]  # forward and backward, twice each
    assert divided[0] > 0 < divided[2] and divided[1] == divided[3] == 0
    causes = rows["exchange_payload_bytes"] + rows["layerwise_payload_bytes"]
    sums = sum(rows[f"{kind}_bytes"] for kind in kinds)
    np.testing.assert_allclose(sums, causes)


def test_the_best_overlap_is_the_least_of_three_and_none_hides_nothing(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    slow = replace(
        cluster,
        levels=tuple(
            replace(x, link=replace(x.link, bandwidth=x.link.bandwidth / 50))
            for x in cluster.levels
        ),
    )
    table = [Strategy(data=n) for n in (2, 4, 16, 64)]
    ddp, best, none = (
        sweep(resnet, slow, table, global_batch=256, overlap=name)
        for name in ("ddp", "best", "none")
    )
    assert (best["gradient_s"] <= ddp["gradient_s"]).all()
    assert (best["gradient_s"] < ddp["gradient_s"]).any()
    assert none["gradient_s"] == pytest.approx(none["gradient_total_s"])
    assert (ddp["gradient_s"] < none["gradient_s"]).all()
    for row, strategy in enumerate(table):
        _, backward = passes(resnet, slow, 256 / strategy.data)
        buffers = broadcast(slow, resnet.total("buffer_bytes"), strategy.data)
        for rule, result in (("ddp", ddp), ("best", best)):
            wanted = exposed_communication(
                backward,
                resnet.column("n_parameters") * 4,
                lambda n_bytes, n=strategy.data: all_reduce(slow, n_bytes, n),
                rule=rule,
            )
            assert result["gradient_s"][row] == pytest.approx(float(wanted + buffers))


def test_sharded_weights_are_gathered_ahead_of_compute(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    """Block by block, as a loop over time says; nothing is gathered twice at once."""
    row = sweep(resnet, cluster, [Strategy(data=8, shard=3)], global_batch=64)
    forward, backward = (units(resnet, t) for t in passes(resnet, cluster, 8))
    weights = units(resnet, resnet.column("n_parameters") * 4)
    gather = np.where(weights > 0, all_gather(cluster, weights, 8), 0.0)
    scatter = np.where(weights > 0, reduce_scatter(cluster, weights, 8), 0.0)
    here = computed = 0.0
    for gather_s, forward_s in zip(gather, forward, strict=True):
        here += gather_s
        computed = max(computed, here) + forward_s
    sent = through = 0.0
    for sent_s, backward_s in zip((gather + scatter)[::-1], backward[::-1], strict=True):
        through += backward_s
        sent = max(sent, through) + sent_s
    waits = computed - forward.sum() + sent - backward.sum()
    assert row["gradient_s"][0] == pytest.approx(waits)
