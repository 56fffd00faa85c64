"""What the oracle says of rows: FLOP, traffic, memory and time as columns, by any name."""

import numpy as np
import pandas as pd
import pytest

from paceline.clusters import load_cluster
from paceline.errors import InvalidInputError, UnknownNameError
from paceline.oracle import (
    ORACLE_FEATURES,
    SHAPE_NAMES,
    STRATEGY_NAMES,
    further_columns,
    oracle_features,
    replaced_columns,
    roles_of,
    sweep,
)
from paceline.scenario import Strategy
from paceline.workloads import load_workload

ABCI, A100 = load_cluster("abci"), load_cluster("dgx-a100")
GPT = {"d_model": 1024, "n_layers": 24, "n_heads": 16, "seq_len": 1024, "vocab": 50257}


def rows(**columns: object) -> pd.DataFrame:
    n = max(np.size(value) for value in columns.values())
    return pd.DataFrame({k: np.broadcast_to(np.array(v), n) for k, v in columns.items()})


def transformers(**columns: object) -> pd.DataFrame:
    return rows(**{**GPT, "n_gpus": 8, "micro_batch": 2, "grad_accum": 4, **columns})


def test_time_traffic_and_memory_are_those_of_a_sweep() -> None:
    trials = rows(n_devices=[1, 2, 16], global_batch=64)
    found = oracle_features(trials, "resnet50", cluster=ABCI)
    said = sweep(
        load_workload("resnet50").graph(),
        ABCI,
        [Strategy(data=n) for n in (1, 2, 16)],
        global_batch=64,
    )
    assert list(found.columns) == list(ORACLE_FEATURES)
    assert found["oracle_step_s"].tolist() == said.step_s.tolist()
    assert found["device_memory_bytes"].tolist() == said.memory_bytes.tolist()
    payload = said.figures["exchange_payload_bytes"]
    assert payload[0] == 0 and found["exchange_bytes"][0] == 1024
    assert found["exchange_bytes"][1:].tolist() == payload[1:].tolist()


def test_devices_share_the_flop_of_a_step() -> None:
    graph = load_workload("gpt2-medium").graph()
    one_sample = graph.total("forward_flop") + graph.total("backward_flop")
    found = oracle_features(transformers(tp=[1, 1, 2], pp=[1, 4, 1]), cluster=A100)
    batch = [8 * 8, 2 * 8, 4 * 8]
    whole = [one_sample * b / 8 for b in batch]
    assert found["device_flop"][:2].tolist() == pytest.approx(whole[:2])
    # norms and the like are not divided by tensor parallelism
    assert whole[2] <= found["device_flop"][2] < 1.05 * whole[2]


def test_a_transformer_by_its_shape_is_the_workload_of_that_shape() -> None:
    by_shape = oracle_features(transformers(), cluster=A100)
    by_name = oracle_features(
        rows(n_devices=8, micro_batch=2, micro_batches=4), "gpt2-medium", cluster=A100
    )
    pd.testing.assert_frame_equal(by_shape, by_name)


def test_names_of_other_tools_say_the_same() -> None:
    usual = oracle_features(transformers(tp=2, pp=2), cluster=A100)
    other = rows(
        **{
            "Hidden-Size": 1024,
            "num_layers": 24,
            "num_attention_heads": 16,
            "sequence_length": 1024,
            "vocab_size": 50257,
            "world_size": 8,
            "tensor_model_parallel_size": 2,
            "pipeline_model_parallel_size": 2,
            "mbs": 2,
            "gbs": 16,
        }
    )
    pd.testing.assert_frame_equal(oracle_features(other, cluster=A100), usual)


def test_every_name_is_of_one_role() -> None:
    names = [n for roles in (STRATEGY_NAMES, SHAPE_NAMES) for r in roles.values() for n in r]
    assert len(names) == len(set(names))


def test_without_degrees_all_devices_are_replicas() -> None:
    plain = oracle_features(transformers(), cluster=A100)
    told = oracle_features(transformers(dp=8, tp=1), cluster=A100)
    pd.testing.assert_frame_equal(plain, told)


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ({"tp": [1, 2]}, "layerwise_bytes"),
        ({"pp": [1, 2]}, "transfer_bytes"),
        ({"pp": [1, 2]}, "bubble_factor"),
        ({"zero": [0, 3]}, "exchange_bytes"),
        ({"act_ckpt": [0, 1]}, "device_flop"),
        ({"seq_len": [1024, 2048]}, "moved_bytes"),
        ({"n_gpus": [1, 8]}, "exchange_bytes"),
        ({"precision": ["bf16", "fp32"]}, "oracle_step_s"),
        ({"sharding": ["FULL_SHARD", "NO_SHARD"]}, "device_memory_bytes"),
        ({"n_params": ["350m", "1.3b"], "d_model": None}, "device_flop"),
    ],
)
def test_columns_say_what_a_strategy_costs(columns: dict, more: str) -> None:
    table = transformers(**{k: v for k, v in columns.items() if v is not None})
    table = table.drop(columns=[k for k, v in columns.items() if v is None])
    if "d_model" not in table:
        table = table.drop(columns="n_heads")
    found = oracle_features(table, cluster=A100)
    assert found[more][1] > found[more][0]


def test_a_size_alone_gives_a_network_of_about_that_size() -> None:
    for size in (1.3e9, 7e9, 70e9):
        table = rows(n_params=size, n_gpus=8, micro_batch=1, seq_len=512)
        flop = oracle_features(table, cluster=A100)["device_flop"][0]
        assert flop == pytest.approx(6 * size * 512, rel=0.2)


