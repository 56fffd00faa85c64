"""What a sweep says of small networks, against sums written out here."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.oracle.sums import passes, update

from paceline.clusters import (
    Cluster,
    Kernel,
    all_gather,
    all_reduce,
    point_to_point,
)
from paceline.errors import InfeasibleError, InvalidInputError, UnknownNameError
from paceline.oracle import BOTTLENECKS, predict, sweep
from paceline.scenario import Scenario, Strategy, StrategyTable
from paceline.workloads import LayerGraph, load_workload


def test_one_device_computes_all_layers_and_updates(chain: LayerGraph, cluster: Cluster) -> None:
    result = sweep(chain, cluster, [Strategy()], global_batch=32)
    forward, backward = passes(chain, cluster, 32)
    assert result["forward_s"][0] == pytest.approx(forward.sum())
    assert result["backward_s"][0] == pytest.approx(backward.sum())
    assert result["update_s"][0] == pytest.approx(update(chain, cluster))
    assert result.step_s[0] == pytest.approx(
        forward.sum() + backward.sum() + update(chain, cluster)
    )
    assert result.communication_s[0] == 0


def test_filters_are_gathered_and_inputs_added_up(chain: LayerGraph, cluster: Cluster) -> None:
    """ParaDL, table III: one all-gather and one all-reduce of every divided layer."""
    row = sweep(chain, cluster, [Strategy(filter=4)], global_batch=16)
    gathered = all_gather(cluster, 16 * chain.column("output_bytes"), 4).sum()
    added = all_reduce(cluster, 16 * chain.column("input_bytes")[1:], 4).sum()
    assert row["layerwise_s"][0] == pytest.approx(gathered + added)
    assert row["weights_bytes"][0] == pytest.approx(chain.total("n_parameters"))  # 4 bytes / 4
    assert row["gradient_s"][0] == 0


def test_channels_are_added_up_and_gathered_from_the_second_layer_on(
    chain: LayerGraph, cluster: Cluster
) -> None:
    row = sweep(chain, cluster, [Strategy(channel=4)], global_batch=16)
    added = all_reduce(cluster, 16 * chain.column("output_bytes")[1:], 4).sum()
    gathered = all_gather(cluster, 16 * chain.column("input_bytes")[1:], 4).sum()
    assert row["layerwise_s"][0] == pytest.approx(added + gathered)


def test_a_halo_is_exchanged_along_every_axis(chain: LayerGraph, cluster: Cluster) -> None:
    row = sweep(chain, cluster, [Strategy(spatial=4)], global_batch=8)
    one_row = 8 * 4 * 8  # samples x bytes x places along the other axis of a 2 x 2 grid
    channels = np.array([3, 32, 32, 32])
    along = point_to_point(cluster, one_row * channels, 2, n=2)
    # the second axis with the row that came along the first one
    across = point_to_point(cluster, one_row * channels * 9 / 8, 1, n=2)
    both = along + across
    assert row["halo_s"][0] == pytest.approx(2 * both.sum() - both[0])  # no way back at the input
    sent = one_row * (1 + 9 / 8) * (2 * channels.sum() - channels[0])
    assert row["point_to_point_bytes"][0] == pytest.approx(sent)


def test_gpipe_takes_all_stages_and_the_slowest_again(chain: LayerGraph, cluster: Cluster) -> None:
    strategy = Strategy(pipeline=5, micro_batches=8, schedule="gpipe")
    row = sweep(chain, cluster, [strategy], global_batch=64)
    forward, backward = passes(chain, cluster, 8)
    backward = backward + 7 / 8 * added_up(chain, cluster)
    sent = point_to_point(cluster, 8 * chain.column("output_bytes")[:-1], 1, n=5)
    wanted = sum(t.sum() + sent.sum() + 7 * max(t.max(), sent.max()) for t in (forward, backward))
    update_s = max(update(chain.part(i, i + 1), cluster) for i in range(5))
    assert row.step_s[0] == pytest.approx(wanted + update_s)
    assert row["transfer_payload_bytes"][0] == 2 * 64 * chain.column("output_bytes")[:-1].sum()


def added_up(chain: LayerGraph, cluster: Cluster) -> np.ndarray:
    """Seconds by layer to add gradients to those of the micro-batch before."""
    parts = (chain.part(i, i + 1) for i in range(len(chain.layers)))
    return np.array([update(part, cluster, "sgd") for part in parts])


def test_gradients_of_all_micro_batches_but_the_first_are_added_up(
    chain: LayerGraph, cluster: Cluster
) -> None:
    row = sweep(chain, cluster, [Strategy(micro_batches=4)], global_batch=32)
    _, backward = passes(chain, cluster, 8)
    wanted = 4 * backward.sum() + 3 * added_up(chain, cluster).sum()
    assert row["backward_s"][0] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("strategy", "kernels", "extra"),
    [
        (Strategy(filter=4), ("divided_all_gather",), 5),
        (Strategy(channel=4), ("divided_all_reduce", "divided_all_gather"), 8),
        (Strategy(spatial=4), ("divided_point_to_point",), 2 * 7),  # both axes, both ways but one
        (Strategy(data=4, shard=2), ("sharded_all_gather", "sharded_reduce_scatter"), 2 * 5),
        (Strategy(data=4, shard=3), ("sharded_all_gather",), 2 * 5),
        (Strategy(data=4), ("sharded_all_gather", "divided_all_reduce"), 0),
    ],
    ids=lambda value: str(value) if isinstance(value, Strategy) else "",
)
def test_what_is_done_around_an_exchange_is_part_of_the_step(
    strategy: Strategy,
    kernels: tuple[str, ...],
    extra: int,
    chain: LayerGraph,
    cluster: Cluster,
) -> None:
    """A millisecond around every call, of which the chain's five layers make so many."""
    lines = {name: Kernel(launch_s=1e-3) for name in kernels}
    slow = replace(cluster, device=replace(cluster.device, kernels=lines))
    hidden = {"overlap": "none"}
    steps = [
        sweep(chain, c, [strategy], global_batch=64, **hidden).step_s for c in (cluster, slow)
    ]
    assert steps[1] - steps[0] == pytest.approx(extra * 1e-3)


