"""Which columns of other people's tables say what: names of shapes, batches and strategies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

# how a step is divided and trained, by any of these names; of several the first is taken
STRATEGY_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "n_devices": (
            *("n_devices", "n_gpus", "n_workers", "num_gpus", "num_devices", "num_workers"),
            *("gpus", "devices", "workers", "world_size"),
        ),
        "data": ("data", "dp", "data_parallel", "data_parallel_size"),
        "tensor": (
            *("tensor", "tp", "tensor_parallel", "tensor_parallel_size"),
            "tensor_model_parallel_size",
        ),
        "pipeline": (
            *("pipeline", "pp", "pipeline_parallel", "pipeline_parallel_size"),
            "pipeline_model_parallel_size",
        ),
        "context": ("context", "cp", "context_parallel", "context_parallel_size"),
        "expert": (
            *("expert", "ep", "expert_parallel", "expert_parallel_size"),
            "expert_model_parallel_size",
        ),
        "spatial": ("spatial",),
        "filter": ("filter",),
        "channel": ("channel",),
        "shard": ("shard", "zero", "zero_stage", "sharding", "sharding_strategy", "fsdp"),
        "virtual_stages": ("virtual_stages", "vp", "vpp", "virtual_pipeline"),
        "schedule": ("schedule", "pipeline_schedule"),
        "recompute": (
            *("recompute", "recomputation", "act_ckpt", "activation_checkpointing"),
            *("gradient_checkpointing", "checkpointing"),
        ),
        "micro_batches": (
            *("micro_batches", "n_micro_batches", "num_micro_batches", "num_microbatches"),
            *("grad_accum", "gradient_accumulation", "gradient_accumulation_steps"),
            *("grad_accumulation", "accumulation", "accumulation_steps"),
        ),
        "micro_batch": (
            *("micro_batch", "micro_batch_size", "microbatch", "microbatch_size", "mbs"),
        ),
        "global_batch": ("global_batch", "global_batch_size", "gbs"),
        "device_batch": (
            *("device_batch", "device_batch_size", "local_batch", "local_batch_size"),
            *("per_device_batch", "per_device_batch_size", "batch_per_device"),
            *("per_gpu_batch", "batch_per_gpu", "batch_size_per_gpu", "batch_size_per_device"),
        ),
        "precision": ("precision", "dtype"),
        "optimizer": ("optimizer",),
    }
)
# what a Transformer is
SHAPE_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "width": (
            *("width", "d_model", "hidden", "hidden_size", "hidden_dim", "n_embd"),
            *("dim", "model_dim", "embed_dim"),
        ),
        "layers": ("layers", "n_layers", "num_layers", "n_layer", "num_hidden_layers", "depth"),
        "heads": ("heads", "n_heads", "num_heads", "n_head", "num_attention_heads"),
        "key_heads": (
            *("key_heads", "n_kv_heads", "kv_heads", "num_kv_heads", "num_key_value_heads"),
            "num_query_groups",
        ),
        "inner": ("inner", "d_ff", "ffn", "ffn_size", "ffn_hidden_size", "intermediate_size"),
        "length": (
            *("length", "seq_len", "sequence_length", "seq_length", "seqlen", "seq"),
            *("context_length", "max_seq_len"),
        ),
        "vocabulary": ("vocabulary", "vocab", "vocab_size", "vocabulary_size"),
        "experts": ("experts", "n_experts", "num_experts"),
        "chosen": ("chosen", "top_k", "experts_per_token", "moe_top_k"),
        "size": (
            *("n_params", "n_parameters", "num_params", "num_parameters", "params"),
            *("parameters", "n_params_b", "params_b", "model_size", "model_size_b"),
            *("size_b", "parameters_b"),
        ),
        "gflop_per_token": ("gflop_per_token", "model_gflop_per_token"),
    }
)
LABELS = ("shard", "schedule", "recompute", "precision", "optimizer", "size")  # may be text
BATCHES = ("global_batch", "device_batch", "micro_batch")

_PRECISIONS = (  # in this order: bf16 has an f16 in it
    ("fp4|float4|int4|nf4", "float8"),  # the narrowest that is known
    ("fp8|float8|e4m3|e5m2", "float8"),
    ("bf16|bfloat16", "bfloat16"),
    ("fp16|float16|half|mixed|amp", "float16"),
    ("tf32", "tf32"),
    ("fp64|float64|double", "float64"),
    ("fp32|float32|full|single|^32$", "float32"),
)
_NARROWER = ("float8", "bfloat16", "float16", "tf32", "float32", "float64")  # else the next
_SHARDS = {"no": 0, "none": 0, "ddp": 0, "full": 3, "hybrid": 3, "fsdp": 3, "shard_grad": 2}
_OPTIMIZERS = {"sgd": "sgd", "momentum": "momentum", "rmsprop": "momentum", "adagrad": "momentum"}
_NO = ("0", "0.0", "false", "no", "none", "off", "")


def plain_name(name: object) -> str:
    """Return a column's name as `STRATEGY_NAMES` and `SHAPE_NAMES` spell it."""
    return re.sub(r"[\s\-./]+", "_", str(name).strip().lower())