def test_billions_flop_per_token_and_counts_are_sizes() -> None:
    found = [
        oracle_features(rows(n_gpus=8, micro_batch=1, **{name: value}), cluster=A100)
        for name, value in (
            ("n_params", 7e9),
            ("model_size", 7),
            ("params_b", 7.0),
            ("model_size", "7B"),
            ("model_gflop_per_token", 42.0),
        )
    ]
    for other in found[1:]:
        pd.testing.assert_frame_equal(other, found[0])


def test_a_guess_allows_the_strategy_of_its_row() -> None:
    table = rows(
        n_params=[1e9, 8e9, 400e9],
        n_gpus=[24, 64, 1024],
        tp=[3, 8, 8],
        pp=[8, 4, 16],
        vp=[4, 8, 8],
        micro_batch=1,
        grad_accum=32,
    )
    assert np.isfinite(oracle_features(table, cluster=A100).to_numpy()).all()


def test_experts_divide_a_mixture_and_are_replicas_elsewhere() -> None:
    mixture = transformers(ep=[1, 4], experts=8, top_k=2)
    found = oracle_features(mixture, cluster=A100)
    assert found["layerwise_bytes"][0] == 1024 < found["layerwise_bytes"][1]
    dense = oracle_features(transformers(ep=[1, 4]), cluster=A100)
    assert dense["oracle_step_s"][0] == dense["oracle_step_s"][1]


def test_the_fullest_replica_counts_where_batches_are_uneven() -> None:
    found = oracle_features(rows(n_devices=3, global_batch=[64, 66]), "lenet5", cluster=ABCI)
    assert found.iloc[0].tolist() == found.iloc[1].tolist()


def test_rows_keep_their_index_and_order() -> None:
    trials = rows(n_devices=[4, 2, 4], device_batch=8).set_axis([7, 3, 5])
    found = oracle_features(trials, "lenet5", cluster=ABCI)
    assert found.index.tolist() == [7, 3, 5]
    assert found["oracle_step_s"][7] == found["oracle_step_s"][5] != found["oracle_step_s"][3]


def test_several_workloads_are_told_by_their_column() -> None:
    trials = rows(workload=["mlp", "lenet5"], device_batch=8, n_devices=2)
    found = oracle_features(trials, cluster=ABCI)
    for i, name in enumerate(trials["workload"]):
        alone = oracle_features(trials.drop(columns="workload"), name, cluster=ABCI)
        assert found["device_flop"][i] == alone["device_flop"][i]


def test_another_cluster_is_another_answer() -> None:
    trials = rows(n_devices=8, device_batch=32)
    slow, fast = (
        oracle_features(trials, "resnet50", cluster=c)["oracle_step_s"][0] for c in (ABCI, A100)
    )
    assert fast < slow


@pytest.mark.parametrize(
    ("table", "workload", "message"),
    [
        (
            rows(n_devices=[2, 8], tp=[1, 3], global_batch=8),
            "gpt2",
            r"row 2 .*8 devices.*tensor 3",
        ),
        (rows(n_devices=[8, 8], tp=5, dp=1, global_batch=8), "gpt2", "row 1 .*tensor 5 x data 1"),
        (
            rows(n_devices=[10, 10], tp=5, global_batch=8),
            "gpt2",
            "row 1 .*`tensor` must divide 12",
        ),
        (rows(n_devices=[2, 4], global_batch=[8, 2]), "lenet5", "row 2 .*4 replicas share 2"),
        (rows(n_devices=2), "lenet5", "samples of a step.*global_batch, .*device_batch"),
        (rows(n_devices=2, global_batch=4), "", "--workload.*d_model.*n_params"),
        (rows(n_devices=2, batch=4), "lenet5", "micro_batch.*Rename one"),
        (rows(n_devices=[2, 1.5], global_batch=4), "lenet5", "row 2 .*`n_devices` .*is 1.5"),
        (rows(n_devices=[2, "two"], global_batch=4), "lenet5", "row 2 .*a number, but is two"),
        (rows(precision=["bf16", "thin"], global_batch=4), "lenet5", "row 2 .*is thin"),
        (rows(zero=["zero1", "zero9"], global_batch=4), "lenet5", "row 2 .*is zero9"),
        (rows(kernel_size=[3, 99], global_batch=4), "lenet5", "row 2 is not"),
    ],
)
def test_what_cannot_be_worked_out_is_said_with_its_row(
    table: pd.DataFrame, workload: str, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        oracle_features(table, workload, cluster=ABCI)


def test_rows_are_counted_as_in_the_table_that_was_given() -> None:
    table = rows(n_devices=[2, 2, 2, 8], tp=[1, 1, 1, 3], global_batch=8)
    for _ in range(2):  # the second time the first rows are remembered
        with pytest.raises(InvalidInputError, match="row 4"):
            oracle_features(table, "gpt2", cluster=ABCI)


def test_an_unknown_workload_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'lenet5'"):
        oracle_features(rows(global_batch=8), "lenet", cluster=ABCI)


def test_roles_leave_the_rest_alone() -> None:
    table = transformers(tp=2, machine="x", loss=0.1)
    roles = roles_of(table)
    assert roles.network["width"] == "d_model" and roles.strategy["tensor"] == "tp"
    assert not {"machine", "loss"} & set(roles.columns)


def test_columns_besides_the_parameters_are_read_where_they_say_something_new() -> None:
    known = transformers(n_gpus=[4, 8]).drop(columns="seq_len")
    others = rows(seq_len=512, n_params=[1, 2], gbs=[32, 64], dp=[4, 8], note="x")
    assert further_columns(known, others) == ("seq_len",)


def test_shapes_and_degrees_act_through_the_columns_but_precision_does_more() -> None:
    table = transformers(tp=2, precision="bf16", machine="x")
    replaced = replaced_columns(table)
    assert {"d_model", "seq_len"} <= set(replaced)
    assert not {"precision", "machine"} & set(replaced)