def test_a_stage_works_around_its_messages(chain: LayerGraph, cluster: Cluster) -> None:
    lines = {"piped_point_to_point": Kernel(launch_s=1e-3)}
    slow = replace(cluster, device=replace(cluster.device, kernels=lines))
    strategy = Strategy(pipeline=5, micro_batches=8, schedule="gpipe")
    rows = [sweep(chain, c, [strategy], global_batch=64) for c in (cluster, slow)]
    # four boundaries, each of two stages; the mean of a device in eight micro-batches
    work = rows[1]["forward_s"] + rows[1]["backward_s"]
    assert work - rows[0]["forward_s"] - rows[0]["backward_s"] == pytest.approx(8 * 8e-3 / 5)


def test_layers_without_a_pipeline_work_one_after_another(
    chain: LayerGraph, cluster: Cluster
) -> None:
    """ParaDL, table III, row "layer": compute as on one device."""
    rows = sweep(
        chain, cluster, [Strategy(), Strategy(pipeline=4, schedule="sequential")], global_batch=32
    )
    waiting = rows.step_s - rows["update_s"] - rows["transfer_s"]
    assert waiting[1] == pytest.approx(waiting[0])


def test_interleaved_stages_have_a_smaller_bubble(chain: LayerGraph, cluster: Cluster) -> None:
    """Where all pieces are equal; a coarse cut of unequal ones may cost more than it gains."""
    alike = [replace(chain.layers[1], name=f"conv{i}", block=f"conv{i}") for i in range(8)]
    plain = Strategy(pipeline=2, micro_batches=8)
    pieces = replace(plain, schedule="interleaved", virtual_stages=2)
    graph = LayerGraph(name="alike", layers=tuple(alike))
    rows = sweep(graph, cluster, [plain, pieces], global_batch=256)
    assert rows["bubble_s"][1] < rows["bubble_s"][0]


