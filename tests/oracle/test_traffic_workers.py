"""What the oracle says a step sends is what real workers' collectives carry."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.executors.divided import Pools
from tests.oracle.real_steps import foretold, graph_of, real_job

from paceline.oracle import divided_layers, spatial_blocks
from paceline.oracle._columns import columns_of
from paceline.scenario import Strategy
from paceline.workloads import list_workloads, load_workload

pytest.importorskip("torch")
pytestmark = pytest.mark.plans

NETWORKS: dict[str, dict[str, Any]] = {
    "lenet5": {},
    "resnet18": {"image_size": 32, "n_classes": 10, "filters": 8},
    "resnet50": {"image_size": 32, "n_classes": 10, "filters": 4},
    "resattnet18": {"volume": 32, "filters": 4},
    "cosmoflow": {"volume": 32, "filters": 4},
    "gpt": {"layers": 2, "width": 32, "heads": 4, "length": 16, "vocabulary": 64},
    "gpt2": {"layers": 2, "width": 32, "heads": 4, "length": 16, "vocabulary": 64},
}
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast")
BATCH = 12


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    pools = Pools()
    yield pools
    pools.close()


def sent(
    pools: Pools, name: str, strategy: Strategy, **division: Any
) -> tuple[list[Mapping[str, float]], dict[str, float]]:
    """Return payload by kind of every real worker, and the oracle's."""
    values = NETWORKS[name]
    record = pools.run(real_job(name, values, strategy, global_batch=BATCH, **division))
    row = foretold(name, values, strategy, global_batch=BATCH)
    said = {kind: float(row[f"{kind}_bytes"][0]) for kind in (*COLLECTIVES, "point_to_point")}
    said |= {kind: float(row[f"{kind}_payload_bytes"][0]) for kind in ("exchange", "transfer")}
    return [worker.traffic_bytes for worker in record.workers], said


def check_collectives(workers: list[Mapping[str, float]], said: Mapping[str, float]) -> None:
    for worker in workers:
        assert {k: worker.get(k, 0) for k in COLLECTIVES} == {k: said[k] for k in COLLECTIVES}


@pytest.mark.parametrize("name", ["lenet5", "resnet18", "gpt", "gpt2"])
@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(data=2),
        Strategy(data=3),
        Strategy(data=2, micro_batches=2),
        Strategy(data=2, shard=2),
        Strategy(data=2, shard=2, micro_batches=2),
        Strategy(data=2, shard=3),
        Strategy(data=2, shard=3, micro_batches=2),
    ],
    ids=str,
)
def test_replicas_exchange_what_the_oracle_says(
    pools: Pools, name: str, strategy: Strategy
) -> None:
    workers, said = sent(pools, name, strategy)
    check_collectives(workers, said)
    assert sum(workers[0].values()) == said["exchange"]


def test_replicas_broadcast_the_buffers_of_batch_normalisation(pools: Pools) -> None:
    workers, said = sent(pools, "resnet18", Strategy(data=2))
    graph = graph_of("resnet18", NETWORKS["resnet18"])
    assert workers[0]["broadcast"] == said["broadcast"] == graph.total("buffer_bytes") > 0


def test_shards_that_do_not_divide_a_weight_are_filled_up(pools: Pools) -> None:
    workers, said = sent(pools, "lenet5", Strategy(data=3, shard=3))
    for kind in ("all_gather", "reduce_scatter"):
        assert 1 < workers[0][kind] / said[kind] < 1.02  # the oracle knows no single weights


@pytest.mark.parametrize("name", ["lenet5", "resnet18", "gpt"])
@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(pipeline=2, micro_batches=4),
        Strategy(pipeline=2, micro_batches=4, schedule="gpipe"),
        Strategy(pipeline=3, micro_batches=3),
        Strategy(pipeline=2, micro_batches=4, schedule="interleaved", virtual_stages=2),
        Strategy(data=2, pipeline=2, micro_batches=2),
    ],
    ids=str,
)
def test_pipelines_hand_over_what_the_oracle_says(
    pools: Pools, name: str, strategy: Strategy
) -> None:
    workers, said = sent(pools, name, strategy, stages=stages(name, strategy))
    chain = workers[: strategy.pipeline]  # of the first replica
    assert sum(worker["send"] for worker in chain) == said["transfer"] == said["point_to_point"]
    assert sum(worker["receive"] for worker in chain) == said["transfer"]
    assert max(worker.get("all_reduce", 0) for worker in workers) == said["exchange"]


