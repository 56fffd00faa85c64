"""What a throughput is of, and which columns turn it into the time of a step."""

from __future__ import annotations

import pandas as pd
import pytest

from paceline.dataset import Dataset, counts_all_devices, global_batch_columns
from paceline.dataset._throughput import device_columns
from paceline.errors import InvalidInputError


def read(rate: str, columns: dict[str, int]) -> Dataset:
    rows = {name: [value] * 3 for name, value in columns.items()}
    frame = pd.DataFrame({"x": [1, 2, 3], **rows, rate: [100.0, 200.0, 400.0]})
    return Dataset.from_frame(frame, throughput=rate)


@pytest.mark.parametrize(
    ("rate", "columns", "work", "formula"),
    [
        (
            "tokens_per_sec",
            {"micro_batch": 8, "n_gpus": 4, "seq_len": 512},
            8 * 4 * 512,
            "`micro_batch` × `n_gpus` × `seq_len`",
        ),
        (
            "tok/s",
            {"global_batch": 8, "Sequence Length": 128, "max_seq_len": 9},
            8 * 128,
            "`global_batch` × `Sequence Length`",
        ),
        ("tokens/s", {"global_batch_tokens": 512, "seq_len": 64}, 512, "`global_batch_tokens`"),
        (
            "samples/s",
            {"batch_tokens": 512, "seq_len": 64},
            8,
            "`batch_tokens` / `seq_len`",
        ),
        ("it/s", {"global_batch": 8}, 1, "1"),
        ("samples_per_sec_per_gpu", {"device_batch": 8, "n_gpus": 4}, 8, "`device_batch`"),
        ("samples/s/gpu", {"global_batch": 8, "n_gpus": 4}, 2, "`global_batch` / `n_gpus`"),
        (
            "samples/s/gpu",
            {"global_batch": 8, "nodes": 2, "gpus_per_node": 2},
            2,
            "`global_batch` / `nodes` / `gpus_per_node`",
        ),
        ("samples/s/node", {"global_batch": 8, "n_nodes": 4}, 2, "`global_batch` / `n_nodes`"),
        (
            "images/sec",
            {"nodes": 2, "gpus_per_node": 4, "grad_accum": 3, "micro_batch": 5},
            120,
            "`micro_batch` × `grad_accum` × `nodes` × `gpus_per_node`",
        ),
    ],
)
def test_a_rate_is_read_as_its_name_says(
    rate: str, columns: dict[str, int], work: float, formula: str
) -> None:
    dataset = read(rate, columns)
    assert list(dataset.y) == pytest.approx([work / 100, work / 200, work / 400])
    assert f"The time of a step is {formula} / `{rate}`." in dataset.notes


def test_guesses_about_a_rate_are_noted() -> None:
    dataset = read("tok/s/gpu", {"nodes": 2, "gpus/node": 4, "device_batch": 5, "seqlen": 64})
    assert "`nodes` × `gpus/node` is taken as the number of devices." in dataset.notes
    assert "`seqlen` is taken as the tokens of a sample, which `tok/s/gpu` needs." in dataset.notes
    assert "`tok/s/gpu` is taken as the rate of one device, by its name." in dataset.notes
    assert "`tok/s/gpu` is taken per second, by its name." in dataset.notes


def test_a_rate_per_minute_is_read_so() -> None:
    frame = pd.DataFrame({"global_batch": [8, 16, 32], "images/min": [60.0, 60.0, 60.0]})
    assert list(Dataset.from_frame(frame, throughput="images/min").y) == [8.0, 16.0, 32.0]


@pytest.mark.parametrize(
    ("rate", "columns", "words"),
    [
        ("tokens_per_sec", {"global_batch": 8, "seq": 4}, "without a column `seq_len`; add it"),
        ("samples/s", {"batch_tokens": 8}, "A rate of samples and a batch of tokens need"),
        ("samples/s/gpu", {"global_batch": 8}, "without a column `n_devices`; add it"),
        ("samples/s/node", {"global_batch": 8}, "without a column `n_nodes`; add it"),
    ],
)
def test_a_rate_that_gives_no_time_is_refused(
    rate: str, columns: dict[str, int], words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        read(rate, columns)


def test_nodes_times_devices_of_a_node_are_the_devices() -> None:
    assert device_columns(["num_nodes", "gpus_per_node", "x"]) == ["num_nodes", "gpus_per_node"]
    assert device_columns(["nodes", "nproc_per_node", "n_gpus"]) == ["n_gpus"]
    assert device_columns(["nodes", "x"]) == device_columns(["gpus_per_node"]) == []
    assert not counts_all_devices("gpus/node")


def test_costs_of_runs_still_want_one_number_of_devices() -> None:
    assert global_batch_columns(["nodes", "gpus_per_node", "device_batch"]) == ([], [])
