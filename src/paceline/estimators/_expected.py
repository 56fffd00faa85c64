"""Which powers the names of parameters let one expect.

A step computes its samples one after another and divides them among devices: its time grows with
the batch, the length of a sequence and the FLOP of a sample, and falls with the degrees that
share them out. Few measurements of few networks cannot tell such powers apart where they were
changed together; what the names say then decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from paceline.dataset import batch_of, counts_all_devices, counts_what, model_degree, name_tokens

_WORK = {"flop", "flops", "mac", "macs"}
_WORK = {unit + word for unit in ("", "k", "m", "g", "t", "p") for word in _WORK}
_SPEED = {"peak", "second", "seconds", "sec", "s", "device", "gpu", "max"}
_LENGTH = {"seq", "seqlen", "sequence"}
_LENGTH_WORDS = _LENGTH | {"len", "length", "size", "n", "num", "max", "tokens", "token"}
_BYTES = {"byte", "bytes", "kb", "mb", "gb", "kib", "mib", "gib"}
_BYTES_WORDS = _BYTES | {"size", "message", "msg", "payload", "buffer", "n", "num", "in"}
_SIZE = {"param", "params", "parameter", "parameters"}
_SIZE_WORDS = _SIZE | {"n", "num", "number", "of", "total", "count", "k", "m", "b", "model"}


def expected_powers(names: Iterable[str]) -> dict[str, float]:
    """Return the power that each of these numeric parameters should have; others are unknown.

    Examples
    --------
    >>> expected_powers(["micro_batch", "seq_len", "tp", "n_gpus", "dropout"])
    {'micro_batch': 1.0, 'seq_len': 1.0, 'tp': -1.0, 'n_gpus': 0.0}
    >>> expected_powers(["global_batch", "n_gpus", "tp"])
    {'global_batch': 1.0, 'n_gpus': -1.0, 'tp': 0.0}
    """
    names = list(names)
    shared = _Shared.by({batch_of(name) for name in names}, any(map(counts_all_devices, names)))
    has_work = any(map(_is_work, names))
    found = {name: _power(name, shared, has_work) for name in names}
    return {name: power for name, power in found.items() if power is not None}


class _Shared(Enum):
    """Who shares the work that a batch stands for."""

    ALL_DEVICES = auto()
    GROUPS = auto()  # of a batch of all devices, but only the degrees are known
    MODEL = auto()  # of a batch of one device: those that compute the same samples
    UNKNOWN = auto()

    @classmethod
    def by(cls, batches: set[str | None], has_devices: bool) -> _Shared:
        if "global_batch" in batches:
            return cls.ALL_DEVICES if has_devices else cls.GROUPS
        return cls.MODEL if "device_batch" in batches else cls.UNKNOWN


def _power(name: str, shared: _Shared, has_work: bool) -> float | None:
    counts = counts_what(name)
    if counts in ("batch", "accumulation"):
        return 1.0
    if counts in ("devices", "degree"):
        return _divisor(name, shared)
    tokens = {*name_tokens(name)}
    if _is_work(name) or _consists(tokens, _LENGTH, _LENGTH_WORDS):
        return 1.0
    if _consists(tokens, _SIZE, _SIZE_WORDS):
        return None if has_work else 1.0
    return 1.0 if _consists(tokens, _BYTES, _BYTES_WORDS) else None


def _divisor(name: str, shared: _Shared) -> float | None:
    """Return the power of a count of devices."""
    if shared is _Shared.ALL_DEVICES:
        return -1.0 if counts_all_devices(name) else 0.0
    if model_degree(name) or (shared is _Shared.GROUPS and counts_what(name) == "devices"):
        return -1.0
    return None if shared is _Shared.UNKNOWN else 0.0


def _is_work(name: str) -> bool:
    tokens = {*name_tokens(name)}
    return bool(tokens & _WORK) and not tokens & _SPEED


def _consists(tokens: set[str], some: set[str], words: set[str]) -> bool:
    """Return whether a name has one of some words, and no others than known ones."""
    return bool(tokens & some) and tokens <= words