def stages(name: str, strategy: Strategy) -> list[list[int]]:
    """Return the operations of the stages that the oracle cuts a network into."""
    graph = graph_of(name, NETWORKS[name])
    keywords = load_workload(name).job_keywords({**NETWORKS[name], "learning_rate": 0.1})
    names = [operation["name"] for operation in keywords["network"]]
    firsts = columns_of(graph).layer_bounds(strategy.pipeline * strategy.virtual_stages)[:-1]
    places = [names.index(graph.layers[i].block) for i in firsts]
    return [list(pair) for pair in itertools.pairwise([*places, len(names)])]


@pytest.mark.parametrize("name", ["lenet5", "resnet18", "gpt", "gpt2"])
@pytest.mark.parametrize(
    "strategy",
    [
        Strategy(filter=2),
        Strategy(filter=3),
        Strategy(filter=2, micro_batches=2),
        Strategy(data=2, filter=2),
        Strategy(channel=2),
        Strategy(channel=3),
        Strategy(data=2, channel=2),
    ],
    ids=str,
)
def test_layers_dealt_out_send_what_the_oracle_says(
    pools: Pools, name: str, strategy: Strategy
) -> None:
    degree = "filter" if strategy.filter > 1 else "channel"
    names = divided_layers(graph_of(name, NETWORKS[name]), degree)
    workers, said = sent(pools, name, strategy, split_layers=list(names))
    check_collectives(workers, said)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("lenet5", Strategy(spatial=2)),
        ("resnet18", Strategy(spatial=2)),
        ("resnet18", Strategy(spatial=2, micro_batches=2)),
        ("resnet18", Strategy(spatial=4)),
        ("resnet18", Strategy(data=2, spatial=2)),
        ("resnet50", Strategy(spatial=2)),
        ("resattnet18", Strategy(spatial=2)),
        ("resattnet18", Strategy(spatial=4)),
        ("cosmoflow", Strategy(spatial=2)),
    ],
    ids=str,
)
def test_blocks_of_space_send_what_the_oracle_says(
    pools: Pools, name: str, strategy: Strategy
) -> None:
    blocks = spatial_blocks(graph_of(name, NETWORKS[name]), strategy.spatial)
    layout = {"grid": list(blocks.grid), "n_leading": blocks.n_units}
    workers, said = sent(pools, name, strategy, **layout)
    check_collectives(workers, said)
    assert max(worker["send"] for worker in workers) == said["point_to_point"]


def test_serial_steps_send_nothing(pools: Pools) -> None:
    workers, said = sent(pools, "resnet18", Strategy())
    assert not workers[0] and not any(said.values())


@pytest.mark.parametrize("name", list_workloads())
def test_padding_before_a_window_is_found_from_its_shapes(name: str) -> None:
    from paceline.oracle.strategies._blocks import _window

    workload = load_workload(name)
    keywords = workload.job_keywords({"learning_rate": 0.1})
    layers = {layer.name: layer for layer in workload.graph().layers}
    for operation in _all_operations(keywords["network"]):
        if operation["op"] in ("conv", "pool"):
            before = _before(operation.get("padding") or 0)
            assert _window(layers[operation["name"]], 0).padding == before, operation


def _all_operations(operations: Any) -> Iterator[Mapping[str, Any]]:
    for operation in operations:
        yield operation
        for way in ("body", "shortcut"):
            yield from _all_operations(operation.get(way) or ())


def _before(padding: Any) -> int:
    return padding if isinstance(padding, int) else int(padding[0])