def test_recomputation_trades_time_for_memory(resnet: LayerGraph, cluster: Cluster) -> None:
    rows = sweep(resnet, cluster, [Strategy(), Strategy(recompute=True)], global_batch=64)
    assert rows["backward_s"][1] == pytest.approx(rows["backward_s"][0] + rows["forward_s"][0])
    assert rows["activations_bytes"][1] < rows["activations_bytes"][0]


def test_tensor_parallelism_divides_every_expert(cluster: Cluster) -> None:
    graph = load_workload("mixtral-8x7b").graph()
    rows = sweep(graph, cluster, [Strategy(), Strategy(tensor=8)], global_batch=8)
    assert rows["weights_bytes"][1] < 0.13 * rows["weights_bytes"][0]
    assert rows["forward_s"][1] < 0.2 * rows["forward_s"][0]
    tokens = graph.layers[2].output_bytes * 8
    blocks = sum(layer.kind == "experts" for layer in graph.layers)
    assert rows["layerwise_payload_bytes"][1] >= 4 * blocks * tokens


def test_tensor_parallelism_reduces_twice_a_block_and_pass(
    gpt: LayerGraph, cluster: Cluster
) -> None:
    """Megatron-LM: attention and feed-forward, forward and backward, and the words."""
    row = sweep(gpt, cluster, [Strategy(tensor=4)], global_batch=8)
    hidden = 8 * gpt.layers[0].output_bytes
    n_blocks = 4
    wanted = all_reduce(cluster, hidden, 4) * (4 * n_blocks + 2)
    assert row["layerwise_s"][0] == pytest.approx(float(wanted))
    assert row["layerwise_payload_bytes"][0] == hidden * (4 * n_blocks + 2)


def test_context_parallelism_gathers_keys_and_values(gpt: LayerGraph, cluster: Cluster) -> None:
    row = sweep(gpt, cluster, [Strategy(context=4)], global_batch=8)
    pair = 2 * 8 * gpt.layers[0].output_bytes  # keys and values are as wide as the input
    assert row["layerwise_payload_bytes"][0] == pytest.approx(3 * 4 * pair, rel=0.01)
    assert row["gradient_s"][0] > 0  # every device has its own gradients of all weights


def test_a_measured_total_is_spread_by_flop(resnet: LayerGraph, cluster: Cluster) -> None:
    row = sweep(resnet, cluster, [Strategy()], global_batch=16, compute="profiled", sample_s=0.01)
    assert row["forward_s"][0] + row["backward_s"][0] == pytest.approx(0.16)


def test_paleo_adds_arithmetic_and_traffic(resnet: LayerGraph, cluster: Cluster) -> None:
    device = replace(
        cluster.device,
        half_flop=0.0,
        launch_s=0.0,
        efficiency={"default": 0.62},
        memory_efficiency=0.62,
    )
    plain = replace(cluster, device=device)
    larger, sums = (
        sweep(resnet, plain, [Strategy()], global_batch=16, compute=name)["forward_s"][0]
        for name in ("roofline", "paleo")
    )
    assert larger < sums < 2 * larger


def test_volumes_take_what_was_calibrated_for_them(cluster: Cluster) -> None:
    graph = load_workload("resattnet18").graph({"volume": 32, "filters": 4})
    n_convolutions = sum(x.kind == "conv" for x in graph.layers)
    device = replace(cluster.device, kernels={"conv3d": Kernel(launch_s=1.0)})
    known = sweep(graph, replace(cluster, device=device), [Strategy()], global_batch=4)
    assert known["forward_s"][0] == pytest.approx(n_convolutions, rel=0.01)


