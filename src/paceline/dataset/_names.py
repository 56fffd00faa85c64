"""What the name of a column says: whether it counts devices, a batch or a parallel degree."""

from __future__ import annotations

import re
from typing import Literal

Count = Literal["devices", "batch", "accumulation", "degree"]
BatchOf = Literal["global_batch", "device_batch", "unknown"]

DEVICES = {"device", "gpu", "tpu", "npu", "accelerator", "chip", "worker", "rank", "replica"}
DEVICES |= {"process", "proc"}
NODES = {"node", "host", "machine", "server"}
_COUNTED = DEVICES | NODES

_MARKERS = {"n", "num", "number", "nb", "nr", "count", "total"}
_FILLERS = _MARKERS | {"of", "per", "the", "used", "all", "world", "size"}

_BATCHES = {"batch", "batches", "minibatch", "microbatch", "microbatches"}
_BATCHES |= {"bs", "bsz", "gbs", "mbs", "gbsz", "mbsz", "lbs", "lbsz"}
_GLOBAL = {"global", "total", "effective", "gbs", "gbsz"}
_LOCAL = {"local", "micro", "microbatch", "mbs", "mbsz", "lbs", "lbsz"}
_BATCH_FILLERS = _FILLERS | _GLOBAL | _LOCAL | _COUNTED | {"mini", "train", "training"}
_BATCH_FILLERS |= {"samples", "sequences", "images", "tokens", "examples"}

_ACCUMULATIONS = {"accum", "accumulation", "accumulate", "accumulated"}
_GRADIENTS = {"grad", "grads", "gradient", "gradients"}
_ACCUMULATION_FILLERS = _FILLERS | _GRADIENTS | {"step", "steps", "factor"}

_DEGREES = {"tp", "pp", "dp", "cp", "ep", "vp", "sp", "vpp", "etp"}
_AXES = {"data", "tensor", "pipeline", "pipe", "expert", "context", "sequence", "model"}
_AXES |= {"spatial", "filter", "channel", "sharded", "shard", "virtual", "hybrid"}
_DEGREE_WORDS = {"degree", "degrees", "parallel", "parallelism", "stages"}

# Degrees that divide the devices into groups which work on the same samples.
_MODEL_DEGREES = {"tp", "pp", "cp"}
_MODEL_AXES = {"tensor": "tp", "pipeline": "pp", "pipe": "pp", "context": "cp"}


def name_tokens(name: str) -> tuple[str, ...]:
    """Split a column's name into lower-case words.

    Examples
    --------
    >>> name_tokens("numGPUs"), name_tokens("ngpus"), name_tokens("batch-size (per GPU)")
    (('num', 'gpus'), ('n', 'gpus'), ('batch', 'size', 'per', 'gpu'))
    """
    text = name.replace("#", " n ").replace("/", " per ")
    text = re.sub(r"[A-Z]{2,}s?(?![a-z])", lambda m: f" {m[0].lower()} ", text)
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
    words = re.findall(r"[a-z]+|\d+", text)
    return tuple(token for word in words for token in _unglue(word))


def counts_what(name: str) -> Count | None:
    """Return what a column of numbers with this name counts, if it is something extrinsic.

    Examples
    --------
    >>> counts_what("n_gpus"), counts_what("local_batch"), counts_what("tp")
    ('devices', 'batch', 'degree')
    >>> counts_what("n_layers"), counts_what("batch_norm"), counts_what("gpu_memory_gb")
    (None, None, None)
    """
    tokens = set(name_tokens(name))
    if _is_batch(tokens):
        return "batch"
    if _is_accumulation(tokens):
        return "accumulation"
    if _is_degree(tokens):
        return "degree"
    return "devices" if _counts_devices(tokens) else None


