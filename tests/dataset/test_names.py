"""What names of columns say."""

from __future__ import annotations

import pytest

from paceline.dataset._names import batch_of, counts_all_devices, counts_what, model_degree

DEVICES = [
    "n_gpus",
    "n_devices",
    "gpus",
    "GPUs",
    "world_size",
    "num_nodes",
    "n_ranks",
    "n_workers",
    "ngpus",
    "nnodes",
    "numGPUs",
    "gpu_count",
    "n_gpu",
    "gpus_per_node",
    "nproc_per_node",
    "total_gpus",
    "number_of_gpus",
    "num_processes",
    "nodes",
    "workers",
    "#gpus",
    "n_hosts",
    "n_replicas",
]

BATCHES = [
    "local_bsz",
    "bsz",
    "mbsz",
    "local_batch",
    "batch_size",
    "global_batch",
    "micro_batch",
    "device_batch",
    "batch",
    "BatchSize",
    "batchsize",
    "bs",
    "gbs",
    "mbs",
    "per_device_train_batch_size",
    "batch_size_per_gpu",
    "n_micro_batches",
    "mini_batch",
    "global-batch-size",
]

ACCUMULATIONS = [
    "gas",
    "grad_accum",
    "gradient_accumulation_steps",
    "accum_steps",
    "grad_acc",
    "n_accum",
]

DEGREES = [
    "tp",
    "pp",
    "dp",
    "cp",
    "ep",
    "vp",
    "TP",
    "tp_size",
    "pp_degree",
    "data_degree",
    "tensor_degree",
    "pipeline_degree",
    "expert_degree",
    "context_degree",
    "tensor_parallel_size",
    "pipeline_model_parallel_size",
    "data_parallel",
]

NOT_COUNTS = [
    "n_layers",
    "n_params",
    "n_heads",
    "n",
    "n_classes",
    "batch_norm",
    "batch_time",
    "batchnorm",
    "gpu",
    "gpu_mem",
    "gpu_memory_gb",
    "gpu_clock_mhz",
    "device_name",
    "node_id",
    "rank",
    "lora_rank",
    "acc",
    "accuracy",
    "accum_dtype",
    "degree",
    "polynomial_degree",
    "n_steps",
    "seq_len",
    "fsdp",
    "model_size",
    "size_mb",
    "power_limit_w",
    "worker_threads",
    "processor",
    "parallel_time",
    "model",
    "data",
    "pipeline",
    "dropout",
    "depth",
    "hops",
    "tpot",
    "epochs",
    "gas_price",
    "time_per_batch",
]


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        *((name, "devices") for name in DEVICES),
        *((name, "batch") for name in BATCHES),
        *((name, "accumulation") for name in ACCUMULATIONS),
        *((name, "degree") for name in DEGREES),
        *((name, None) for name in NOT_COUNTS),
    ],
)
def test_a_name_says_what_it_counts(name: str, counted: str | None) -> None:
    assert counts_what(name) == counted


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("global_batch", "global_batch"),
        ("total_batch_size", "global_batch"),
        ("effective_batch", "global_batch"),
        ("gbs", "global_batch"),
        ("gbsz", "global_batch"),
        ("local_bsz", "device_batch"),
        ("lbs", "device_batch"),
        ("bsz", "unknown"),
        ("device_batch", "device_batch"),
        ("local_batch", "device_batch"),
        ("micro_batch", "device_batch"),
        ("per_device_batch", "device_batch"),
        ("batch size (per GPU)", "device_batch"),
        ("batch", "unknown"),
        ("batch_size", "unknown"),
        ("n_micro_batches", None),
        ("batch_norm", None),
        ("n_devices", None),
    ],
)
def test_a_name_says_whose_batch_it_is(name: str, batch: str | None) -> None:
    assert batch_of(name) == batch


@pytest.mark.parametrize("name", ["n_gpus", "n_devices", "world_size", "n_ranks", "n_workers"])
def test_some_names_count_all_devices(name: str) -> None:
    assert counts_all_devices(name)


@pytest.mark.parametrize("name", ["num_nodes", "gpus_per_node", "device_batch", "tp", "n_layers"])
def test_other_names_do_not_count_all_devices(name: str) -> None:
    assert not counts_all_devices(name)


@pytest.mark.parametrize(
    ("name", "degree"),
    [
        ("tp", "tp"),
        ("tensor_parallel_size", "tp"),
        ("pipeline_degree", "pp"),
        ("cp", "cp"),
        ("virtual_pipeline_degree", None),
        ("dp", None),
        ("vp", None),
        ("n_gpus", None),
    ],
)
def test_a_name_says_which_degree_shares_samples(name: str, degree: str | None) -> None:
    assert model_degree(name) == degree