def find_columns(columns: Iterable[Any], roles: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the column that has each role, where one does."""
    by_name = {plain_name(name): str(name) for name in reversed(list(columns))}
    found = {}
    for role, names in roles.items():
        present = [by_name[name] for name in names if name in by_name]
        if present:
            found[role] = present[0]
    return found


def read_whole(value: Any) -> int:
    """Return a positive whole number."""
    number = float(value)
    if not (number >= 1 and abs(number - round(number)) < 1e-6):
        raise ValueError("a positive whole number")
    return round(number)


def read_shard(value: Any) -> int:
    """Return how much replicas share out: 0 to 3 of a number, a ZeRO stage or FSDP's name."""
    text = plain_name(value)
    stage = re.fullmatch(r"(?:zero_?|stage_?)*([0-3])(?:_0)?", text)
    if stage:
        return int(stage[1])
    found = [shard for name, shard in _SHARDS.items() if text.startswith(name)]
    if not found:
        raise ValueError("0, 1, 2, 3, zero1, FULL_SHARD, SHARD_GRAD_OP or NO_SHARD")
    return found[-1]


def read_fsdp(value: Any) -> int:
    """Return the same of a mark, or of the size of the group that shares."""
    return 0 if plain_name(value) in (*_NO, "0_0") else 3


def read_recompute(value: Any) -> int:
    """Return whether activations are computed again."""
    return int(plain_name(value) not in (*_NO, "0_0"))


def read_precision(value: Any, known: Iterable[str]) -> str:
    """Return the precision that a name stands for, or the next wider that a device has."""
    text, has = plain_name(value), set(known)
    found = [name for pattern, name in _PRECISIONS if re.search(pattern, text)]
    if not found:
        raise ValueError(f"one of {', '.join(_NARROWER)}, or bf16, fp8, amp …")
    wider = _NARROWER[_NARROWER.index(found[0]) :]
    return next((name for name in wider if name in has), next(iter(has)))


def read_optimizer(value: Any) -> str:
    """Return the optimizer with as much state as the one named; Adam's where it is not known."""
    return _OPTIMIZERS.get(plain_name(value), "adam")


def read_size(value: Any) -> float:
    """Return a number of parameters; below ten thousand it counts in billions."""
    match = re.fullmatch(r"([0-9.]+(?:e[+-]?\d+)?)\s*([kmbt]?)", str(value).strip().lower())
    if not match or float(match[1]) <= 0:
        raise ValueError("a positive number of parameters, such as 7000000000, 7 or 7B")
    number, unit = float(match[1]), match[2]
    if unit:
        return number * {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}[unit]
    return number * (1e9 if number < 1e4 else 1.0)


def names_in_words(roles: Mapping[str, tuple[str, ...]], *wanted: str) -> str:
    """Return the names that are understood for some roles, a few of each."""
    return "; ".join(f"{role} ({', '.join(roles[role][:4])})" for role in wanted)