def batch_of(name: str) -> BatchOf | None:
    """Return whose batch a column's name speaks of; None when it is no size of a batch."""
    tokens = set(name_tokens(name))
    # "n_micro_batches" counts batches; it is not the size of one.
    if not _is_batch(tokens) or tokens & {"batches", "microbatches"}:
        return None
    if "per" in tokens and tokens & _COUNTED:
        return "device_batch"
    if tokens & _GLOBAL:
        return "global_batch"
    return "device_batch" if tokens & (_LOCAL | DEVICES) else "unknown"


def counts_all_devices(name: str) -> bool:
    """Return whether a column's name counts all devices of a run, not nodes or parts of it."""
    tokens = set(name_tokens(name))
    if counts_what(name) != "devices" or "per" in tokens:
        return False
    return tokens == {"world", "size"} or bool({_singular(t) for t in tokens} & DEVICES)


def counts_devices_plainly(name: str) -> bool:
    """Return whether a column counts devices or nodes and not workers, which may load data."""
    return counts_what(name) == "devices" and not {"worker", "workers"} & {*name_tokens(name)}


def counts_nodes(name: str) -> bool:
    """Return whether a column's name counts the nodes of a run."""
    tokens = set(name_tokens(name))
    counted = {_singular(token) for token in tokens}
    is_of_nodes = bool(counted & NODES) and not counted & DEVICES
    return counts_what(name) == "devices" and is_of_nodes and "per" not in tokens


def counts_devices_of_a_node(name: str) -> bool:
    """Return whether a column's name counts the devices of one node."""
    tokens = set(name_tokens(name))
    counted = {_singular(token) for token in tokens}
    is_of_both = bool(counted & NODES) and bool(counted & DEVICES)
    return counts_what(name) == "devices" and is_of_both and "per" in tokens


def model_degree(name: str) -> str | None:
    """Return which degree that shares the same samples (tp, pp, cp) a column holds."""
    if counts_what(name) != "degree":
        return None
    tokens = set(name_tokens(name))
    if "virtual" in tokens:
        return None
    short = (tokens & _MODEL_DEGREES) | {_MODEL_AXES[t] for t in tokens if t in _MODEL_AXES}
    return min(short) if short else None


def _is_batch(tokens: set[str]) -> bool:
    rest = {_singular(token) if _singular(token) in _COUNTED else token for token in tokens}
    return bool(tokens & _BATCHES) and rest <= _BATCHES | _BATCH_FILLERS


def _is_accumulation(tokens: set[str]) -> bool:
    # "acc" alone is an accuracy.
    if tokens == {"gas"}:  # gradient accumulation steps
        return True
    has_word = bool(tokens & _ACCUMULATIONS) or ("acc" in tokens and bool(tokens & _GRADIENTS))
    return has_word and tokens <= _ACCUMULATIONS | _ACCUMULATION_FILLERS | {"acc"}


def _is_degree(tokens: set[str]) -> bool:
    if tokens & _DEGREES:
        return tokens <= _DEGREES | _DEGREE_WORDS | _FILLERS
    named = bool(tokens & _AXES) and bool(tokens & _DEGREE_WORDS)
    return named and tokens <= _AXES | _DEGREE_WORDS | _FILLERS


def _counts_devices(tokens: set[str]) -> bool:
    if tokens == {"world", "size"}:
        return True
    counted = {token for token in tokens if _singular(token) in _COUNTED}
    is_count = bool(tokens & _MARKERS) or any(token not in _COUNTED for token in counted)
    return bool(counted) and is_count and tokens - counted <= _FILLERS


def _singular(token: str) -> str:
    if token in ("processes", "procs"):
        return "process"
    return token.removesuffix("s") if token != "process" else token


def _unglue(word: str) -> tuple[str, ...]:
    """Split "ngpus" and "batchsize", which people write as one word."""
    if word == "batchsize":
        return ("batch", "size")
    for marker in ("num", "n"):
        rest = word.removeprefix(marker)
        if rest != word and _singular(rest) in _COUNTED:
            return (marker, rest)
    return (word,)