def test_more_workers_than_cores_slow_each_other_down(
    resnet: LayerGraph, crowded: Cluster
) -> None:
    table = [Strategy(), Strategy(data=2), Strategy(data=3), Strategy(data=6)]
    rows = sweep(resnet, crowded, table, global_batch=[8, 16, 24, 48])
    compute = rows.compute_s / rows.compute_s[0]
    assert compute == pytest.approx([1, 1, 1.5, 3])


def test_half_precision_halves_bytes_and_keeps_a_full_copy(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    full, half = (
        sweep(resnet, cluster, [Strategy()], global_batch=512, precision=p)
        for p in ("float32", "float16")
    )
    assert half["weights_bytes"][0] == full["weights_bytes"][0] / 2
    assert half["activations_bytes"][0] == full["activations_bytes"][0] / 2
    assert half["state_bytes"][0] == 12 * resnet.total("n_parameters")
    assert half.step_s[0] < full.step_s[0]


@pytest.mark.parametrize(("optimizer", "n_states"), [("sgd", 0), ("momentum", 1), ("adamw", 2)])
def test_state_follows_the_optimizer(
    resnet: LayerGraph, cluster: Cluster, optimizer: str, n_states: int
) -> None:
    row = sweep(resnet, cluster, [Strategy()], global_batch=8, optimizer=optimizer)
    assert row["state_bytes"][0] == 4 * n_states * resnet.total("n_parameters")


def test_one_by_one_and_all_at_once_agree(resnet: LayerGraph, cluster: Cluster) -> None:
    table = StrategyTable.product(
        data=[1, 4], pipeline=[1, 2, 4], filter=[1, 2], micro_batches=[1, 4], recompute=[0, 1]
    )
    together = sweep(resnet, cluster, table, global_batch=64)
    for row in range(len(table)):
        alone = sweep(resnet, cluster, [table.strategy(row)], global_batch=64)
        for name, values in together.figures.items():
            assert alone[name][0] == pytest.approx(values[row], rel=1e-9), (name, row)


def test_the_frame_has_a_row_per_strategy_and_words_for_what_limits(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    small = replace(cluster, device=replace(cluster.device, memory_bytes=1e6))
    table = [Strategy(), Strategy(filter=1024)]
    frame = sweep(resnet, small, table, global_batch=8).frame
    assert frame["bottleneck"].tolist() == ["memory", "limit on degree"]
    assert set(frame["bottleneck"]) <= set(BOTTLENECKS)
    assert frame["fits"].tolist() == [False, False]


def test_stages_are_placed_where_the_step_is_shorter(resnet: LayerGraph, cluster: Cluster) -> None:
    """Large activations and small weights: stages are neighbours."""
    row = sweep(resnet, cluster, [Strategy(data=4, pipeline=4, micro_batches=4)], global_batch=512)
    assert row["stage_stride"][0] == 1


def test_scenarios_are_predicted_in_their_order(
    resnet: LayerGraph, chain: LayerGraph, cluster: Cluster
) -> None:
    one = Scenario(graph=resnet, cluster=cluster, strategy=Strategy(data=2), global_batch=8)
    other = replace(one, graph=chain)
    seconds = predict([one, other, one])
    assert seconds[0] == seconds[2] != seconds[1]
    assert predict(one).tolist() == [seconds[0]]


def test_an_impossible_scenario_is_refused_with_the_layer_and_why(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    scenario = Scenario(
        graph=resnet, cluster=cluster, strategy=Strategy(filter=64), global_batch=64
    )
    with pytest.raises(
        InfeasibleError, match=r"at most 10 here.*layer 'output' \(linear\) has 10"
    ):
        predict(scenario)


@pytest.mark.parametrize(
    ("strategy", "batch", "words"),
    [
        (Strategy(channel=64), 64, r"layer 'stage1.block1.conv1' \(conv\) has 16 channels"),
        (Strategy(spatial=2048), 64, r"at most 256 .* has 32 x 32 places"),
        (Strategy(spatial=3), 64, r"must cut every axis into parts .* has 32 x 32 places"),
        (Strategy(tensor=2), 64, r"\(conv\) is neither attention nor"),
        (Strategy(context=2), 64, "no attention layer"),
        (Strategy(expert=2), 64, "no layer has experts"),
        (Strategy(pipeline=64), 64, "parts that may be cut apart"),
        (Strategy(data=128), 64, "128 devices share 64 samples"),
        (Strategy(data=3), 64, "multiple of 3 .* but is 64: take 63 or 66$"),
        (Strategy(data=4, micro_batches=32), 64, r"multiple of 4 \* 32 = 128 .*: take 128$"),
        (Strategy(data=2), 1, "2 devices share 1 sample$"),
        (Strategy(data=2, pipeline=2, shard=3), 64, "must be 0 or 1 in a pipeline"),
        (Strategy(virtual_stages=2), 64, "must be 1 but for interleaved"),
        (
            Strategy(pipeline=4, virtual_stages=2, schedule="interleaved", micro_batches=2),
            64,
            "2 are not of 4",
        ),
    ],
)
def test_rows_that_cannot_be_say_why(
    resnet: LayerGraph, cluster: Cluster, strategy: Strategy, batch: int, words: str
) -> None:
    result = sweep(resnet, cluster, [strategy, Strategy()], global_batch=batch)
    assert not result.is_possible[0] and result.is_possible[1]
    assert re.search(words, result.why(0)), result.why(0)
    assert result.why(1) == ""


def test_what_is_short_of_memory_says_by_how_much(resnet: LayerGraph, cluster: Cluster) -> None:
    result = sweep(resnet, cluster, [Strategy()], global_batch=4096)
    lacks = result.memory_bytes[0] - cluster.device.memory_bytes
    assert result.why(0).startswith(f"{lacks / 2**30:.1f} GiB more")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"global_batch": 0}, InvalidInputError, "positive whole number"),
        ({"global_batch": [8, 8]}, InvalidInputError, "one per strategy"),
        ({"global_batch": 2.5}, InvalidInputError, "positive whole number"),
        ({"optimizer": "adamx"}, UnknownNameError, "Did you mean 'adam"),
        ({"precision": "float61"}, InvalidInputError, "float32, float16"),
        ({"compute": "rooflin"}, UnknownNameError, "Did you mean 'roofline'"),
        ({"compute": "profiled"}, InvalidInputError, "`sample_s` must be positive"),
        ({"gradients": "all_reduc"}, UnknownNameError, "Did you mean 'all_reduce'"),
        ({"overlap": "bes"}, UnknownNameError, "Did you mean 'best'"),
    ],
)
def test_bad_questions_are_refused(
    resnet: LayerGraph, cluster: Cluster, change: dict, error: type, words: str
) -> None:
    keywords = {"global_batch": 8} | change
    with pytest.raises(error, match=words):
        sweep(resnet, cluster, [Strategy()], **keywords)


def test_no_strategy_may_need_more_devices_than_there_are(
    resnet: LayerGraph, cluster: Cluster
) -> None:
    few = replace(cluster, n_devices=8)
    node = replace(cluster, levels=cluster.levels[:1])  # of four, and no number is given
    for here, n in ((few, 8), (node, 4)):
        with pytest.raises(
            InvalidInputError, match=rf"has \({n}\), but one needs 16. Try: --devices 1..{n}$"
        ):
            sweep(resnet, here, [Strategy(data=16)], global_batch=64)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_one_device_is_as_efficient_as_one_device(
    resnet: LayerGraph, crowded: Cluster, optimizer: str
) -> None:
    slow = replace(crowded, slowdowns=(1.5, 2.0))
    for here in (crowded, slow):
        rows = sweep(
            resnet, here, [Strategy(), Strategy(data=2)], global_batch=8, optimizer=optimizer
        )
        assert rows["efficiency"][0] == pytest.approx(1.0, rel=1e-12)
        assert rows["efficiency"][1] < 1
